"""Algorithm 2 of the paper: the Gumbel trick, in log space and in bounded memory.

It draws L exponentials for each value of lambda; `GridLambda.sample` has the same law from one
uniform number each.
"""

from __future__ import annotations

import numpy as np

from eblime._types import FloatArray
from eblime.core.lam import LambdaLaw

__all__ = ["gumbel_sample"]

_BLOCK = 1 << 20  # exponentials held at once


def gumbel_sample(rng: np.random.Generator, grid: LambdaLaw, n: int) -> FloatArray:
    """The lambda whose log weight plus Gumbel noise is largest, n times, O(n L)."""
    nodes, weights = grid.nodes, grid.weights
    with np.errstate(divide="ignore"):
        log_weights = np.log(weights)
    best = np.empty(n, dtype=np.intp)
    step = max(1, _BLOCK // len(nodes))
    for start in range(0, n, step):
        block = best[start : start + step]
        noise = rng.standard_exponential((len(block), len(nodes)))
        np.log(noise, out=noise)
        block[:] = np.argmax(np.subtract(log_weights, noise, out=noise), axis=1)
    return np.asarray(nodes[best])
