"""Where the loop stands with one input: what was asked, what the model replied, what follows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from eblime._checks import as_floats, check_weights
from eblime._threads import few_threads
from eblime._types import BoolArray, FloatArray
from eblime._warn import warn_user
from eblime.answers import Answers, Proposal
from eblime.core.spectrum import effective_size
from eblime.designs.masks import is_exhaustive
from eblime.engine.questions import Question, Reply
from eblime.engine.settings import LoopSettings
from eblime.kernels import as_kernel
from eblime.methods.regression import fit_each
from eblime.posterior import Posterior
from eblime.protocols import Neighbourhood, Scene, Subject


def whole_scene(subject: Subject) -> tuple[Scene, BoolArray | None]:
    """The scene that an explanation keeps, and which of its features are fixed; None is none.

    The loop knows nothing of features that no perturbed input changes, such as the columns of a
    table in which all rows are the same.
    """
    return getattr(subject, "whole", None) or subject.scene, getattr(subject, "fixed", None)


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
    fit: tuple[Posterior, ...] | None = None  # of the answers so far, if the stop rule needed it
    generator: Mapping[str, Any] | None = None  # its state before the fit

    @property
    def calls(self) -> int:
        """How many inputs the model was asked about."""
        return self.settings.spent + sum(reply.calls for reply in self.replies)

    def extend(self, wanted: FloatArray | Proposal | int, *, warn: bool) -> State:
        """Add perturbed inputs to ask about, and their weights."""
        known, p = len(self.neighbourhood.masks), self.first.n_features
        masks: Any = wanted.masks if isinstance(wanted, Proposal) else wanted
        drawn = wanted.sampling_weights if isinstance(wanted, Proposal) else None  # corrects draws
        if not isinstance(masks, (int, np.integer)):
            masks = check_design_masks(masks, p)
            ends = getattr(self.settings.method, "ends", "unused")
            if known == 0 and self.neighbourhood.exact and ends != "unused":
                masks, drawn = _add_ends(masks, drawn)
        grown = self.neighbourhood.extend(self.rng, masks)
        sampling = grown.sampling_weights[known:]
        if drawn is not None:
            sampling = sampling * check_weights(drawn, len(sampling))
        closeness = grown.closeness[known:]
        kernel = as_kernel(self.settings.kernel)
        weights = check_weights(kernel(closeness), len(closeness)) * sampling
        counting = min(int(np.count_nonzero(weights)), round(effective_size(weights)))
        if warn and counting < p:
            warn_user(
                f"There are more features ({p}) than masks that count ({counting}): expect wide "
                "intervals. Ask for more masks, cut the input into fewer features, or use a wider "
                "kernel."
            )
        expected = self.expected
        if known == 0 and grown.exact and is_exhaustive(grown.masks):
            if not self.settings.may_ask_all(p):
                raise ValueError(
                    f"`max_calls` must be at least {len(weights)}, the number of all masks, for an "
                    f"exhaustive design; got {self.settings.calls.max_calls}."
                )
            expected = len(weights)
        return replace(
            self,
            neighbourhood=grown,
            expected=max(expected, len(grown.masks)),
            weights=weights,
            sampling=None if (sampling == 1).all() else sampling,
        )

    def question(self) -> Question:
        """The perturbed inputs that have no answer yet."""
        known, total = self.first.n_masks, len(self.neighbourhood.masks)
        most = self.settings.calls.max_calls
        scores = [answers.scores for answers in self.answers]
        return Question(
            neighbourhood=self.neighbourhood,
            rows=np.arange(known, total),
            targets=self.targets,
            labels=self.settings.labels,
            ranked=self.settings.ranked,
            opening=self.replies[0] if self.replies else None,
            before=np.stack(scores, axis=1) if scores else None,
            budget=None if most is None else most - sum(reply.calls for reply in self.replies),
            least=max(0, min(self.settings.masks_for(), self.first.n_features + 2) - known),
        )

    def append(self, reply: Reply) -> State:
        """Append the model's reply."""
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
        exact = self.neighbourhood.exact
        answers = tuple(
            _with_hidden(known.append(masks, scores, weights, sampling), exact)
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

    def with_fit(self) -> State:
        """With the posteriors of all targets, which a stop rule and the explanations share."""
        if self.fit is not None:
            return self
        masks, generator = self.first.masks, self.rng.bit_generator.state
        with few_threads(0 if self.settings.steady else masks.size * masks.shape[1]):
            posteriors = fit_each(self.settings.method, self.rng, self.answers)
            for posterior in posteriors:
                _ = posterior.r2_held_out  # computed now, so that printing fits nothing
        return replace(self, fit=posteriors, generator=generator)

    @property
    def exhaustive(self) -> bool:
        """Whether every mask was asked once, and determines its input: no chance is left."""
        return self.neighbourhood.exact and is_exhaustive(self.first.masks)

    @property
    def fits(self) -> list[tuple[Posterior, Answers]]:
        """The posterior and the answers of each target."""
        assert self.fit is not None
        return list(zip(self.fit, self.answers, strict=True))


def _with_hidden(answers: Answers, exact: bool) -> Answers:
    if not exact or answers.hidden is not None:
        return answers
    rows = np.flatnonzero(~answers.masks.any(axis=1))
    return replace(answers, hidden=float(answers.scores[rows[0]])) if rows.size else answers


def check_design_masks(masks: Any, p: int) -> FloatArray:
    """Masks of a design, which may be the user's: (n, p) zeros and ones, made read-only."""
    checked = as_floats("design", masks).copy()
    if checked.ndim != 2 or checked.shape[1] != p or not len(checked):
        raise ValueError(
            f"`design` must return masks of shape (N, {p}); got shape {checked.shape}."
        )
    if not np.isin(checked, (0, 1)).all():
        raise ValueError(
            "`design` must return zeros and ones; got values from "
            f"{checked.min():g} to {checked.max():g}."
        )
    checked.flags.writeable = False
    return checked


def _add_ends(
    masks: FloatArray, sampling: FloatArray | None
) -> tuple[FloatArray, FloatArray | None]:
    """The masks of the first round, with all shown and all hidden added, with weight zero."""
    p = masks.shape[1]
    ends = [np.full(p, end) for end in (1.0, 0.0) if not (masks == end).all(axis=1).any()]
    if not ends:
        return masks, sampling
    own = np.ones(len(masks)) if sampling is None else sampling
    return np.concatenate([masks, ends]), np.concatenate([own, np.zeros(len(ends))])
