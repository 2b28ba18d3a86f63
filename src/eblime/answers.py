"""What was asked of a model about one input, what it answered, and what to ask next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from eblime._types import BoolArray, FloatArray, IntArray

__all__ = ["Answers", "Proposal"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Answers:
    """The perturbed inputs that a model was asked about, and its scores for one target.

    This is all that a method, a design or a stop rule sees. It never changes: `append` returns a
    new record.

    Examples
    --------
    >>> import numpy as np
    >>> from eblime.answers import Answers
    >>> first = Answers(masks=np.eye(2), scores=np.array([0.7, 0.1]), weights=np.ones(2))
    >>> both = first.append(np.ones((1, 2)), np.array([0.9]), np.ones(1))
    >>> both.n_masks, both.scores
    (3, array([0.7, 0.1, 0.9]))
    """

    masks: FloatArray  # (N, p) as the regression sees the perturbed inputs
    scores: FloatArray  # (N,) what the model answered
    weights: FloatArray  # (N,) how much each answer counts
    original: float | None = None  # the score of the input itself, where known
    hidden: float | None = None  # the score with every feature hidden, where known
    features: Sequence[str] | None = None  # names of the features
    sampling: FloatArray | None = None  # (N,) the factor of `weights` that corrects uneven draws
    rounds: IntArray | None = None  # how many answers there were before each later round
    noisy: bool = False  # whether chance fills in what a mask hides; see `exact_ends`
    fixed: BoolArray | None = None  # (p,) features that no perturbed input changes; None is none

    @property
    def n_masks(self) -> int:
        """Number of perturbed inputs, N."""
        return len(self.masks)

    @property
    def n_features(self) -> int:
        """Number of features, p."""
        return int(self.masks.shape[1])

    @property
    def n_varying(self) -> int:
        """Number of features that some perturbed input may change."""
        return self.n_features - (0 if self.fixed is None else int(self.fixed.sum()))

    @property
    def varying(self) -> Answers:
        """The same answers about the features that are not fixed: all that a method needs."""
        if self.fixed is None:
            return self
        kept = np.flatnonzero(~self.fixed).tolist()
        names = None if self.features is None else tuple(self.features[j] for j in kept)
        return replace(
            self, masks=np.ascontiguousarray(self.masks[:, kept]), features=names, fixed=None
        )

    def with_fixed(self, fixed: BoolArray | None, features: Sequence[str]) -> Answers:
        """The same answers with features that are fixed among the others; masks show them."""
        if fixed is None:
            return self
        masks = np.ones((self.n_masks, len(fixed)))
        masks[:, ~fixed] = self.masks
        masks.flags.writeable = False
        return replace(self, masks=masks, features=tuple(features), fixed=fixed)

    @property
    def exact_ends(self) -> bool:
        """Whether the scores of the input itself and of everything hidden, if asked, are exact."""
        return not self.noisy or self.hidden is not None

    def append(
        self,
        masks: FloatArray,
        scores: FloatArray,
        weights: FloatArray,
        sampling: FloatArray | None = None,
    ) -> Answers:
        """These answers and those of one more round, in the order in which they were asked."""
        if not self.n_masks:  # no copy
            return replace(self, masks=masks, scores=scores, weights=weights, sampling=sampling)
        factors = None  # all are drawn evenly
        if self.sampling is not None or sampling is not None:
            known = np.ones(self.n_masks) if self.sampling is None else self.sampling
            factors = np.concatenate([known, np.ones(len(masks)) if sampling is None else sampling])
        before = np.empty(0, dtype=np.intp) if self.rounds is None else self.rounds
        return replace(
            self,
            masks=np.concatenate([self.masks, masks]),
            scores=np.concatenate([self.scores, scores]),
            weights=np.concatenate([self.weights, weights]),
            sampling=factors,
            rounds=np.append(before, self.n_masks),
        )

    def take(self, rows: IntArray) -> Answers:
        """Some of these answers, by number."""
        return replace(
            self,
            masks=self.masks[rows],
            scores=self.scores[rows],
            weights=self.weights[rows],
            sampling=None if self.sampling is None else self.sampling[rows],
            rounds=None,
        )

    @staticmethod
    def none(features: Sequence[str], *, noisy: bool = False) -> Answers:
        """No answers yet, for an input with these features."""
        p = len(features)
        nothing = np.empty(0)
        return Answers(
            masks=np.empty((0, p)),
            scores=nothing,
            weights=nothing,
            features=tuple(features),
            noisy=noisy,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Proposal:
    """Masks that were not drawn evenly, with the weights that correct for it.

    An importance is a property of the model and the kernel, not of the masks that were asked: with
    all 2^p masks, each would count by its kernel alone. A design that asks some masks more often
    than others gives each the weight (share of the mask among all 2^p) / (its chance to be drawn),
    with a mean of about 1. The loop multiplies the kernel's weights by them.

    Examples
    --------
    >>> import numpy as np
    >>> from eblime.answers import Proposal
    >>> masks = np.array([[1.0, 1.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    >>> once = np.array([1.25, 0.625, 0.625, 1.25, 1.25])
    >>> proposal = Proposal(masks=masks, sampling_weights=once)
    >>> float(proposal.sampling_weights.mean())
    1.0
    """

    masks: FloatArray  # (n, p) zeros and ones
    sampling_weights: FloatArray  # (n,) factors of the kernel's weights, not negative
