"""How much of the lack of fit reaches the importances: less where masks are balanced.

Among pairs of complements, what a line misses are interactions of an odd number k of features. The
one of a set S moves the importance of feature j as far as the sign of the features in S and j
(without j if S contains it) has a mean over the masks that is not zero. Over all sets of one size
the squares of these means follow from the inner products `s't` of the masks' signs alone, by
Krawtchouk's polynomials. They add up to what random masks have, times a ratio that is known before
a score is: near one for random masks, zero at k = 3 for an orthogonal array of strength 5.

How much of the lack of fit belongs to k = 3, 5, ... is unknown. The shares of k = 2, 4, 6, 8 in the
even parts of the scores are taken to fall by the same factor each time. That factor is found by
least squares: products of two even parts have the mean `sum_k share_k K_k(s't)`, with Krawtchouk's
polynomials K_k, and the result is a mean over all factors by how well they fit. The shares of
k = 3, 5, 7 are taken to fall as those of the even orders do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from eblime._types import FloatArray, IntArray
from eblime.core.pairs import Pairs
from eblime.core.population import MOST_POPULATION, are_distinct

_ROWS, _SOME_ROWS = 256, 64  # masks whose inner products with all others are taken, at most
_LEAST_PAIRS = 8
_FALLS = np.linspace(0.02, 0.95, 94)  # from one order to the next
_FALL, _TRUST = 0.2, 10.0  # prior guess, and its information
_SHARES = (1 - _FALLS) * _FALLS ** np.arange(4)[:, None]  # (4, L) of four orders, for each fall
_LEAST_LEFT = 0.25  # of all pairs; with fewer, the masks that are left decide (`core/population`)
_MOST_LEFT = 0.99  # with more, some rows say enough


@dataclass(frozen=True, slots=True, kw_only=True)
class Aliasing:
    """What the masks alone say about aliasing."""

    ratios: FloatArray  # (3,) of the orders 3, 5 and 7, relative to random masks; zero above p
    products: IntArray  # (m, n) of the signs of pairs: s't + p
    polynomials: FloatArray  # (9, 2p + 1) of Krawtchouk, normalised, by degree and product
    rows: IntArray  # (m,) numbers of the pairs in question
    n_features: int

    def factor(self, pairs: Pairs, scores: FloatArray, missed: float = 0.0) -> float:
        """By how much the variance of an importance is less than random masks would make it.

        `missed` is the variance of what a line misses in the scores. Where its odd part is larger
        than its even part, orders do not fall, and what is larger counts as for random masks.
        """
        first, second = pairs.split(scores)
        even = (first + second) / 2
        even = even - even.mean()
        (n, p), spread = (len(even), self.n_features), float(even @ even) / len(even)
        chances = self._chances(even / np.sqrt(spread) if spread > 0 else np.zeros(n))
        reaching = self.ratios @ _SHARES[:3] + _FALLS**3
        odd = (missed - spread) * n / max(n - p, 1) if missed else 0.0
        falling = min(1.0, spread / odd) if odd > 0 else 1.0
        return falling * float(chances @ reaching) + 1 - falling

    def _chances(self, even: FloatArray) -> FloatArray:
        """Of each fall from an even order to the next: squared errors of every two pairs, once."""
        same, (m, n) = 2 * self.n_features, self.products.shape
        cells, size = self.products.ravel(), same + 1
        found = np.bincount(cells, np.multiply.outer(even[self.rows], even).ravel(), size)
        found[same] -= even[self.rows] @ even[self.rows]
        counts = np.bincount(cells, minlength=size)
        counts[same] -= m
        basis = self.polynomials[2::2]  # (4, 2p + 1)
        known, near = (basis * counts) @ basis.T, basis @ found
        missed = (_SHARES * (known @ _SHARES)).sum(axis=0) - 2 * near @ _SHARES
        prior = _TRUST * (_FALLS - _FALL) ** 2
        return np.asarray(special.softmax(-missed * (1 - m / n / 2) - prior))


def find_aliasing(masks: FloatArray, pairs: Pairs) -> Aliasing | None:
    """The aliasing of masks (N, p) in pairs; None if they are few or most of all, or not binary."""
    first, _ = pairs.split(masks)
    n, p = first.shape
    if n < _LEAST_PAIRS or p < 3 or not ((first == 0) | (first == 1)).all():
        return None
    left = 1.0  # of all pairs, those that were not asked
    if p <= MOST_POPULATION and are_distinct(first):
        left = 1 - n / 2.0 ** (p - 1)
    if left < _LEAST_LEFT:
        return None
    signs = (2 * first - 1).astype(np.float32)  # exact, and faster
    most = _SOME_ROWS if left > _MOST_LEFT else _ROWS
    rows = np.linspace(0, n - 1, min(n, most)).astype(np.intp)
    product = signs[rows] @ signs.T
    values = np.arange(-p, p + 1)  # of an inner product
    cells = (product + p).astype(np.intp)
    counts = np.bincount(cells.ravel(), minlength=2 * p + 1)
    polynomials = np.zeros((9, 2 * p + 1))
    polynomials[0], polynomials[1] = 1.0, values / p
    for d in range(1, min(8, p)):
        now, before = polynomials[d], polynomials[d - 1]
        polynomials[d + 1] = (values * now - d * before) / (p - d)
    means = polynomials @ counts / len(rows) / left
    orders = np.array([3, 5, 7])
    ratios = (orders * means[orders - 1] + np.maximum(p - orders, 0) * means[orders + 1]) / p
    ratios = np.where(orders <= p, ratios, 0.0)
    return Aliasing(ratios=ratios, products=cells, polynomials=polynomials, rows=rows, n_features=p)
