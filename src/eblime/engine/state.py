"""Where the loop stands with one input: what was asked, what the model replied, what follows."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy

from eblime._checks import check_masks, check_weights
from eblime._threads import few_threads
from eblime._types import FloatArray, RNGLike
from eblime._version import __version__
from eblime.answers import Answers
from eblime.core.spectrum import effective_size
from eblime.designs.masks import is_exhaustive
from eblime.engine.plan import Reply
from eblime.engine.settings import LoopSettings, Question, brief
from eblime.engine.targets import check_targets, output_label, top_outputs
from eblime.kernels import as_kernel
from eblime.methods.regression import as_method, fit_each
from eblime.models.adapt import has_ranked_outputs
from eblime.posterior import Posterior
from eblime.protocols import Kernel, Neighbourhood, Subject
from eblime.results.explanation import Explanation

__all__ = ["State", "begin"]


def begin(settings: LoopSettings, subject: Subject, targets: Any, rng: RNGLike) -> State:
    """The state before the first question."""
    check_targets(targets, settings.labels)
    generator = np.random.default_rng(rng)
    _check_budget(settings, subject.scene.n_features)
    return State(
        settings=settings,
        subject=subject,
        targets=targets,
        seed=int(rng) if isinstance(rng, (int, np.integer)) else rng and "a generator",
        rng=generator,
        start=time.perf_counter(),
        neighbourhood=subject.neighbourhood(generator),
        first=Answers.none(subject.scene.features),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class State:
    """Where the loop stands: what was asked, and what the model replied."""

    settings: LoopSettings
    subject: Subject
    targets: Any
    seed: Any  # for the record
    rng: np.random.Generator
    start: float
    neighbourhood: Neighbourhood
    first: Answers  # of the first target, which a design may look at
    answers: tuple[Answers, ...] = ()  # of every target
    weights: FloatArray | None = None  # of the perturbed inputs in question
    replies: tuple[Reply, ...] = ()
    stopped: str | None = None  # why the questions ended early
    spent: int = 0  # model calls of the explanation that this one continues

    def extended(self, wanted: FloatArray | int, *, warn: bool) -> State:
        """With more perturbed inputs to ask about."""
        scene, known = self.subject.scene, len(self.neighbourhood.masks)
        if not isinstance(wanted, (int, np.integer)):
            wanted = _checked_masks(wanted, scene.n_features)
        grown = self.neighbourhood.extend(self.rng, wanted)
        near = grown.closeness[known:]
        weights = _weights(self.settings.kernel, near, grown.sampling_weights[known:], warn=warn)
        if known == 0 and grown.exact and is_exhaustive(grown.masks):
            if not self.may_ask_all:
                raise ValueError(
                    f"`max_calls` must be at least {len(weights)}, the number of all masks, for an "
                    f"exhaustive design; got {self.settings.calls.max_calls}."
                )
            # each mask counts as often as a sample of n_masks would contain it
            weights = weights * max(1.0, self.settings.n_masks / len(weights))
        return replace(self, neighbourhood=grown, weights=weights)

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
            before=np.stack([known.scores for known in self.answers], axis=1)
            if self.answers
            else None,
            budget=self._budget(),
            least=max(0, _least(self.settings.n_masks, self.first.n_features) - self.first.n_masks),
        )

    @property
    def may_ask_all(self) -> bool:
        """Whether the model may be asked about all 2^p masks."""
        most = self.settings.calls.max_calls
        return most is None or 2**self.first.n_features <= most

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
        if reply.answered is not None:
            masks, weights = masks[reply.answered], weights[reply.answered]
        answers = tuple(
            _with_hidden(known.append(masks, scores, weights), self.neighbourhood.exact)
            for known, scores in zip(before, reply.scores.T, strict=True)
        )
        return replace(
            self,
            answers=answers,
            first=answers[0],
            replies=(*self.replies, reply),
            weights=None,
            stopped=reply.stopped,
        )

    def fitted(self) -> tuple[Posterior, ...]:
        """The posteriors of all targets."""
        masks = self.first.masks
        with few_threads(0 if self.settings.steady else masks.size * masks.shape[1]):
            return fit_each(
                as_method(self.settings.method),
                self.rng,
                self.answers,
                exhaustive=self.exhaustive,
            )

    @property
    def exhaustive(self) -> bool:
        """Whether every mask was asked once, and determines its input: no chance is left."""
        return self.neighbourhood.exact and is_exhaustive(self.first.masks)

    def explanations(self) -> dict[int, Explanation]:
        """From answers to explanations, by column."""
        opening, generator = self.replies[0], self.rng.bit_generator.state
        posteriors = self.fitted()
        original, labels = opening.original, self.settings.labels
        provenance = self._provenance()
        if len(original) > 1 and has_ranked_outputs(self.settings.model):
            provenance["top_classes"] = top_outputs(original, labels)
        return {
            column: Explanation(
                posterior=posterior,
                answers=answers,
                method=as_method(self.settings.method),
                scene=self.subject.scene,
                target=column,
                label=output_label(column, len(original), labels),
                prediction=float(original[column]),
                exhaustive=self.exhaustive,
                provenance=provenance,
                generator=generator,
            )
            for column, answers, posterior in zip(
                opening.columns, self.answers, posteriors, strict=True
            )
        }

    def _provenance(self) -> dict[str, Any]:
        """Settings, seed, cost and versions, for the reader of the results."""
        settings = self.settings
        found: dict[str, Any] = {
            "method": repr(as_method(settings.method)),
            "input": dict(settings.about),
            "design": brief(settings.design) if settings.design is not None else None,
            "kernel": repr(as_kernel(settings.kernel)),
            "seed": self.seed,
            "model_calls": self.spent + sum(reply.calls for reply in self.replies),
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
        if self.stopped is not None:
            found["stopped"] = self.stopped
        return found


def _least(n_masks: int, p: int) -> int:
    """How many answers an explanation needs: more than features, unless fewer are wanted."""
    return min(n_masks, p + 2)


def _check_budget(settings: LoopSettings, p: int) -> None:
    """Refuse a budget that has no room for the input itself and enough perturbed inputs."""
    most, least = settings.calls.max_calls, min(2**p, _least(settings.n_masks, p) + 1)
    if most is not None and most < least:
        raise ValueError(
            f"`max_calls` must be at least {least} for an input with {p} features; got {most}."
        )


def _with_hidden(answers: Answers, exact: bool) -> Answers:
    """The score with everything hidden, where a mask of zeros was asked."""
    if not exact or answers.hidden is not None:
        return answers
    rows = np.flatnonzero(~answers.masks.any(axis=1))
    return replace(answers, hidden=float(answers.scores[rows[0]])) if rows.size else answers


def _checked_masks(masks: Any, p: int) -> FloatArray:
    """Masks of a design, which may be the user's: (n, p) zeros and ones, made read-only."""
    checked = check_masks(masks).copy()
    if checked.shape[1] != p or not np.isin(checked, (0, 1)).all():
        raise ValueError(
            f"`design` must return zeros and ones of shape (N, {p}); got shape {checked.shape} "
            f"with values from {checked.min():g} to {checked.max():g}."
        )
    checked.flags.writeable = False
    return checked


def _weights(
    kernel: str | Kernel | None, closeness: FloatArray, sampling: FloatArray, *, warn: bool
) -> FloatArray:
    """Weights of perturbed inputs: kernel times sampling weights; warns if too few carry weight."""
    n, p = closeness.shape
    weights = check_weights(as_kernel(kernel)(closeness), n) * sampling
    counting = min(int(np.count_nonzero(weights)), round(effective_size(weights)))
    if warn and counting < p:
        warnings.warn(
            f"There are more features ({p}) than masks that count ({counting}): expect wide "
            "intervals. Ask for more masks, cut the input into fewer features, or use a wider "
            "kernel.",
            stacklevel=8,
        )
    return weights
