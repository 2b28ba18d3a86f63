"""From the session of an input to its explanations, and from one of them to more masks."""

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
from eblime._threads import few_threads
from eblime._version import __version__
from eblime.answers import Answers, Proposal
from eblime.designs.rounds import OneShot, as_design, rows_of
from eblime.engine.drive import run
from eblime.engine.questions import Reply
from eblime.engine.session import Session
from eblime.engine.settings import LoopSettings, rule_name
from eblime.engine.targets import label_outputs
from eblime.kernels import as_kernel
from eblime.methods.regression import fit_each, fits_together
from eblime.models.conversion import is_ranked
from eblime.protocols import Design, Scene, Subject, is_rendered
from eblime.results.explanation import Explanation

_MOST_CLASSES = 5  # of the highest outputs, in the provenance
_MOST_MASKS = 10_000_000  # of an explanation that is continued


def explanations(session: Session) -> dict[int, Explanation]:
    """The explanations of a session that has no question left, by column."""
    if session.error is not None:
        raise session.error
    settings, opening, fits = session.settings, session.replies[0], session.fits()
    original, subject = opening.original, session.subject
    scene, fixed = whole_scene(subject), getattr(subject, "fixed", None)
    names, provenance = label_outputs(len(original), settings.labels), _provenance(session)
    if len(original) > 1 and is_ranked(settings.model):
        highest = np.argsort(-original, kind="stable")[:_MOST_CLASSES].tolist()
        provenance["top_classes"] = [[names[j], float(original[j])] for j in highest]
    source = Source(settings=settings, subject=subject, seed=session.seed, opening=opening)
    return {
        column: Explanation(
            posterior=posterior.with_fixed(fixed),
            answers=answers if fixed is None else answers.with_fixed(fixed, scene.features),
            method=settings.method,
            scene=scene,
            target=column,
            label=names[column],
            prediction=float(original[column]),
            exhaustive=session.exhaustive,
            provenance=provenance,
            generator=session.generator,
            source=source,
        )
        for column, (posterior, answers) in zip(opening.columns, fits, strict=True)
    }


def whole_scene(subject: Subject) -> Scene:
    """The scene that an explanation keeps.

    The loop knows nothing of features that no perturbed input changes (`fixed`), such as the
    columns of a table in which all rows are the same.
    """
    return getattr(subject, "whole", None) or subject.scene


def _provenance(session: Session) -> dict[str, Any]:
    """Settings, seed, cost and versions, for the reader of the results."""
    settings, model = session.settings, session.settings.model
    about: Any = getattr(model, "about", None)  # such as the layout that it takes
    known = about(session.subject.scene) if callable(about) else getattr(model, "decided", {})
    found: dict[str, Any] = {
        "method": describe(settings.method),
        "input": {**settings.about, **known, **session.replies[0].about},
        "design": describe(settings.design),
        "kernel": describe(as_kernel(settings.kernel)),
        "seed": session.seed,
        "model_calls": session.calls,
        "batch_size": int(session.replies[-1].batch_size),
        "seconds": time.perf_counter() - session.start,
        "versions": {
            "eblime": __version__,
            "numpy": np.__version__,
            "scipy": scipy.__version__,
        },
    }
    if len(session.replies) > 1:
        found["rounds"] = len(session.replies)
    if settings.until is not None:
        found |= {"until": rule_name(settings.until), "reached": bool(session.reached)}
    if session.stopped is not None:
        found["stopped"] = session.stopped
    return found


def fit_together(sessions: Sequence[Session]) -> None:
    """Fit the sessions that have no fit yet, if the method can do that in one pass."""
    unfitted = [session for session in sessions if session.error is None and session.fit is None]
    method = unfitted[0].settings.method if unfitted else None
    if method is None or len(unfitted) < 2 or fits_together(method) is None:
        return
    with suppress(Exception), few_threads(0):  # each alone then raises its own error
        every = [answers for session in unfitted for answers in session.answers]
        fits = iter(fit_each(method, np.random.default_rng(0), every))
        for session in unfitted:
            session.fit = tuple(next(fits) for _ in session.answers)
            session.generator = session.rng.bit_generator.state


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
        seed = self.seed if isinstance(self.seed, int) else None
        rng = np.random.default_rng(seed or 0)
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
        total, columns, opening = settings.max_masks, [explanation.target], self.opening
        design: Any = as_design(
            settings.design,
            total,
            known.n_features,
            exact=False,
            method=settings.method,
            kernel=settings.kernel,
        )
        sized = is_dataclass(design) and "n_masks" in {entry.name for entry in fields(design)}
        if sized:
            design = replace(design, n_masks=total)  # one that was made for fewer
        session = Session(
            settings=settings,
            subject=self.subject,
            targets=columns,
            seed=self.seed,
            rng=_generator(known),
            design=_More(design=design, total=total, seed=seed),
            start=time.perf_counter() - float(cost.get("seconds", 0.0)),
            neighbourhood=near,
            answers=(known,),
            replies=() if opening is None else (replace(opening, columns=columns, calls=0),),
            expected=total,
        )
        run(session, progress)
        (found,) = explanations(session).values()
        before, now = explanation.prediction, found.prediction
        if not np.isclose(before, now, rtol=1e-3, atol=1e-6):
            raise ValueError(
                f"The explanation was made with another model: its prediction is {before:.6g}; "
                f"the model now returns {now:.6g}."
            )
        kept = {name: cost[name] for name in cost if name in ("top_classes", "opened", "seed")}
        provenance = {**found.provenance, **kept}
        return replace(found, label=explanation.label, provenance=provenance)


def source_of(settings: LoopSettings, subject: Subject, explanation: Explanation) -> Source:
    """The source of an explanation that was loaded from a file, given its explainer and input."""
    scene, stored = whole_scene(subject), explanation.scene
    names = ("text", "template", "sources")  # of texts and prompts
    same = list(scene.features) == list(stored.features)
    same &= all(getattr(scene, name, "") == getattr(stored, name, "") for name in names)
    if same and is_rendered(scene) and is_rendered(stored):
        same = all(
            np.array_equal(getattr(scene, name), getattr(stored, name))
            for name in ("shown", "hidden", "labels")
        )
    if not same:
        raise ValueError(
            "`x` must be the explained input, and `explainer` must read it as before; the features "
            "or the text differ from those of the explanation."
        )
    settings = replace(settings, labels=None)  # a label may also be a number
    return Source(settings=settings, subject=subject, seed=explanation.provenance.get("seed"))


def _generator(answers: Answers) -> np.random.Generator:
    digest = hashlib.blake2b(answers.masks.tobytes(), digest_size=16).digest()
    return np.random.default_rng(int.from_bytes(digest, "little"))


@dataclass(frozen=True, slots=True, kw_only=True)
class _More:
    design: Design
    total: int
    seed: int | None  # of the explanation, with which blocks of balanced masks go on

    def next(self, rng: np.random.Generator, answers: Answers) -> Any:
        """Masks that the design would ask about next."""
        left = self.total - answers.n_masks
        if left <= 0:
            return None
        if isinstance(self.design, OneShot):
            assert self.design.masks is not None  # the domain draws no masks of its own
            p, asked = answers.n_features, answers.masks[answers.weights > 0]  # less added ends
            if self.seed is not None and getattr(self.design.masks, "keeps_order", False):
                whole: Any = self.design.masks(
                    np.random.default_rng(self.seed), len(asked) + left, p
                )
                if np.array_equal(getattr(whole, "masks", whole)[: len(asked)], asked):
                    return rows_of(whole, slice(len(asked), None))
            drawn = self.design.masks(rng, left + 2, p)
            masks = np.asarray(drawn.masks if isinstance(drawn, Proposal) else drawn)
            begin = 0  # without the input itself and its complement, which were asked
            if masks[:1].all():
                begin = 1 if masks[1:2].any() else 2
            return rows_of(drawn, slice(begin, begin + left))
        found = self.design.next(rng, answers)
        if found is None:
            raise ValueError("`design` has no more masks to ask about.")
        return found if isinstance(found, (int, np.integer)) else rows_of(found, slice(0, left))
