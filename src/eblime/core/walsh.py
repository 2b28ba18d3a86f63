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

from eblime._types import FloatArray, IntArray
from eblime.core.indices import Index

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
        subsets, sign = index.subsets(t.shape[1]), (-1) ** index.order
        base = np.prod(2 * self.rho[subsets] * t[:, subsets], axis=2)  # (n, P)
        found = np.zeros_like(base)
        for node, weight, level in index.terms():
            here, there = self._others(subsets, node * t), self._others(subsets, -node * t)
            if part.odd:
                term = weight * base * (here - sign * there) + level * (here - there)
                found += 0.5 * term.real
            if part.even:
                term = weight * base * (here + sign * there) + level * (here + there)
                found += 0.5 * self.even * term.real
        if part.odd and index.order == 1:
            found += self.linear * index.total * base
        return np.asarray(found.T)

    def own(self, part: Part, index: Index) -> FloatArray:
        """Prior covariance of the index under the part, (P, P)."""
        subsets, sign = index.subsets(len(self.rho)), (-1) ** index.order
        here = self._double(subsets, _products(index, 1.0, 1.0))
        there = self._double(subsets, _products(index, -1.0, sign))
        found = part.odd * (here - there) / 2 + part.even * self.even * (here + there) / 2
        if part.odd and index.order == 1:
            found[np.diag_indices_from(found)] += 4 * self.linear * index.total**2 * self.rho
        return np.asarray(found)

    def _others(self, subsets: IntArray, t: NDArray[Any]) -> NDArray[Any]:
        """The product over features outside each subset of `1 + rho_i t_i`, (n, P)."""
        factors = 1 + self.rho * t
        inside = np.prod(factors[:, subsets], axis=2)
        return np.asarray(factors.prod(axis=1)[:, None] / inside)

    def _double(self, subsets: IntArray, pairs: _Pairs) -> FloatArray:
        """The index applied to both arguments of the product kernel, (P, P).

        A difference in both arguments contributes `4 rho`, in the first only `2 rho second`, in the
        second only `2 rho first`; a feature of neither subset contributes `1 + rho first second`.
        """
        x, inverse = pairs.first * pairs.second, 1 / self.rho
        rest = 1 + np.multiply.outer(x, self.rho)  # (Q, p)
        all_features = rest.prod(axis=1)
        size = np.prod((2 * self.rho / rest)[:, subsets], axis=2)  # (Q, P)
        weight = pairs.change[0] * pairs.change[1] * all_features
        found = _gram(size, weight * x ** subsets.shape[1], size)
        if subsets.shape[1] == 2:  # pairs that share a feature
            member = np.zeros((len(subsets), len(self.rho)))
            np.put_along_axis(member, subsets, 1.0, axis=1)
            found = found + _gram(size, weight * x, size) * ((member * inverse) @ member.T)
        both = np.prod(inverse[subsets] + x[:, None, None], axis=2)
        diagonal = np.sum(weight[:, None] * size**2 * both, axis=0)
        if pairs.has_levels:
            found = found + _with_levels(pairs, size, 1 / rest, all_features)
            level = pairs.level[0] * pairs.level[1] * all_features
            diagonal = diagonal + np.sum(level[:, None] / rest, axis=0)
        found[np.diag_indices_from(found)] = diagonal
        return np.asarray(found.real)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Pairs:
    """All pairs of nodes of an index, for the two arguments of a kernel; (Q,) each."""

    first: NDArray[Any]
    second: NDArray[Any]
    change: tuple[NDArray[Any], NDArray[Any]]  # weights of the differences
    level: tuple[NDArray[Any], NDArray[Any]]  # weights of the levels

    @property
    def has_levels(self) -> bool:
        """Whether any level has weight."""
        return bool(self.level[0].any())


def _products(index: Index, node: float, change: float) -> _Pairs:
    """Pairs of nodes; the second node and its difference are multiplied by a sign."""
    nodes, changes = index.nodes, index.differences
    levels = np.zeros_like(changes) if index.levels is None else index.levels
    n = len(nodes)
    return _Pairs(
        first=np.repeat(nodes, n),
        second=node * np.tile(nodes, n),
        change=(np.repeat(changes, n), change * np.tile(changes, n)),
        level=(np.repeat(levels, n), np.tile(levels, n)),
    )


def _gram(left: NDArray[Any], weights: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
    """`left' diag(weights) right`, (P, P)."""
    return np.asarray((left * weights[:, None]).T @ right)


def _with_levels(
    pairs: _Pairs, size: NDArray[Any], plain: NDArray[Any], rest: NDArray[Any]
) -> NDArray[Any]:
    """The terms of `_double` off the diagonal with a level in one argument or in both."""
    left = _gram(size, pairs.change[0] * pairs.level[1] * pairs.second * rest, plain)
    right = _gram(plain, pairs.level[0] * pairs.change[1] * pairs.first * rest, size)
    return np.asarray(left + right + _gram(plain, pairs.level[0] * pairs.level[1] * rest, plain))


def hyperbolic(rho: FloatArray, s: FloatArray, t: FloatArray) -> tuple[FloatArray, FloatArray]:
    """`e^c sinh(D)` and `e^c cosh(D)` between masks with signs s (n, p) and t (m, p), (n, m)."""
    c = 0.5 * float(np.log1p(-(rho**2)).sum())
    up = (s * np.arctanh(rho)) @ t.T
    up += c - np.log(2)
    np.exp(up, out=up)
    down = (np.exp(2 * c) / 4) / up
    return up - down, np.add(up, down, out=up)
