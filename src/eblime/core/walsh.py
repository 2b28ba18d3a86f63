"""A prior over functions of a mask: independent Walsh coefficients, and indices in closed form.

With signs `s = 2 z - 1`, the Walsh functions `chi_S(s) = prod_{j in S} s_j` are a basis of all
functions of a mask. The prior gives the coefficient of `chi_S` the variance `prod_{j in S} rho_j`,
plus `linear * rho_j` for single features, so that its covariance function is

    k(s, t) = linear * sum_j rho_j s_j t_j + prod_j (1 + rho_j s_j t_j).

A function is the sum of an odd part, `f(-s) = -f(s)`, and an even part, `f(-s) = f(s)`. A priori
they are independent, with covariance functions `e^c sinh(D)` (and the linear term) and
`e^c cosh(D)`, where `D = sum_j atanh(rho_j) s_j t_j` and `c = sum_j log(1 - rho_j^2) / 2`. Nothing
here enumerates the `2^p` masks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eblime._types import FloatArray
from eblime.core.indices import Index, Node

__all__ = ["CONSTANT", "Part", "Walsh", "hyperbolic"]

CONSTANT = 10.0  # prior variance of the mean score, relative to the even part's


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Part:
    """Answers about one part of a function: its odd part, its even part, or all of it."""

    signs: FloatArray  # (n, p) of -1 and 1
    scores: FloatArray  # (n,)
    noise: FloatArray  # (n,) variance of each answer, relative to the nugget
    odd: bool
    even: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Walsh:
    """The prior at given parameters, with an amplitude of one."""

    rho: FloatArray  # (p,) in (0, 1)
    linear: float  # extra variance of the linear coefficients
    even: float = 1.0  # variance of the even part relative to the odd part's, where both are asked

    def covariance(self, part: Part, s: FloatArray, t: FloatArray) -> FloatArray:
        """Prior covariance of the part between masks with signs s (n, p) and t (m, p), (n, m)."""
        sinh, cosh = hyperbolic(self.rho, s, t)
        return self.combine(part, sinh, cosh, (s * self.rho) @ t.T)

    def combine(
        self, part: Part, sinh: FloatArray, cosh: FloatArray, line: FloatArray
    ) -> FloatArray:
        """The covariance of a part from its odd, even and linear terms."""
        found = self.linear * line + sinh if part.odd else np.zeros_like(sinh)
        if part.even:
            found += self.even * (cosh + CONSTANT)
        return found

    def cross(self, part: Part, index: Index, t: FloatArray) -> FloatArray:
        """Prior covariance of the index with the part at masks with signs t (n, p), (P, n)."""
        if index.order == 2:
            return _cross_of_pairs(self.rho, index, self._kernels(part), t)
        base, found = 2 * self.rho * t, np.zeros_like(t)
        same, opposite = self._kernels(part)
        for node in index.terms():
            here, there = self._others(node, t), self._others(node, -t)
            term = node.difference * base * (same * here - opposite * there)
            found += (term + node.level * (same * here + opposite * there)).real
        if part.odd:
            found += self.linear * base
        return np.asarray(found.T)

    def own(self, part: Part, index: Index) -> FloatArray:
        """Prior covariance of the index under the part, (P, P)."""
        if index.order == 2:
            return _own_of_pairs(self.rho, index, self._kernels(part))
        found = _own_of_features(self.rho, index, self._kernels(part))
        if part.odd:
            found[np.diag_indices_from(found)] += 4 * self.linear * self.rho
        return found

    def _kernels(self, part: Part) -> tuple[float, float]:
        """A part as a sum of two product kernels: their factors, for masks and for opposites."""
        odd, even = float(part.odd), self.even * part.even
        return (even + odd) / 2, (even - odd) / 2

    def _others(self, node: Node, t: FloatArray) -> NDArray[Any]:
        """The product over the other features of `mass + sign rho_i t_i`, for each one, (n, p)."""
        factors = node.mass + node.sign * (self.rho * t)
        return np.asarray(factors.prod(axis=1)[:, None] / factors)


def _cross_of_pairs(
    rho: FloatArray, index: Index, kernels: tuple[float, float], t: FloatArray
) -> FloatArray:
    """One argument of the product kernel under an index of pairs of features, (P, n)."""
    node = np.concatenate([index.signs, -index.signs])
    weight = np.concatenate([kernels[0] * index.differences, kernels[1] * index.differences])
    factors = 1 + (rho * t)[:, :, None] * node  # (n, p, 2 K)
    slope = (2 * rho * t)[:, :, None] / factors
    table = (slope * (weight * factors.prod(axis=1))[:, None, :]) @ slope.transpose(0, 2, 1)
    first, second = index.subsets(t.shape[1]).T
    return np.ascontiguousarray(table[:, first, second].T)


def _own_of_features(rho: FloatArray, index: Index, kernels: tuple[float, float]) -> FloatArray:
    """Both arguments of the product kernel under an index of features, (p, p).

    A feature in neither subset contributes `mass mass' + rho sign sign'`, the second argument's
    numbers primed. One with a difference in both arguments contributes `4 rho`; in the first only,
    `2 rho sign'`; with a level in the first only, `mass'`. `kernels` are those of `Walsh._kernels`.
    """
    levels = np.zeros(len(index.shown)) if index.levels is None else index.levels
    masses, signs = np.tile(index.masses, 2), np.concatenate([index.signs, -index.signs])
    change = np.concatenate([kernels[0] * index.differences, -kernels[1] * index.differences])
    level = np.concatenate([kernels[0] * levels, kernels[1] * levels])
    found = np.zeros((len(rho), len(rho)))
    for node in index.terms():
        both = node.sign * signs
        rest = node.mass * masses + rho[:, None] * both  # (p, 2 K)
        slope, product = 2 * rho[:, None] / rest, rest.prod(axis=0)
        left = node.difference * slope * both + node.level * node.sign * masses / rest
        term = (left * (change * product)) @ slope.T
        own = 2 * ((node.difference * change * product) @ slope.T)
        if index.levels is not None:
            plain = node.difference * slope * signs + node.level * masses / rest
            term = term + (plain * (node.mass * level * product)) @ (1 / rest).T
            own = own + (node.level * level * product) @ (1 / rest).T
        term[np.diag_indices_from(term)] = own
        found += term.real
    return found


def _own_of_pairs(rho: FloatArray, index: Index, kernels: tuple[float, float]) -> FloatArray:
    """Both arguments of the product kernel under an index of pairs of features, (P, P).

    Only the products of two nodes matter, and few of them differ.
    """
    products = np.outer(index.signs, index.signs).ravel()
    weights = np.outer(index.differences, index.differences).ravel()
    every = np.round(np.concatenate([products, -products]), 13)
    node, place = np.unique(every, return_inverse=True)
    weight = np.bincount(
        place.ravel(), np.concatenate([kernels[0] * weights, kernels[1] * weights])
    )
    rest = 1 + rho[:, None] * node
    slope, weight = 2 * rho[:, None] / rest, weight * rest.prod(axis=0)
    subsets = index.subsets(len(rho))
    both = slope[subsets[:, 0]] * slope[subsets[:, 1]]  # (P, nodes)
    found = (both * (weight * node**2)) @ both.T
    for shared in range(len(rho)):  # pairs with one feature in common
        rows = np.flatnonzero((subsets == shared).any(axis=1))
        other = slope[subsets[rows].sum(axis=1) - shared]
        found[np.ix_(rows, rows)] = (other * (2 * weight * node * slope[shared])) @ other.T
    found[np.diag_indices_from(found)] = 4 * both @ weight
    return np.asarray(found)


def hyperbolic(rho: FloatArray, s: FloatArray, t: FloatArray) -> tuple[FloatArray, FloatArray]:
    """`e^c sinh(D)` and `e^c cosh(D)` between masks with signs s (n, p) and t (m, p), (n, m)."""
    c = 0.5 * float(np.log1p(-(rho**2)).sum())
    up = (s * np.arctanh(rho)) @ t.T
    up += c - np.log(2)
    np.exp(up, out=up)
    down = (np.exp(2 * c) / 4) / up
    return up - down, np.add(up, down, out=up)
