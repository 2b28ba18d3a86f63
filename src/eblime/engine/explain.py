"""From an input to its explanation, and from an explanation to one with more masks."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np
import scipy

from eblime._checks import check_count
from eblime._progress import Progress, check_progress
from eblime._repr import describe
from eblime._types import FloatArray, RNGLike
from eblime._version import __version__
from eblime.answers import Answers, Proposal
from eblime.designs.rounds import OneShot, as_design, rows_of
from eblime.engine.drive import run
from eblime.engine.questions import Reply
from eblime.engine.session import Session
from eblime.engine.settings import LoopSettings, rule_name
from eblime.engine.state import State, whole_scene
from eblime.engine.targets import output_label, top_outputs
from eblime.kernels import as_kernel
from eblime.methods.regression import fit_inputs
from eblime.protocols import Composite, Design, Subject
from eblime.results.explanation import Explanation

_MOST_MASKS = 10_000_000  # of an explanation that is continued


def explain(
    settings: LoopSettings,
    subject: Subject,
    targets: Any,
    rng: RNGLike,
    *,
    progress: Progress = None,
) -> dict[int, Explanation]:
    """Explain one input: section 2 of the paper perturbs, section 3 infers."""
    session = Session.begin(settings, subject, targets, rng)
    run(session, progress)
    return explanations(session)


def explanations(session: Session) -> dict[int, Explanation]:
    """The explanations of a session that has no question left, by column."""
    if session.error is not None:
        raise session.error
    state = session.state.with_fit()
    settings, opening = state.settings, state.replies[0]
    original, labels = opening.original, settings.labels
    scene, fixed = whole_scene(state.subject)
    provenance = _provenance(state)
    if len(original) > 1 and settings.ranked:
        provenance["top_classes"] = top_outputs(original, labels)
    source = Source(settings=settings, subject=state.subject, seed=state.seed, opening=opening)
    return {
        column: Explanation(
            posterior=posterior.with_fixed(fixed),
            answers=answers.with_fixed(fixed, scene.features),
            method=settings.method,
            scene=scene,
            target=column,
            label=output_label(column, len(original), labels),
            prediction=float(original[column]),
            exhaustive=state.exhaustive,
            provenance=provenance,
            generator=state.generator,
            source=source,
        )
        for column, (posterior, answers) in zip(opening.columns, state.fits, strict=True)
    }


def _provenance(state: State) -> dict[str, Any]:
    """Settings, seed, cost and versions, for the reader of the results."""
    settings, model = state.settings, state.settings.model
    about: Any = getattr(model, "about", None)  # such as the layout that it takes
    known = about(state.subject.scene) if callable(about) else {}
    found: dict[str, Any] = {
        "method": describe(settings.method),
        "input": {**settings.about, **known},
        "design": describe(settings.design),
        "kernel": describe(as_kernel(settings.kernel)),
        "seed": state.seed,
        "model_calls": state.calls,
        "batch_size": int(state.replies[-1].batch_size),
        "seconds": time.perf_counter() - state.start,
        "versions": {
            "eblime": __version__,
            "numpy": np.__version__,
            "scipy": scipy.__version__,
        },
    }
    if len(state.replies) > 1:
        found["rounds"] = len(state.replies)
    if settings.until is not None:
        found |= {"until": rule_name(settings.until), "reached": bool(state.reached)}
    if state.stopped is not None:
        found["stopped"] = state.stopped
    return found


def fit_together(sessions: Sequence[Session]) -> None:
    """Fit the sessions that have no fit yet, if the method can do that in one pass."""
    unfitted = [s for s in sessions if s.error is None and s.state.fit is None]
    if len(unfitted) < 2 or not getattr(unfitted[0].state.settings.method, "fits_inputs", False):
        return
    with suppress(Exception):  # each alone then raises its own error
        answers = [session.state.answers for session in unfitted]
        fits = fit_inputs(unfitted[0].state.settings.method, answers)
        for session, fit in zip(unfitted, fits, strict=True):
            generator = session.state.rng.bit_generator.state
            session.state = replace(session.state, fit=fit, generator=generator)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Source:
    """Where an explanation comes from, so that it can be continued; it is never saved."""

    settings: LoopSettings
    subject: Subject
    seed: Any
    opening: Reply | None = None  # what the model answered about the input; None asks again

    def __reduce__(self) -> tuple[Any, tuple[()]]:
        """A pickled explanation has no source: the model may be anything."""
        return type(None), ()

    def more(self, explanation: Explanation, n: int, progress: Progress) -> Explanation:
        """The explanation from n more masks and the answers so far."""
        check_count("n", n)
        check_progress(progress)
        if explanation.exhaustive:
            raise ValueError("The model was asked about all masks; there are no more.")
        if self.settings.design is None:
            raise ValueError(
                "The domain of the input draws its perturbed inputs, which cannot be made again. "
                "Explain the input with a larger `n_masks`."
            )
        known, cost = explanation.answers.varying, explanation.provenance
        rng = np.random.default_rng(self.seed if isinstance(self.seed, int) else 0)
        near = self.subject.neighbourhood(rng).extend(rng, known.masks)
        most = min(_MOST_MASKS, 2**known.n_features if near.exact else _MOST_MASKS) - known.n_masks
        if n > most:
            raise ValueError(f"`n` must be at most {most:,}; got {n:,}.")
        settings = replace(
            self.settings,
            n_masks=known.n_masks + n,
            method=explanation.method,
            calls=replace(self.settings.calls, max_calls=None, partial=False),
            until=None,
            max_seconds=None,
            spent=int(cost.get("model_calls", 0)),
        ).for_input(self.subject.scene, exact=near.exact)
        columns, opening = [explanation.target], self.opening
        state = State(
            settings=settings,
            subject=self.subject,
            targets=columns,
            seed=self.seed,
            rng=_generator(known),
            start=time.perf_counter() - float(cost.get("seconds", 0.0)),
            neighbourhood=near,
            first=known,
            answers=(known,),
            replies=() if opening is None else (replace(opening, columns=columns, calls=0),),
            expected=settings.masks_for(),
        )
        design = _More(design=_larger_design(settings, state), total=settings.masks_for())
        session = Session(state, design)
        run(session, progress)
        (found,) = explanations(session).values()
        before, now = explanation.prediction, found.prediction
        if not np.isclose(before, now, rtol=1e-3, atol=1e-6):
            raise ValueError(
                f"The explanation was made with another model: its prediction is {before:.6g}; "
                f"the model now returns {now:.6g}."
            )
        kept = {"top_classes"} & {*cost}
        provenance = {**found.provenance, **{name: cost[name] for name in kept}}
        return replace(found, label=explanation.label, provenance=provenance)


def source_of(settings: LoopSettings, subject: Subject, explanation: Explanation) -> Source:
    """The source of an explanation that was loaded from a file, given its explainer and input."""
    scene, stored = whole_scene(subject)[0], explanation.scene
    same = list(scene.features) == list(stored.features)
    if same and isinstance(scene, Composite) and isinstance(stored, Composite):
        same = all(
            np.array_equal(getattr(scene, name), getattr(stored, name))
            for name in ("shown", "hidden", "labels")
        )
    if not same:
        raise ValueError(
            "`x` must be the explained input, and `explainer` must read it as before; the features "
            "differ from those of the explanation."
        )
    settings = replace(settings, labels=None)  # a label may also be a number
    return Source(settings=settings, subject=subject, seed=explanation.provenance.get("seed"))


def _generator(answers: Answers) -> np.random.Generator:
    digest = hashlib.blake2b(answers.masks.tobytes(), digest_size=16).digest()
    return np.random.default_rng(int.from_bytes(digest, "little"))


def _larger_design(settings: LoopSettings, state: State) -> Any:
    design: Any = as_design(
        settings.design,
        settings.masks_for(),
        state.first.n_features,
        exact=False,
        method=settings.method,
        kernel=settings.kernel,
    )
    sized = is_dataclass(design) and "n_masks" in {entry.name for entry in fields(design)}
    return replace(design, n_masks=settings.masks_for()) if sized else design


@dataclass(frozen=True, slots=True, kw_only=True)
class _More:
    design: Design
    total: int

    def next(
        self, rng: np.random.Generator, answers: Answers
    ) -> FloatArray | Proposal | int | None:
        """Masks that the design would ask about next."""
        left = self.total - answers.n_masks
        if left <= 0:
            return None
        if isinstance(self.design, OneShot):
            if self.design.masks is None:
                return left
            drawn = self.design.masks(rng, left + 2, answers.n_features)
            masks = np.asarray(drawn.masks if isinstance(drawn, Proposal) else drawn)
            begin = 0  # without the input itself and its complement, which were asked
            if masks[:1].all():
                begin = 1 if masks[1:2].any() else 2
            some: FloatArray | Proposal = rows_of(drawn, slice(begin, begin + left))
            return some
        found = self.design.next(rng, answers)
        if found is None:
            raise ValueError("`design` has no more masks to ask about.")
        return found if isinstance(found, (int, np.integer)) else rows_of(found, slice(0, left))
