"""Algorithms 1 and 2 of the paper, in log space and in bounded memory, and a faster twin.

The Gumbel trick draws L exponentials for each value of lambda; the inverse cdf of the normalised
weights has the same law and needs one uniform number.
"""

from __future__ import annotations

import numpy as np

from eblime._types import FloatArray, IntArray
from eblime.core.lam import GridLambda

__all__ = ["categorical_indices", "gumbel_indices"]

_BLOCK = 1 << 20  # exponentials held at once


def gumbel_indices(rng: np.random.Generator, grid: GridLambda, n: int) -> IntArray:
    """Algorithm 2: the place of the largest log weight plus Gumbel noise, n times, O(n L)."""
    with np.errstate(divide="ignore"):
        log_weights = np.log(grid.weights)
    out = np.empty(n, dtype=np.intp)
    step = max(1, _BLOCK // len(log_weights))
    for start in range(0, n, step):
        block = out[start : start + step]
        noise: FloatArray = rng.standard_exponential((len(block), len(log_weights)))
        np.log(noise, out=noise)
        block[:] = np.argmax(np.subtract(log_weights, noise, out=noise), axis=1)
    return out


def categorical_indices(rng: np.random.Generator, grid: GridLambda, n: int) -> IntArray:
    """Places on the grid by inverse cdf, O(L + n log L)."""
    index = np.searchsorted(np.cumsum(grid.weights), rng.random(n), side="right")
    return np.minimum(index, len(grid.weights) - 1)
