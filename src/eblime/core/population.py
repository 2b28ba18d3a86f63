"""The finite population of masks: of all 2^p, only those that were not asked are uncertain.

With X all masks and a column of ones, W the weights, `A = X'WX = A_s + A_u` the sums over the masks
that were asked and over the others, and `b_s = X_s'W y_s`, the fit to all masks is

    A^-1 (b_s + A_u beta + noise),    noise ~ N(0, sigma^2 A_u),

with beta and sigma^2 from the regression. A needs no list of masks where the weights depend on the
number of shown features only. Nothing is left to chance once all masks are asked.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eblime._types import FloatArray
from eblime.core.indices import log_subsets

_LAST_DIGIT = 1e-7  # relative
MOST_POPULATION = 25  # features up to which asking many of all masks matters
_LEAST_SHARE = 0.002  # of all masks: with fewer, the intervals move by less than one in a thousand


@dataclass(frozen=True, slots=True, kw_only=True)
class Population:
    """Sums over all masks and over those that were not asked, in centred columns."""

    whole: FloatArray  # (q, q) A, q = p + 1 with an intercept, which comes first
    left: FloatArray  # (q, q) A_u
    columns: FloatArray  # (n, q) the masks that were asked, centred if there is an intercept
    weights: FloatArray  # (n,)

    @property
    def complete(self) -> bool:
        """Whether all masks were asked."""
        return not self.left.any()

    def moments(
        self, scores: FloatArray, mean: FloatArray, cov: FloatArray, sigma2: float
    ) -> tuple[FloatArray, FloatArray]:
        """Means and variances of the fit to all masks, (p,) each, given those of beta."""
        p, weights = len(mean), self.weights
        flat = len(self.whole) - p
        beta, spread = mean, cov
        if flat:
            total = weights.sum()
            beta = np.concatenate([[weights @ scores / total], mean])
            spread = np.zeros_like(self.whole)
            spread[0, 0], spread[1:, 1:] = sigma2 / total, cov
        solved = np.linalg.solve(self.whole, self.left)
        pulled = np.linalg.solve(self.whole, self.columns.T @ (weights * scores))
        noise = sigma2 * np.linalg.solve(self.whole, solved.T)
        variances = np.einsum("ij,ij->i", solved @ spread, solved) + np.diag(noise)
        return (pulled + solved @ beta)[flat:], np.maximum(variances[flat:], 0.0)


def without_rounding(values: FloatArray, scores: FloatArray) -> FloatArray:
    """Exact importances, zero where they are below the last digit of scores in single precision."""
    least = _LAST_DIGIT * np.abs(scores).max(initial=0.0)
    return np.where(np.abs(values) <= least, 0.0, values)


def are_distinct(masks: FloatArray) -> bool:
    """Whether no mask of zeros and ones, (n, p) with p at most 50, occurs twice."""
    numbers = masks @ 2.0 ** np.arange(masks.shape[1])
    return len(np.unique(numbers)) == len(masks)


def is_exhaustive(masks: FloatArray) -> bool:
    """Whether the masks are all 2^p masks, each once."""
    n, p = masks.shape
    return n == 2**p and bool(np.isin(masks, (0, 1)).all()) and are_distinct(masks)


def find_population(masks: FloatArray, weights: FloatArray, *, flat: bool) -> Population | None:
    """The population of masks (n, p), asked once each; None where that makes no difference.

    Weights must be the same for all masks that show the same number of features.
    """
    n, p = masks.shape
    if p > MOST_POPULATION or n < _LEAST_SHARE * 2.0**p or n > 2**p:
        return None
    if not ((masks == 0) | (masks == 1)).all() or not are_distinct(masks):
        return None
    centre = weights @ masks / weights.sum() if flat else np.zeros(p)
    columns = masks - centre
    if flat:
        columns = np.column_stack([np.ones(n), columns])
    asked = (columns * weights[:, None]).T @ columns
    if n == 2**p:
        return Population(whole=asked, left=np.zeros_like(asked), columns=columns, weights=weights)
    shown = masks.sum(axis=1).astype(np.intp)
    known = np.unique(shown)
    by_size = np.zeros(p + 1)
    by_size[shown] = weights
    if not np.allclose(by_size[shown], weights, rtol=1e-6, atol=0.0) or not by_size[known].all():
        return None
    k, low, high = np.arange(p + 1), known[0], known[-1]
    logs = np.interp(k, known, np.log(by_size[known]))
    if low < high:  # a size that was not asked continues the line
        logs[:low] = logs[low] + (k[:low] - low) * (logs[low + 1] - logs[low])
        logs[high:] = logs[high] + (k[high:] - high) * (logs[high] - logs[high - 1])
    counts = np.exp(logs + log_subsets(p))
    none, one = counts.sum(), counts @ k / p
    two = counts @ (k * (k - 1)) / (p * max(p - 1, 1))
    whole = (one - two) * np.eye(p) + two
    whole = whole - one * (centre + centre[:, None]) + none * np.outer(centre, centre)
    if flat:
        ends = one - none * centre
        whole = np.block([[np.array([[none]]), ends[None]], [ends[:, None], whole]])
    return Population(whole=whole, left=whole - asked, columns=columns, weights=weights)
