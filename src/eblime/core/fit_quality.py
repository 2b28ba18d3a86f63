"""How far scores move, and how much of that a fit explains."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from eblime._types import FloatArray

__all__ = [
    "ROUNDING",
    "HeldOut",
    "is_constant",
    "power_of_two",
    "relative_range",
    "score_range",
    "weighted_r2",
]

ROUNDING = 4 * float(np.finfo(float).eps)  # relative range at which scores count as equal


@dataclass(frozen=True, kw_only=True, eq=False)  # no slots: the value is kept once computed
class HeldOut:
    """The quality of a fit on answers that it has not seen; computed when it is first read."""

    compute: Callable[[], float] = field(repr=False)

    @cached_property
    def r2(self) -> float:
        """Weighted R^2 of predicting each answer from the others; NaN for constant scores."""
        return self.compute()


def relative_range(low: float, high: float) -> float:
    """Range of scores from `low` to `high`, relative to the largest absolute score."""
    largest = max(abs(low), abs(high))
    return high / largest - low / largest if largest else 0.0


def is_constant(scores: FloatArray) -> bool:
    """Whether all scores are the same, up to rounding."""
    return relative_range(float(scores.min()), float(scores.max())) <= ROUNDING


def power_of_two(scores: FloatArray) -> float:
    """The power of two next to the largest absolute score, 1 if all are zero.

    Dividing by it costs no digit, and squares of the result neither overflow nor underflow.

    Examples
    --------
    >>> power_of_two(np.array([0.0, -3.0])), power_of_two(np.zeros(2))
    (4.0, 1.0)
    """
    largest = float(np.abs(scores).max(initial=0.0))
    return float(np.ldexp(1.0, int(np.frexp(largest)[1]))) if largest else 1.0


def score_range(scores: FloatArray, weights: FloatArray) -> tuple[float, float]:
    """Lowest and highest score among those that have weight."""
    counted = scores[weights > 0]
    return float(counted.min()), float(counted.max())


def weighted_r2(scores: FloatArray, weights: FloatArray, missed: FloatArray) -> float:
    """Weighted R^2 of a fit with the residuals `missed`, all (N,); 1 for constant scores.

    Examples
    --------
    >>> scores = np.array([0.0, 1.0, 2.0])
    >>> weighted_r2(scores, np.ones(3), np.array([0.0, 1.0, 0.0]))
    0.5
    """
    if is_constant(scores[weights > 0]):
        return 1.0
    unit = power_of_two(scores)
    scores, missed = scores / unit, missed / unit
    centre = float(weights @ scores / weights.sum())
    return 1 - float(weights @ missed**2) / float(weights @ (scores - centre) ** 2)
