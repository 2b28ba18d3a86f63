"""How much of the lack of fit reaches the importances: less where masks are balanced.

Among pairs of complements, what a line misses are interactions of an odd number k of features. The
one of a set S moves the importance of feature j as far as the sign of the features in S and j
(without j if S contains it) has a mean over the masks that is not zero. Over all sets of one size
the squares of these means follow from the inner products `s't` of the masks' signs alone, by
Krawtchouk's polynomials. They add up to what random masks have, times a ratio that is known before
a score is: near one for random masks, zero at k = 3 for an orthogonal array of strength 5.

How much of the lack of fit belongs to k = 3, 5, ... is unknown. The even parts of the scores show
how much of them belongs to k = 2, by the correlation of masks that are close, and the shares of
k = 3, 5, 7 are taken to fall as those of k = 2, 4, 6: by the same factor each time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eblime._types import FloatArray, IntArray
from eblime.core.pairs import Pairs
from eblime.core.population import MOST_POPULATION, are_distinct

_ROWS = 256  # masks whose inner products with all others are taken
_LEAST_PAIRS = 8
_SHARE, _TRUST = 0.7, 10.0  # prior share of interactions of two features, and its information
_SHARES = (0.05, 0.98)  # bounds of that share
_LEAST_LEFT = 0.25  # of all pairs; with fewer, the masks that are left decide (`core/population`)


@dataclass(frozen=True, slots=True, kw_only=True)
class Aliasing:
    """What the masks alone say about aliasing."""

    ratios: FloatArray  # (3,) of the orders 3, 5 and 7, relative to random masks; zero above p
    second: FloatArray  # (m, n) normalised Krawtchouk polynomial of degree 2
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
        (n, p), own = (len(even), self.n_features), len(self.rows)
        share, spread = _SHARE, float(even @ even) / n
        if spread > 0:
            some, each = even[self.rows], n / own / 2  # every two pairs once
            near = float(some @ self.second @ even - some @ some) * each / spread
            known = float(np.sum(self.second**2) - own) * each
            share = (near + _TRUST * _SHARE) / (known + _TRUST)
        fall = 1 - float(np.clip(share, *_SHARES))
        shares = (1 - fall) * fall ** np.arange(3)
        odd = (missed - spread) * n / max(n - p, 1) if missed else 0.0
        falling = min(1.0, spread / odd) if odd > 0 else 1.0
        return falling * (float(shares @ self.ratios) + fall**3) + 1 - falling


def find_aliasing(masks: FloatArray, pairs: Pairs) -> Aliasing | None:
    """The aliasing of masks (N, p) in pairs; None if they are few or most of all, or not binary."""
    first, _ = pairs.split(masks)
    n, p = first.shape
    if n < _LEAST_PAIRS or p < 3 or not ((first == 0) | (first == 1)).all():
        return None
    signs = (2 * first - 1).astype(np.float32)  # exact, and faster
    rows = np.linspace(0, n - 1, min(n, _ROWS)).astype(np.intp)
    product = signs[rows] @ signs.T
    left = 1.0  # of all pairs, those that were not asked
    if p <= MOST_POPULATION and are_distinct(first):
        left = 1 - n / 2.0 ** (p - 1)
    if left < _LEAST_LEFT:
        return None
    second = (product**2 - p) / (p * (p - 1))
    values = np.arange(-p, p + 1)  # of an inner product
    counts = np.bincount((product + p).astype(np.intp).ravel(), minlength=2 * p + 1)
    before, now, means = values / p, (values**2 - p) / (p * (p - 1)), np.zeros(9)
    for d in range(2, min(8, p) + 1):  # means of the polynomials, by degree
        means[d] = float(counts @ now) / len(rows) / left
        if d < p:
            before, now = now, (values * now - d * before) / (p - d)
    orders = np.array([3, 5, 7])
    ratios = (orders * means[orders - 1] + np.maximum(p - orders, 0) * means[orders + 1]) / p
    return Aliasing(
        ratios=np.where(orders <= p, ratios, 0.0), second=second, rows=rows, n_features=p
    )
