"""Quality of intervals: coverage, width, and a score that combines both."""

from __future__ import annotations

import numpy as np
from scipy import stats

from eblime._types import FloatArray

__all__ = ["interval_measures", "interval_score", "mean_interval"]

_ROUNDING = 1e-9  # of the largest truth


def interval_score(ends: FloatArray, truth: FloatArray, prob: float) -> FloatArray:
    """The interval score of Winkler (1972), (p, 2) and (p,) -> (p,); smaller is better.

    The score is the width, plus 2 / (1 - prob) times the distance to a truth outside the interval.
    Its mean is smallest for the true quantiles, so neither too wide nor too narrow intervals win.

    Examples
    --------
    >>> import numpy as np
    >>> from studies.intervals import interval_score
    >>> ends = np.array([[0.0, 1.0], [0.0, 1.0]])
    >>> interval_score(ends, np.array([0.5, 1.1]), prob=0.95).round(2)
    array([1., 5.])
    """
    low, high = ends.T
    miss = np.maximum(low - truth, 0) + np.maximum(truth - high, 0)
    return np.asarray(high - low + 2 / (1 - prob) * miss)


def interval_measures(ends: FloatArray, truth: FloatArray, prob: float) -> dict[str, float]:
    """Coverage, mean width and mean interval score of the intervals of one explanation.

    `top_1` is the coverage of the feature with the largest absolute truth, `top_2_3` that of the
    next two; NaN with a single feature. Intervals without width, of all masks, miss by rounding.
    """
    slack = _ROUNDING * np.abs(truth).max()
    inside = (ends[:, 0] - slack <= truth) & (truth <= ends[:, 1] + slack)
    ranked = inside[np.argsort(-np.abs(truth), kind="stable")]
    return {
        "coverage": float(inside.mean()),
        "top_1": float(ranked[0]),
        "top_2_3": float(ranked[1:3].mean()) if len(ranked) > 1 else np.nan,
        "width": float(np.mean(ends[:, 1] - ends[:, 0])),
        "score": float(interval_score(ends, truth, prob).mean()),
        "features": float(len(truth)),
    }


def mean_interval(values: FloatArray) -> tuple[float, float]:
    """Student's 95 % interval of a mean."""
    if len(values) < 2:
        return -np.inf, np.inf
    half = stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return float(values.mean() - half), float(values.mean() + half)
