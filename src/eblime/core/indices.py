"""Indices of importance, as linear functionals of a function of the mask.

LIME's weighted linear fit, Banzhaf values and Shapley values are all sums over nodes of

    difference * (E[f | feature j is shown] - E[f | feature j is hidden])
        + level * (E[f | feature j is shown] + E[f | feature j is hidden]) / 2

where E is the expectation if the other features are shown independently, with a probability that
depends on the node. Under every index the importances of a line are its slopes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from eblime._types import BoolArray, FloatArray, IntArray

Complex = NDArray[np.float64 | np.complex128]

_LOSS = 1e3  # factor by which a circle of nodes may enlarge rounding errors


class Node(NamedTuple):
    """One term of an index; the numbers may be complex."""

    mass: complex  # the two probabilities of a feature, shown and hidden, added
    sign: complex  # and subtracted
    difference: complex  # weight of the difference
    level: complex  # weight of the level


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Index:
    """Importances of features, or interactions of pairs of features.

    At each node, a feature is shown with probability `shown` and hidden with probability `hidden`.
    Both may be complex, in conjugate pairs of nodes, and need not add up to one.
    """

    shown: Complex  # (K,)
    hidden: Complex  # (K,)
    differences: Complex  # (K,)
    levels: Complex | None = None  # (K,)
    order: int = 1  # 1: single features; 2: interactions of pairs

    @property
    def masses(self) -> Complex:
        """`shown + hidden`, (K,)."""
        return np.asarray(self.shown + self.hidden)

    @property
    def signs(self) -> Complex:
        """`shown - hidden`, (K,): the mean sign of a feature where the mass is one."""
        return np.asarray(self.shown - self.hidden)

    @property
    def ignores_even(self) -> bool:
        """Whether it is zero for the even part of a function, as Shapley and Banzhaf values are.

        Showing a feature changes that part by the opposite of what it does with all others turned.
        """
        if self.levels is not None or self.order > 1 or np.iscomplexobj(self.shown):
            return False
        turned = self.shown[::-1], self.differences[::-1]
        return np.allclose(turned, (self.hidden, self.differences), rtol=0.0, atol=1e-12)

    def terms(self) -> Iterator[Node]:
        """The nodes, one of each conjugate pair with twice its weights: sum the real parts."""
        levels = np.zeros(len(self.shown)) if self.levels is None else self.levels
        side = np.imag(self.shown)
        times, kept = np.where(side > 0, 2.0, 1.0), side >= 0
        columns = (self.masses, self.signs, times * self.differences, times * levels)
        rows = zip(*(column[kept].tolist() for column in columns), strict=True)
        return map(Node._make, rows)

    def subsets(self, p: int) -> IntArray:
        """The sets of features that the index has a value for, (P, order)."""
        if self.order == 1:
            return np.arange(p)[:, None]
        return np.array(list(combinations(range(p), 2)), dtype=np.intp).reshape(-1, 2)

    def pairwise(self) -> Index:
        """The interactions of this index: differences of differences, for pairs of features."""
        assert self.levels is None
        return Index(shown=self.shown, hidden=self.hidden, differences=self.differences, order=2)


def banzhaf(share: float = 0.5) -> Index:
    """Weighted Banzhaf values: the other features are shown with probability `share`.

    With LIME's kernel `exp(-d^2 / (2 width^2))`, d^2 the number of hidden features, the weighted
    linear fit to all masks gives these values with `share = 1 / (1 + exp(-1 / (2 width^2)))`.
    """
    return Index(shown=np.array([share]), hidden=np.array([1 - share]), differences=np.ones(1))


def shapley(p: int) -> Index:
    """Shapley values: Banzhaf values integrated over the share of features that are shown.

    The integrand is a polynomial of degree p - 1 in the share, so that `ceil(p / 2)` nodes of Gauss
    and Legendre are exact.
    """
    nodes, weights = np.polynomial.legendre.leggauss((p + 1) // 2)
    return Index(shown=(1 + nodes) / 2, hidden=(1 - nodes) / 2, differences=weights / 2)


def by_size(weights: FloatArray) -> Index:
    """The weighted linear fit, free intercept, to all masks; a mask of size s has `weights[s]`.

    Notes
    -----
    By symmetry the coefficient of the score of a mask depends on its size and on whether it shows
    feature j. Sums over masks of one size are Fourier coefficients: show the other features with
    the complex probability `q exp(i t)` and hide them with `1 - q`, and the expectation of f is
    `sum_s chance(s) exp(i t s) E[f | s others are shown]`, with `chance` the binomial law of s at
    q. So p values of t on a circle give every size whose chance is not too small for its weight.
    One circle with q = 1/2 is enough for most kernels; others need several.
    """
    shown, hidden = _coefficients(weights)
    difference, level = (shown + hidden) / 2, shown - hidden
    need = np.maximum(np.abs(difference), np.abs(level))
    parts = []
    for share, chance, sizes in _circles(need / need.max()):
        n = len(need) | 1  # odd: all nodes except the first come in conjugate pairs
        turn = np.exp(2j * np.pi * np.arange(n) / n)
        inverse = turn[:, None] ** -np.flatnonzero(sizes) / (n * chance[sizes])
        weighed = (inverse @ difference[sizes], inverse @ level[sizes])
        parts.append((share * turn, np.full(n, 1 - share), *weighed))
    shown, hidden, differences, levels = map(np.concatenate, zip(*parts, strict=True))
    return Index(shown=shown, hidden=hidden, differences=differences, levels=levels)


def log_subsets(p: int) -> FloatArray:
    """Logarithms of the numbers of masks that show 0 .. p of p features, (p + 1,).

    Examples
    --------
    >>> np.exp(log_subsets(4)).round(9)
    array([1., 4., 6., 4., 1.])
    """
    size = np.arange(p + 1)
    return np.asarray(gammaln(p + 1) - gammaln(size + 1) - gammaln(p - size + 1))


def _coefficients(weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What the mean scores of masks that show feature j, and that hide it, count in its slope.

    Both (p,), by the number of other features that are shown; those that hide it count negatively.
    """
    p = len(weights) - 1
    size = np.arange(p + 1)
    with np.errstate(divide="ignore"):
        logs = np.log(weights) + log_subsets(p)
    mass = np.exp(logs - logs.max())
    mass /= mass.sum()
    shown, hidden = mass @ size / p, mass @ (p - size) / p  # shares of the features
    centred = size - p * shown if shown < hidden else p * hidden - (p - size)  # keeps the digits
    together = mass @ centred**2 / p  # eigenvalues of the masks' covariance: of a common change
    apart = mass @ (size * (p - size)) / (p * (p - 1)) if p > 1 else together  # and of all others
    if not (together > 0 and apart > 0):
        raise ValueError(
            "`kernel` must give weight to masks of at least two sizes, and not only to those that "
            f"show everything or nothing; got weight for sizes {np.flatnonzero(mass > 0)} of {p} "
            "features. Use a wider kernel."
        )
    pull = (together - apart) / (p * together)
    on = mass[1:] * size[1:] / p * (hidden - pull * centred[1:]) / apart
    off = mass[:-1] * (p - size[:-1]) / p * (shown + pull * centred[:-1]) / apart
    return on, off


def _circles(need: FloatArray) -> Iterator[tuple[float, FloatArray, BoolArray]]:
    """Circles of nodes: the share of shown features, the chances of all sizes, the sizes to use.

    `need` is the weight of each size, (p,), relative to the largest. The circle that serves most of
    the sizes that are left comes first.
    """
    p = len(need)
    size, shares = np.arange(p), np.append(0.5, (np.arange(p) + 0.5) / p)
    log_chance = size * np.log(shares)[:, None] + (p - 1 - size) * np.log1p(-shares)[:, None]
    chance = np.exp(log_chance + log_subsets(p - 1))  # (p + 1, p)
    served, left = need <= _LOSS * chance, need > 0
    while left.any():
        best = int(np.argmax((served & left).sum(axis=1)))
        yield float(shares[best]), chance[best], served[best] & left
        left = left & ~served[best]
