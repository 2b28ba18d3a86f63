"""How far importances agree: of two methods on one input, or of repeated runs of one method."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy import stats

from eblime._types import BoolArray, FloatArray, IntArray

__all__ = [
    "coefficient_stability",
    "kendall",
    "ranks",
    "same_signs",
    "top_features",
    "top_jaccard",
    "variable_stability",
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


def variable_stability(chosen: BoolArray) -> float:
    """The variables stability index, VSI, of repeated runs (Visani et al. 2022).

    The mean over pairs of runs of the share of chosen features that both chose.

    Parameters
    ----------
    chosen
        Which features each run chose, (R, p), equally many in each run.

    Examples
    --------
    >>> import numpy as np
    >>> from eblime.evaluation.agreement import variable_stability
    >>> variable_stability(np.array([[True, True, False], [True, False, True]]))
    0.5
    """
    shared = [(a & b).sum() for a, b in combinations(chosen, 2)]
    return float(np.mean(shared) / chosen[0].sum())


def coefficient_stability(ends: FloatArray, chosen: BoolArray) -> float:
    """The coefficients stability index, CSI, of repeated runs (Visani et al. 2022).

    For each feature, the share of pairs of runs whose intervals overlap, among the runs that chose
    the feature; the mean over all features that at least two runs chose. NaN if there are none.

    Parameters
    ----------
    ends
        Ends of the intervals, (R, p, 2).
    chosen
        Which features each run chose, (R, p).

    Examples
    --------
    >>> import numpy as np
    >>> from eblime.evaluation.agreement import coefficient_stability
    >>> ends = np.array([[[0.1, 0.3], [0.5, 0.7]], [[0.2, 0.4], [0.8, 0.9]]])
    >>> coefficient_stability(ends, chosen=np.ones((2, 2), dtype=bool))
    0.5
    """
    found = []
    for j in np.flatnonzero(chosen.sum(axis=0) >= 2):
        pairs = combinations(ends[chosen[:, j], j], 2)
        found.append(np.mean([max(a[0], b[0]) <= min(a[1], b[1]) for a, b in pairs]))
    return float(np.mean(found)) if found else float("nan")
