"""Where the loop stands with one input: what was asked, what the model replied, what follows."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy

from eblime._checks import as_generator, check_weights
from eblime._repr import stable_repr
from eblime._threads import few_threads
from eblime._types import FloatArray, RNGLike
from eblime._version import __version__
from eblime.answers import Answers, Proposal
from eblime.designs.masks import is_exhaustive
from eblime.engine.limits import (
    check_most_calls,
    check_most_masks,
    least_answers,
    limited,
    may_ask_all,
)
from eblime.engine.plan import Reply
from eblime.engine.settings import LoopSettings, Question, brief, rule_name
from eblime.engine.targets import check_targets, output_label, top_outputs
from eblime.engine.wanted import checked_masks, weights_of, with_ends
from eblime.kernels import as_kernel
from eblime.methods.regression import fit_each
from eblime.models.adapt import has_ranked_outputs
from eblime.posterior import Posterior
from eblime.protocols import Neighbourhood, Subject
from eblime.results.explanation import Explanation

__all__ = ["State", "begin"]


def begin(settings: LoopSettings, subject: Subject, targets: Any, rng: RNGLike) -> State:
    """The state before the first question."""
    check_targets(targets, settings.labels)
    generator, p = as_generator(rng), subject.scene.n_features
    check_most_calls(settings, p)
    neighbourhood = subject.neighbourhood(generator)
    settings = limited(settings, p, exact=neighbourhood.exact)
    check_most_masks(settings, p, exact=neighbourhood.exact)
    if hasattr(settings.fitted_by, "check_features"):
        settings.fitted_by.check_features(p)
    if _method_ends(settings) == "required" and not neighbourhood.exact:
        raise ValueError(
            "`method` needs the score with everything hidden, which an input of the domain "
            f"{subject.scene.domain!r} does not have; got {settings.fitted_by!r}."
        )
    return State(
        settings=settings,
        subject=subject,
        targets=targets,
        seed=_seed(rng),
        rng=generator,
        start=time.perf_counter(),
        neighbourhood=neighbourhood,
        first=Answers.none(subject.scene.features, noisy=not neighbourhood.exact),
        expected=settings.budget,
    )


def _seed(rng: RNGLike) -> int | str | None:
    """The seed as it is recorded."""
    if isinstance(rng, (int, np.integer)):
        return int(rng)
    return None if rng is None else "a generator"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fit:
    """The posteriors of all targets."""

    generator: Mapping[str, Any]  # state of the generator before the fit
    posteriors: tuple[Posterior, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class State:
    """Where the loop stands: what was asked, and what the model replied."""

    settings: LoopSettings
    subject: Subject
    targets: Any
    seed: int | str | None  # for the record
    rng: np.random.Generator
    start: float
    neighbourhood: Neighbourhood
    first: Answers  # of the first target, which a design may look at
    answers: tuple[Answers, ...] = ()  # of every target
    weights: FloatArray | None = None  # of the perturbed inputs in question
    sampling: FloatArray | None = None  # the factor of these weights that corrects uneven draws
    replies: tuple[Reply, ...] = ()
    stopped: str | None = None  # why the questions ended early
    reached: bool | None = None  # whether the stop rule was reached; None without one
    looked_at: int = 0  # masks when the stop rule was last asked
    expected: int = 0  # masks that it will take in all, as far as is known
    fit: Fit | None = None  # of the answers so far, if the stop rule needed it
    spent: int = 0  # model calls of the explanation that this one continues

    def extended(self, wanted: FloatArray | Proposal | int, *, warn: bool) -> State:
        """With more perturbed inputs to ask about."""
        scene, known = self.subject.scene, len(self.neighbourhood.masks)
        if known == 0 and self.neighbourhood.exact and _method_ends(self.settings) != "unused":
            wanted = with_ends(wanted, scene.n_features)
        masks = wanted.masks if isinstance(wanted, Proposal) else wanted
        if not isinstance(masks, (int, np.integer)):
            masks = checked_masks(masks, scene.n_features)
        grown = self.neighbourhood.extend(self.rng, masks)
        sampling = grown.sampling_weights[known:]
        if isinstance(wanted, Proposal):
            sampling = sampling * check_weights(wanted.sampling_weights, len(sampling))
        weights = weights_of(self.settings.kernel, grown.closeness[known:], sampling, warn=warn)
        expected = self.expected
        if known == 0 and grown.exact and is_exhaustive(grown.masks):
            if not self.may_ask_all:
                raise ValueError(
                    f"`max_calls` must be at least {len(weights)}, the number of all masks, for an "
                    f"exhaustive design; got {self.settings.calls.max_calls}."
                )
            # each mask counts as often as a sample of n_masks would contain it
            weights = weights * max(1.0, self.settings.n_masks / len(weights))
            expected = len(weights)
        return replace(
            self,
            neighbourhood=grown,
            expected=expected,
            weights=weights,
            sampling=None if (sampling == 1).all() else sampling,
        )

    def question(self) -> Question:
        """The perturbed inputs that have no answer yet."""
        rows = np.arange(self.first.n_masks, len(self.neighbourhood.masks))
        return Question(
            neighbourhood=self.neighbourhood,
            rows=rows,
            targets=self.targets,
            labels=self.settings.labels,
            ranked=has_ranked_outputs(self.settings.model),
            opening=self.replies[0] if self.replies else None,
            expected=max(self.expected, len(self.neighbourhood.masks)),
            before=np.stack([known.scores for known in self.answers], axis=1)
            if self.answers
            else None,
            budget=self._budget(),
            least=max(
                0,
                least_answers(self.settings.n_masks, self.first.n_features) - self.first.n_masks,
            ),
        )

    @property
    def may_ask_all(self) -> bool:
        """Whether the model may be asked about all 2^p masks."""
        return may_ask_all(self.settings, self.first.n_features)

    def _budget(self) -> int | None:
        """How many inputs the model may still be asked about."""
        most = self.settings.calls.max_calls
        return None if most is None else most - sum(reply.calls for reply in self.replies)

    def answered(self, reply: Reply) -> State:
        """With the model's reply appended."""
        assert self.weights is not None
        opening = reply if not self.replies else self.replies[0]
        before = self.answers or tuple(
            replace(self.first, original=float(opening.original[column]))
            for column in opening.columns
        )
        masks, weights = self.neighbourhood.masks[self.first.n_masks :], self.weights
        sampling = self.sampling
        if reply.answered is not None:
            masks, weights = masks[reply.answered], weights[reply.answered]
            sampling = None if sampling is None else sampling[reply.answered]
        answers = tuple(
            _with_hidden(known.append(masks, scores, weights, sampling), self.neighbourhood.exact)
            for known, scores in zip(before, reply.scores.T, strict=True)
        )
        return replace(
            self,
            answers=answers,
            first=answers[0],
            replies=(*self.replies, reply),
            weights=None,
            fit=None,
            sampling=None,
            stopped=reply.stopped,
        )

    def fitted(self) -> tuple[Posterior, ...]:
        """The posteriors of all targets."""
        masks = self.first.masks
        with few_threads(0 if self.settings.steady else masks.size * masks.shape[1]):
            return fit_each(
                self.settings.fitted_by,
                self.rng,
                self.answers,
                exhaustive=self.exhaustive,
            )

    def with_fit(self) -> State:
        """With the posteriors of all targets, which a stop rule and the explanations share."""
        if self.fit is not None:
            return self
        generator = self.rng.bit_generator.state
        return replace(self, fit=Fit(generator=generator, posteriors=self.fitted()))

    @property
    def calls(self) -> int:
        """How many inputs the model was asked about."""
        return self.spent + sum(reply.calls for reply in self.replies)

    @property
    def exhaustive(self) -> bool:
        """Whether every mask was asked once, and determines its input: no chance is left."""
        return self.neighbourhood.exact and is_exhaustive(self.first.masks)

    def explanations(self) -> dict[int, Explanation]:
        """From answers to explanations, by column."""
        opening, fit = self.replies[0], self.with_fit().fit
        assert fit is not None
        original, labels = opening.original, self.settings.labels
        provenance = self._provenance()
        if len(original) > 1 and has_ranked_outputs(self.settings.model):
            provenance["top_classes"] = top_outputs(original, labels)
        return {
            column: Explanation(
                posterior=posterior,
                answers=answers,
                method=self.settings.fitted_by,
                scene=self.subject.scene,
                target=column,
                label=output_label(column, len(original), labels),
                prediction=float(original[column]),
                exhaustive=self.exhaustive,
                provenance=provenance,
                generator=fit.generator,
            )
            for column, answers, posterior in zip(
                opening.columns, self.answers, fit.posteriors, strict=True
            )
        }

    def _provenance(self) -> dict[str, Any]:
        """Settings, seed, cost and versions, for the reader of the results."""
        settings = self.settings
        found: dict[str, Any] = {
            "method": stable_repr(settings.fitted_by),
            "input": dict(settings.about),
            "design": brief(settings.design) if settings.design is not None else None,
            "kernel": stable_repr(as_kernel(settings.kernel)),
            "seed": self.seed,
            "model_calls": self.calls,
            "batch_size": int(self.replies[-1].batch_size),
            "seconds": time.perf_counter() - self.start,
            "versions": {
                "eblime": __version__,
                "numpy": np.__version__,
                "scipy": scipy.__version__,
            },
        }
        if len(self.replies) > 1:
            found["rounds"] = len(self.replies)
        if settings.until is not None:
            found |= {"until": rule_name(settings.until), "reached": bool(self.reached)}
        if self.stopped is not None:
            found["stopped"] = self.stopped
        return found


def _with_hidden(answers: Answers, exact: bool) -> Answers:
    """The score with everything hidden, where a mask of zeros was asked."""
    if not exact or answers.hidden is not None:
        return answers
    rows = np.flatnonzero(~answers.masks.any(axis=1))
    return replace(answers, hidden=float(answers.scores[rows[0]])) if rows.size else answers


def _method_ends(settings: LoopSettings) -> str:
    """Whether the method uses the scores at both ends: "required", "useful" or "unused"."""
    return str(getattr(settings.fitted_by, "ends", "unused"))
