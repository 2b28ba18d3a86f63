"""Quantiles and shortest intervals of mixtures, every feature at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import special

from eblime._types import FloatArray

__all__ = ["shortest_intervals", "solve_quantiles"]

Curve = Callable[[FloatArray], FloatArray]  # (K, m) -> (K, m)


def solve_quantiles(
    cdf: Curve,
    pdf: Curve,
    q: FloatArray,
    start: FloatArray,
    bracket: tuple[FloatArray, FloatArray],
    width: FloatArray,
) -> FloatArray:
    """Move `start` to the quantiles q inside their brackets, all (K, m).

    Newton's method on the normal scale: `ndtri(cdf(x))` is nearly a straight line, so that two or
    three steps are enough. A step that leaves the bracket is replaced by halving the bracket, on
    an asinh scale with the given `width` because tails can be heavy. Newton doubles the digits: a
    step of 1e-6 of a width leaves an error near 1e-12.
    """
    goal, x = special.ndtri(q), start
    low, high = bracket
    for _ in range(200):
        chance = cdf(x)
        low, high = np.where(chance <= q, x, low), np.where(chance >= q, x, high)
        normal = special.ndtri(np.clip(chance, 1e-300, 1 - 1e-16))
        rate = np.exp(-0.5 * normal**2) / np.sqrt(2 * np.pi) / pdf(x)
        newton = x - (normal - goal) * rate
        inside = (newton >= low) & (newton <= high)
        moved = np.where(inside, newton, _between(low, high, width))
        still = np.abs(moved - x) <= np.where(inside, 1e-6 * rate, 1e-11 * np.abs(x))
        x = moved
        if (still | (low == high) | ~np.isfinite(x)).all():
            break
    return x


def shortest_intervals(
    quantile: Callable[[FloatArray, FloatArray | None], FloatArray],
    pdf: Curve,
    prob: float,
    m: int,
) -> FloatArray:
    """Shortest intervals that contain `prob`, (2, m).

    The best of 33 masses to the left of the interval, refined by bisection: at the shortest
    interval the densities at both ends are equal. The scan handles laws with two modes, which have
    several such intervals. `quantile` takes probabilities (K, m) and a start, or None.
    """
    with np.errstate(all="ignore"):  # with almost no degrees of freedom the ends can overflow
        masses = np.broadcast_to((1 - prob) * np.arange(1, 34)[:, None] / 34, (33, m))
        ends = quantile(np.concatenate([masses, masses + prob]), None).reshape(2, 33, m)
        best = np.argmin(ends[1] - ends[0], axis=0)
        low, high = (1 - prob) * best / 34, (1 - prob) * (best + 2) / 34
        places = ends[:, best, np.arange(m)]
        for _ in range(30):
            left = (low + high) / 2
            places = quantile(np.stack([left, left + prob]), places)
            density = pdf(places)
            rising = density[0] < density[1]  # then the interval must move to the right
            low, high = np.where(rising, left, low), np.where(rising, high, left)
        return np.asarray(places)


def _between(low: FloatArray, high: FloatArray, width: FloatArray) -> FloatArray:
    """The middle of a bracket on the asinh scale of the given width."""
    middle = width * np.sinh((np.arcsinh(low / width) + np.arcsinh(high / width)) / 2)
    return np.asarray(np.clip(middle, low, high))
