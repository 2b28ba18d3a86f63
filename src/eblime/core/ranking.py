"""Rankings of the features, from draws: which are first, and how certain that is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eblime._checks import check_count
from eblime._types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RankBounds:
    """Features from most to least important, and the ranks each may have.

    The bounds hold together: with posterior probability of at least `prob`, every feature's rank
    lies between its `low` and its `high`. Rank 1 is the most important.

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> rng = np.random.default_rng(0)
    >>> masks = rng.integers(0, 2, size=(100, 3))
    >>> post = eblime.fit(masks, masks @ [0.1, 2.0, -1.0] + 0.1 * rng.normal(size=100))
    >>> ranking = post.ranking()
    >>> ranking.order
    array([1, 2, 0])
    >>> ranking.low, ranking.high
    (array([3, 1, 2]), array([3, 1, 2]))
    >>> ranking.credible_set(2)
    array([1, 2])
    """

    order: IntArray  # (p,) features, by expected rank
    expected: FloatArray  # (p,) expected rank of each feature
    low: IntArray  # (p,) least rank of each feature
    high: IntArray  # (p,) greatest rank of each feature
    prob: float

    def credible_set(self, k: int) -> IntArray:
        """Features that may be among the k most important: none outside it is, with `prob`."""
        check_count("k", k, maximum=len(self.order))
        return np.flatnonzero(self.low <= k)


def rank_draws(rng: np.random.Generator, beta: FloatArray, by: str) -> IntArray:
    """Rank of every feature in every draw, 1 for the largest `|beta|` ("abs") or beta ("value").

    Importances that are all the same, as those of constant scores, are ranked by chance.
    """
    places = np.arange(1, beta.shape[1] + 1)
    if (beta == beta[:, :1]).all():
        return np.asarray(rng.permuted(np.tile(places, (len(beta), 1)), axis=1))
    order = np.argsort(-np.abs(beta) if by == "abs" else -beta, axis=1, kind="stable")
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, places[None], axis=1)
    return ranks


def is_among_top(rng: np.random.Generator, beta: FloatArray, k: int, by: str) -> BoolArray:
    """Whether each feature is among the k largest of each draw, (n, p): ranks of at most k."""
    size = np.abs(beta) if by == "abs" else beta
    least = np.partition(size, -k, axis=1)[:, -k, None]
    chosen = np.asarray(size >= least)
    tied = chosen.sum(axis=1) > k
    if tied.any():
        chosen[tied] = rank_draws(rng, beta[tied], by) <= k
    return chosen


def rank_frequencies(ranks: IntArray) -> FloatArray:
    """Share of the draws in which feature j has rank r + 1, (p, p), rows and columns sum to one."""
    n, p = ranks.shape
    cells = ranks - 1 + p * np.arange(p)
    counts = np.bincount(cells.ravel(), minlength=p * p).reshape(p, p)
    return np.asarray(counts / n)


def rank_features(ranks: IntArray, prob: float) -> RankBounds:
    """Order the features by expected rank, with simultaneous bounds on the ranks.

    Each draw is scored by the share of draws that are at least as extreme in its most extreme
    rank; the bounds hold the share `prob` of draws that are the least extreme.
    """
    n = len(ranks)
    cumulated = np.cumsum(rank_frequencies(ranks), axis=1)
    features = np.arange(ranks.shape[1])
    at_most = cumulated[features, ranks - 1]
    at_least = 1 - np.where(ranks > 1, cumulated[features, np.maximum(ranks - 2, 0)], 0.0)
    typical = np.minimum(at_most, at_least).min(axis=1)
    inner = ranks[typical >= np.sort(typical)[n - int(np.ceil(prob * n))]]
    expected = ranks.mean(axis=0)
    return RankBounds(
        order=np.argsort(expected, kind="stable"),
        expected=expected,
        low=inner.min(axis=0),
        high=inner.max(axis=0),
        prob=prob,
    )
