"""What was asked of a model about one input, and what it answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from eblime._types import FloatArray, IntArray

__all__ = ["Answers"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Answers:
    """The perturbed inputs that a model was asked about, and its scores for one target.

    This is all that a method, a design or a stop rule sees. It never changes: `append` returns a
    new record.

    Examples
    --------
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

    @property
    def n_masks(self) -> int:
        """Number of perturbed inputs, N."""
        return len(self.masks)

    @property
    def n_features(self) -> int:
        """Number of features, p."""
        return int(self.masks.shape[1])

    def append(self, masks: FloatArray, scores: FloatArray, weights: FloatArray) -> Answers:
        """These answers and more of them, in the order they came."""
        return replace(
            self,
            masks=_below(self.masks, masks),
            scores=_below(self.scores, scores),
            weights=_below(self.weights, weights),
        )

    def take(self, rows: IntArray) -> Answers:
        """Some of these answers, by number."""
        return replace(
            self, masks=self.masks[rows], scores=self.scores[rows], weights=self.weights[rows]
        )

    @staticmethod
    def none(features: Sequence[str]) -> Answers:
        """No answers yet, for an input with these features."""
        p = len(features)
        nothing = np.empty(0)
        return Answers(
            masks=np.empty((0, p)), scores=nothing, weights=nothing, features=tuple(features)
        )


def _below(first: FloatArray, second: FloatArray) -> FloatArray:
    """Rows of both, without a copy where the first has none."""
    return np.concatenate([first, second]) if len(first) else second
