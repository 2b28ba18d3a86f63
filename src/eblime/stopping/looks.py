"""Looking repeatedly: how much smaller an error must be because it is looked at many times.

A statement that is checked after every round gets many chances to be wrong. Estimates from N masks
behave like a Brownian motion at time N, so the chance that one of them crosses a limit at any look
can be computed. `look_penalty` bounds it for looks at 64, 96, 128, 192, ... masks: each total is
at least 4/3 of the one before. tests/stopping/test_looks.py computes the chance itself.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["FIRST", "GROWTH", "is_due", "look_penalty", "next_total"]

FIRST = 64  # masks before the first look
GROWTH = 1.3  # masks grow at least by this factor from one look to the next

_LEAST = 48  # masks below which no design is worth a look
_LEVEL = 4096  # masks up to which all looks have the same level; later ones have smaller ones
_BASE = 4.3  # with the logarithm of the level: the number of independent looks that they are worth


def look_penalty(alpha: float, n_masks: int) -> float:
    """By how much the error at one look must be below `alpha`, so that all looks keep it.

    Examples
    --------
    >>> round(look_penalty(0.05, 1000), 1), round(look_penalty(0.01, 1000), 1)
    (7.3, 8.9)
    """
    return float((_BASE - np.log(alpha)) * max(1.0, n_masks / _LEVEL) ** 2)


def is_due(n_masks: int, last: int) -> bool:
    """Whether to look again, given the number of masks now and at the last look."""
    return n_masks >= _LEAST and n_masks >= GROWTH * last


def next_total(n_masks: int, least: int = FIRST) -> int:
    """The number of masks at the next look: 64, 96, 128, 192, 256, ...

    Every round is then a multiple of 32, so that batches stay full.

    Parameters
    ----------
    n_masks
        Masks asked so far.
    least
        Masks before the first look, at least.

    Examples
    --------
    >>> next_total(0), next_total(64), next_total(96), next_total(0, 120)
    (64, 96, 128, 128)
    """
    totals: NDArray[np.int64] = np.array([[2, 3]]) << np.arange(5, 60)[:, None]
    allowed = totals[(totals > n_masks) & (totals >= max(least, FIRST))]
    return int(allowed.min())
