"""The loop that explains one input: ask, append, fit, stop. The only place that asks.

`converse` is the loop itself. It yields `Question`s and receives the model's replies, so that a
single input (`explain`), many inputs that share model calls, and a GPU pipeline all run the same
code.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy

from eblime._checks import check_count, check_masks, check_weights
from eblime._progress import Progress
from eblime._threads import few_threads
from eblime._types import FloatArray, IntArray, RNGLike
from eblime._version import __version__
from eblime.answers import Answers
from eblime.core.spectrum import effective_size
from eblime.designs.masks import is_exhaustive
from eblime.designs.rounds import OneShot, OwnLaw, as_design, check_design
from eblime.engine.query import Reply, ask, progress_of
from eblime.engine.scorers import scorer_of
from eblime.engine.targets import (
    Labels,
    check_labels,
    check_targets,
    columns_of,
    output_label,
    top_outputs,
)
from eblime.kernels import as_kernel
from eblime.methods.regression import as_method, fit_each
from eblime.models.adapt import as_model, has_ranked_outputs
from eblime.posterior import Posterior
from eblime.protocols import Kernel, Method, Neighbourhood, Stop, Subject
from eblime.results.explanation import Explanation

__all__ = [
    "LoopSettings",
    "Question",
    "Talk",
    "brief",
    "converse",
    "explain",
    "reply_from",
    "score_of_input",
]

Talk = Generator["Question", Reply, dict[int, Explanation]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopSettings:
    """How any input is asked about, weighed and fitted; what all explainers share."""

    model: Any
    n_masks: int
    design: Any  # a name, a function or an object; None is the domain's own law
    kernel: str | Kernel | None
    method: str | Method
    batch_size: int | None
    labels: Labels | None
    about: Mapping[str, str]  # how the input was read, for the reader of the results
    steady: bool = False  # batch sizes must not depend on how fast the machine is

    def check(self) -> None:
        """Refuse settings that cannot work, before any input is read."""
        check_count("n_masks", self.n_masks)
        if self.batch_size is not None:
            check_count("batch_size", self.batch_size)
        check_labels(self.labels)
        as_method(self.method)
        as_kernel(self.kernel)
        if self.design is not None:
            check_design(self.design)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Question:
    """Perturbed inputs that the loop wants scores for."""

    neighbourhood: Neighbourhood
    rows: IntArray  # numbers of the perturbed inputs
    targets: Any  # which outputs to keep: a number of the highest, or a list
    labels: Labels | None
    ranked: bool  # whether the outputs can be compared, as those of a classifier
    opening: Reply | None  # the reply of the first round; None in the first round

    def choose(self, original: FloatArray) -> Sequence[int]:
        """The outputs to keep, given the scores of the input itself."""
        return columns_of(self.targets, original, self.labels, ranked=self.ranked)


def explain(
    settings: LoopSettings,
    subject: Subject,
    targets: Any,
    rng: RNGLike,
    *,
    progress: Progress = None,
    until: Stop | None = None,
) -> dict[int, Explanation]:
    """Explain one input: section 2 of the paper perturbs, section 3 infers."""
    talk = converse(settings, subject, targets, rng, until=until)
    question = next(talk)
    with (
        scorer_of(as_model(settings.model), subject.scene, question.neighbourhood) as scorer,
        progress_of(progress, settings.n_masks) as report,
    ):
        while True:
            reply = ask(
                scorer,
                question,
                batch_size=settings.batch_size,
                steady=settings.steady,
                report=report,
            )
            try:
                question = talk.send(reply)
            except StopIteration as end:
                found: dict[int, Explanation] = end.value
                return found


def score_of_input(settings: LoopSettings, subject: Subject) -> FloatArray:
    """All outputs of the model for the input itself: one call with one input."""
    question = Question(
        neighbourhood=subject.neighbourhood(np.random.default_rng(0)),
        rows=np.empty(0, dtype=np.intp),
        targets=1,
        labels=settings.labels,
        ranked=True,
        opening=None,
    )
    return reply_from(settings, subject, question).original


def reply_from(settings: LoopSettings, subject: Subject, question: Question) -> Reply:
    """The model's reply to one question, with the model opened for it alone."""
    with scorer_of(as_model(settings.model), subject.scene, question.neighbourhood) as scorer:
        return ask(scorer, question, batch_size=settings.batch_size, steady=settings.steady)


def converse(
    settings: LoopSettings,
    subject: Subject,
    targets: Any,
    rng: RNGLike,
    *,
    until: Stop | None = None,
) -> Talk:
    """The loop: yields questions, is sent the replies, and returns the explanations by column."""
    state = _begin(settings, subject, targets, rng)
    design = as_design(
        settings.design,
        settings.n_masks,
        subject.scene.n_features,
        exact=state.neighbourhood.exact,
    )
    while (wanted := design.next(state.rng, state.first)) is not None:
        state = state.extended(wanted, warn=isinstance(design, (OneShot, OwnLaw)))
        reply = yield state.question()
        state = state.answered(reply)
        if until is not None:
            reason = _reason(until, state.fitted(), state.answers)
            if reason is not None:
                state = replace(state, stopped=reason)
                break
    if not state.answers:
        raise ValueError("`design` must ask about at least one mask; it asked about none.")
    return state.explanations()


def _begin(settings: LoopSettings, subject: Subject, targets: Any, rng: RNGLike) -> _State:
    """The state before the first question."""
    check_targets(targets, settings.labels)
    generator = np.random.default_rng(rng)
    return _State(
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
class _State:
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
    stopped: str | None = None  # why a stop rule ended the questions

    def extended(self, wanted: FloatArray | int, *, warn: bool) -> _State:
        """With more perturbed inputs to ask about."""
        scene, known = self.subject.scene, len(self.neighbourhood.masks)
        if not isinstance(wanted, (int, np.integer)):
            wanted = _checked_masks(wanted, scene.n_features)
        grown = self.neighbourhood.extend(self.rng, wanted)
        weights = _weights(self.settings.kernel, grown.closeness[known:], warn=warn)
        if known == 0 and grown.exact and is_exhaustive(grown.masks):
            # each mask stands for as many as a sample would have of it
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
        )

    def answered(self, reply: Reply) -> _State:
        """With the model's reply appended."""
        assert self.weights is not None
        opening = reply if not self.replies else self.replies[0]
        before = self.answers or tuple(
            replace(self.first, original=float(opening.original[column]))
            for column in opening.columns
        )
        masks = self.neighbourhood.masks[self.first.n_masks :]
        answers = tuple(
            _with_hidden(known.append(masks, scores, self.weights), self.neighbourhood.exact)
            for known, scores in zip(before, reply.scores.T, strict=True)
        )
        return replace(
            self, answers=answers, first=answers[0], replies=(*self.replies, reply), weights=None
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
            "model_calls": sum(reply.calls for reply in self.replies),
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


def brief(setting: Any) -> str:
    """A setting on one short line."""
    words = " ".join((setting if isinstance(setting, str) else repr(setting)).split())
    return words if len(words) <= 120 else f"{words[:119]}…"


def _reason(until: Stop, posteriors: Sequence[Posterior], answers: Sequence[Answers]) -> str | None:
    """Why to stop: the rule holds for every target."""
    reasons = [until(*pair) for pair in zip(posteriors, answers, strict=True)]
    return None if any(reason is None for reason in reasons) else reasons[0]


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


def _weights(kernel: str | Kernel | None, closeness: FloatArray, *, warn: bool) -> FloatArray:
    """Weights of perturbed inputs; warns if too few of them carry weight."""
    n, p = closeness.shape
    weights = check_weights(as_kernel(kernel)(closeness), n)
    counting = min(int(np.count_nonzero(weights)), round(effective_size(weights)))
    if warn and counting < p:
        warnings.warn(
            f"There are more features ({p}) than masks that count ({counting}): expect wide "
            "intervals. Ask for more masks, cut the input into fewer features, or use a wider "
            "kernel.",
            stacklevel=8,
        )
    return weights
