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

from collections.abc import Sequence
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
        found = np.zeros((len(subsets), len(subsets)))
        for first, *before in index.terms():
            for second, *after in index.terms():
                here = self._double(subsets, first, second, before, after)
                after[0] *= sign  # the second argument with the opposite sign
                there = self._double(subsets, first, -second, before, after)
                if part.odd:
                    found += 0.5 * (here - there).real
                if part.even:
                    found += 0.5 * self.even * (here + there).real
        if part.odd and index.order == 1:
            found[np.diag_indices_from(found)] += 4 * self.linear * index.total**2 * self.rho
        return found

    def _others(self, subsets: IntArray, t: NDArray[Any]) -> NDArray[Any]:
        """The product over features outside each subset of `1 + rho_i t_i`, (n, P)."""
        factors = 1 + self.rho * t
        inside = np.prod(factors[:, subsets], axis=2)
        return np.asarray(factors.prod(axis=1)[:, None] / inside)

    def _double(
        self,
        subsets: IntArray,
        first: complex,
        second: complex,
        before: Sequence[complex],
        after: Sequence[complex],
    ) -> NDArray[Any]:
        """The index applied to both arguments of the product kernel, at nodes first and second.

        A difference in both arguments contributes `4 rho`, in the first only `2 rho second`, in the
        second only `2 rho first`; a feature of neither subset contributes `1 + rho first second`.
        `before` and `after` are the weights of the differences and the levels.
        """
        node = first * second
        rest = 1 + self.rho * node
        member = np.zeros((len(subsets), len(self.rho)))
        np.put_along_axis(member, subsets, 1.0, axis=1)
        size = np.prod(2 * self.rho[subsets] / rest[subsets], axis=1)
        shared = member @ member.T
        one = (member * (rest / self.rho)) @ member.T  # the factor of a feature in both
        order = subsets.shape[1]
        found = np.where(shared == 1, one * node ** (order - 1), node**order)
        found[np.diag_indices_from(found)] = np.prod(rest[subsets] / self.rho[subsets], axis=1)
        found = before[0] * after[0] * found * size * size[:, None]
        if before[1] or after[1]:
            found = found + self._levels(rest, size, (first, second), before, after)
        return np.asarray(found * rest.prod())

    def _levels(
        self,
        rest: NDArray[Any],
        size: NDArray[Any],
        nodes: tuple[complex, complex],
        before: Sequence[complex],
        after: Sequence[complex],
    ) -> NDArray[Any]:
        """The terms of `_double` with a level in one argument or both, over `rest.prod()`."""
        plain = 1 / rest
        left = before[0] * after[1] * nodes[1] * np.outer(size, plain)
        right = before[1] * after[0] * nodes[0] * np.outer(plain, size)
        both = before[1] * after[1] * np.outer(plain, plain)
        found = left + right + both
        found[np.diag_indices_from(found)] = before[1] * after[1] * plain
        return np.asarray(found)


def hyperbolic(rho: FloatArray, s: FloatArray, t: FloatArray) -> tuple[FloatArray, FloatArray]:
    """`e^c sinh(D)` and `e^c cosh(D)` between masks with signs s (n, p) and t (m, p), (n, m)."""
    c = 0.5 * float(np.log1p(-(rho**2)).sum())
    up = (s * np.arctanh(rho)) @ t.T
    up += c - np.log(2)
    np.exp(up, out=up)
    down = (np.exp(2 * c) / 4) / up
    return up - down, np.add(up, down, out=up)
