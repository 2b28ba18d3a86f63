"""How far importances agree: of two methods on one input, or of repeated runs of one method."""

from __future__ import annotations

import numpy as np
from scipy import stats

from eblime._types import BoolArray, FloatArray, IntArray

__all__ = [
    "kendall",
    "ranks",
    "same_signs",
    "top_features",
    "top_jaccard",
]


def ranks(importances: FloatArray) -> IntArray:
    """The place of each feature by absolute size, 1 for the largest; ties in order, (p,).

    Examples
    --------
    >>> ranks(np.array([0.1, -0.7, 0.3]))
    array([3, 1, 2])
    """
    order = np.argsort(-np.abs(importances), kind="stable")
    found = np.empty(len(order), dtype=np.intp)
    found[order] = np.arange(1, len(order) + 1)
    return found


def top_features(importances: FloatArray, k: int) -> BoolArray:
    """Whether each feature is among the k largest by absolute size, (p,)."""
    return np.asarray(ranks(importances) <= k)


def top_jaccard(first: FloatArray, second: FloatArray, k: int) -> float:
    """The Jaccard index of the k largest features: shared ones over all that either has.

    Examples
    --------
    >>> top_jaccard(np.array([3.0, 2.0, 1.0]), np.array([3.0, 1.0, 2.0]), 2)
    0.3333333333333333
    """
    ours, theirs = top_features(first, k), top_features(second, k)
    return float((ours & theirs).sum() / (ours | theirs).sum())


def same_signs(first: FloatArray, second: FloatArray, k: int) -> float:
    """The share of features with the same sign, among those in the top k of either."""
    either = top_features(first, k) | top_features(second, k)
    return float((np.sign(first[either]) == np.sign(second[either])).mean())


def kendall(first: FloatArray, second: FloatArray) -> float:
    """Kendall's tau-b between two rankings by absolute size; NaN where one has no order.

    1 is the same order and -1 the reverse.
    """
    if np.ptp(np.abs(first)) == 0 or np.ptp(np.abs(second)) == 0:
        return float("nan")
    return float(stats.kendalltau(np.abs(first), np.abs(second)).statistic)
