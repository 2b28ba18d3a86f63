"""Indices of importance, as linear functionals of a function of the mask.

LIME's weighted linear fit, Banzhaf values and Shapley values are all sums over nodes m of

    difference * (E[f | feature j is shown] - E[f | feature j is hidden])
        + level * (E[f | feature j is shown] + E[f | feature j is hidden]) / 2

where every other feature is shown independently with probability `(1 + m) / 2`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eblime._types import FloatArray, IntArray

__all__ = ["Index", "banzhaf", "by_size", "shapley"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Index:
    """Importances of features, or interactions of pairs of features.

    Nodes and weights may be complex, in conjugate pairs: the sum is real.
    """

    nodes: NDArray[Any]  # (K,)
    differences: NDArray[Any]  # (K,)
    levels: NDArray[Any] | None = None  # (K,)
    order: int = 1  # 1: single features; 2: interactions of pairs

    @property
    def total(self) -> float:
        """Sum of the weights of the differences: the importance in a function that is a line."""
        return float(self.differences.sum().real)

    def terms(self) -> Iterator[tuple[complex, complex, complex]]:
        """Node, weight of the difference and weight of the level, one node at a time."""
        levels = np.zeros(len(self.nodes)) if self.levels is None else self.levels
        return zip(self.nodes.tolist(), self.differences.tolist(), levels.tolist(), strict=True)

    def subsets(self, p: int) -> IntArray:
        """The sets of features that the index has a value for, (P, order)."""
        if self.order == 1:
            return np.arange(p)[:, None]
        return np.array(list(combinations(range(p), 2)), dtype=np.intp).reshape(-1, 2)

    def pairwise(self) -> Index:
        """The interactions of this index: differences of differences, for pairs of features."""
        assert self.levels is None
        return Index(nodes=self.nodes, differences=self.differences, order=2)


def banzhaf(share: float = 0.5) -> Index:
    """Weighted Banzhaf values: the other features are shown with probability `share`.

    With LIME's kernel `exp(-d^2 / (2 width^2))`, d^2 the number of hidden features, the weighted
    linear fit to all masks gives these values with `share = 1 / (1 + exp(-1 / (2 width^2)))`.
    """
    return Index(nodes=np.array([2 * share - 1]), differences=np.ones(1))


def shapley(p: int) -> Index:
    """Shapley values: Banzhaf values integrated over the share of features that are shown.

    The integrand is a polynomial of degree p - 1 in the share, so that `ceil(p / 2)` nodes of Gauss
    and Legendre are exact.
    """
    nodes, weights = np.polynomial.legendre.leggauss((p + 1) // 2)
    return Index(nodes=nodes, differences=weights / 2)


def by_size(weights: FloatArray) -> Index:
    """The weighted linear fit, free intercept, to all masks; a mask of size s has `weights[s]`.

    Notes
    -----
    By symmetry the fit has a closed form: the coefficient of the score of a mask depends on its
    size and on whether it shows feature j. Sums over masks of one size are coefficients of the
    polynomial `(1 + x)^(p - 1) E_m[f]` with `m = (x - 1) / (x + 1)`, which values at p roots of
    unity give exactly. An odd number of roots avoids x = -1.
    """
    p = len(weights) - 1
    size = np.arange(p + 1)
    mass = weights * _binomials(p)
    mass = mass / mass.sum()
    mean = float(mass @ size) / p
    both = float(mass @ (size * (size - 1))) / (p * (p - 1)) if p > 1 else 0.0
    apart, shared = mean - both, both - mean**2  # eigenvalue and entries of the masks' covariance
    pull = shared / (mean * (1 - mean) + (p - 1) * shared)
    each = mass / _binomials(p) / apart
    shown = each[1:] * (1 - mean - pull * (size[1:] - p * mean))
    hidden = each[:-1] * (mean + pull * (size[:-1] - p * mean))
    n = p + 1 - p % 2
    x = np.exp(2j * np.pi * np.arange(n) / n)
    scale = (1 + x) ** (p - 1) / n
    inverse = x[:, None] ** -np.arange(p)
    return Index(
        nodes=(x - 1) / (x + 1),
        differences=scale * (inverse @ (shown + hidden)) / 2,
        levels=scale * (inverse @ (shown - hidden)),
    )


def _binomials(p: int) -> FloatArray:
    """How many masks of each size there are, (p + 1,)."""
    found = np.ones(p + 1)
    for s in range(p):
        found[s + 1] = found[s] * (p - s) / (s + 1)
    return found
