"""Rankings of the features, from draws: which are first, and how certain that is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from eblime._checks import check_count
from eblime._types import BoolArray, FloatArray, IntArray
from eblime.core.local import GaussianCopula

_BLOCK = 1 << 22  # numbers held at once
_FIRST = 64  # draws that show how large the k-th importance is


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


def top_shares(
    rng: np.random.Generator, copula: GaussianCopula, k: int, by: str, n: int
) -> FloatArray:
    """Share of n draws in which each feature is among the k largest, (p,), for many features.

    A feature is among them only beyond the k-th largest value, and few are: the others' normal
    scores are drawn, in single precision, but not turned into values.
    """
    p = copula.x.shape[1]
    root = copula.root().astype(np.float32).T
    counts = np.zeros(p)
    lower, upper = np.full(p, np.inf), np.full(p, -np.inf)  # all features, in the first draws
    step, start = _FIRST, 0
    while start < n:
        z: Any = rng.standard_normal((min(step, n - start), p), dtype=np.float32) @ root
        beyond = (z > upper) | (z < lower)
        beyond[beyond.sum(axis=1) < k] = True
        features, draws, values = _values_beyond(copula, z, beyond)
        size = np.abs(values) if by == "abs" else values
        order = np.lexsort((-size, draws))
        first = np.searchsorted(draws[order], np.arange(len(z)))
        chosen = order[np.arange(len(order)) - first[draws[order]] < k]
        counts += np.bincount(features[chosen], minlength=p)
        if not start:
            least = size[order[first + k - 1]].min()
            upper = _scores_at(copula, least)
            lower = _scores_at(copula, -least) if by == "abs" else np.full(p, -np.inf)
        start, step = start + len(z), max(_FIRST, _BLOCK // p)
    return counts / n


def _values_beyond(
    copula: GaussianCopula, z: FloatArray, beyond: BoolArray
) -> tuple[IntArray, IntArray, FloatArray]:
    """Feature, draw and value of the normal scores that are chosen, one feature after another."""
    features, draws = np.nonzero(beyond.T)
    scores = z[draws, features].astype(float)
    ends = np.searchsorted(features, np.arange(z.shape[1] + 1))
    for j in np.unique(features):
        some = slice(ends[j], ends[j + 1])
        scores[some] = np.interp(scores[some], copula.z[:, j], copula.x[:, j])
    return features, draws, scores


def _scores_at(copula: GaussianCopula, value: float) -> FloatArray:
    """The normal score of a value for every feature, (p,)."""
    columns = zip(copula.x.T, copula.z.T, strict=True)
    return np.array([np.interp(value, *column) for column in columns])


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
