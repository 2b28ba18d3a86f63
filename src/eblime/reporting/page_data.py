"""The numbers in a page: credible levels, intervals and densities, in few digits."""

from __future__ import annotations

from typing import Any

import numpy as np

from eblime._text import printable
from eblime._types import FloatArray, IntArray
from eblime.posterior import Posterior
from eblime.results.explanation import Explanation
from eblime.results.indices import every_index

__all__ = ["LEVELS", "MOST", "page_data"]

LEVELS = (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.99)
MOST = 250  # features with all their numbers; a page stays below 400 KB
_MOST_SWITCHED = 64  # features of an explanation whose index the reader can switch
_POINTS = 41  # points of a density
_INDEX_WORDS = {
    "lime": "Importances are coefficients of the weighted linear fit to all masks.",
    "banzhaf": "Importances are Banzhaf values: the mean change of the score when the feature is "
    "shown, all masks counting the same.",
    "shapley": "Importances are Shapley values: they share out the difference between the score of "
    "the input and the score with everything hidden.",
}


def page_data(explanation: Explanation, k: int) -> dict[str, Any]:
    """Everything the page's controls need, as plain lists, the most important feature first.

    `low` and `high` have one row per feature and one entry per level. `from`, `to` and `density`
    are the marginal between its 0.2 and 99.8 % quantiles. A point estimate has only its means.
    `indices` has the same numbers for the other indices that the reader can switch to.
    """
    order = explanation.posterior.order()[:MOST]
    found = {"label": printable(explanation.label), "levels": LEVELS, "k": k}
    found |= _numbers(explanation, explanation.posterior, order, k)
    indices = every_index(explanation) if len(order) <= _MOST_SWITCHED else {}
    if indices:
        found["indices"] = {
            name: {"words": _INDEX_WORDS[name]} | _numbers(explanation, post, post.order(), k)
            for name, post in indices.items()
        }
    return found


def _numbers(explanation: Explanation, post: Posterior, order: IntArray, k: int) -> dict[str, Any]:
    """The numbers of one posterior."""
    names = explanation.features
    found: dict[str, Any] = {
        "index": [int(j) for j in order],
        "name": [printable(names[j]) for j in order],
        "mean": _short(post.mean[order], 6),
    }
    values = explanation.details().get("value")
    if values is not None:
        found["value"] = [printable(values[j]) for j in order]
    return found | _spread(post, order, k) if post.has_spread else found


def _spread(post: Posterior, order: IntArray, k: int) -> dict[str, Any]:
    """Intervals, probabilities and densities; empty if there are too few masks for them."""
    tails = np.array([(1 - level) / 2 for level in LEVELS])
    quantiles = post.quantile(np.concatenate([tails, 1 - tails, [0.002, 0.998]]))[:, order]
    positive = post.prob_positive()
    if not all(np.isfinite(values).all() for values in (quantiles, post.sd, positive)):
        return {}
    low, high = quantiles[: len(LEVELS)], quantiles[len(LEVELS) : -2]
    digits = _digits(quantiles)
    return {
        "sd": _short(post.sd[order]),
        "positive": _short(positive[order], 3),
        "top": _short(post.top_k_probability(k)[order], 3),
        "low": _short(low.T, digits),
        "high": _short(high.T, digits),
        "from": _short(quantiles[-2], digits),
        "to": _short(quantiles[-1], digits),
        "density": _densities(post, order, quantiles[-2], quantiles[-1]),
    }


def _densities(
    post: Posterior, order: IntArray, start: FloatArray, end: FloatArray
) -> list[list[int]]:
    """Marginal densities between two ends, as integers with 1000 at the highest point."""
    if not (start < end).all():  # a score that never changed: every importance is zero
        return []
    x = np.empty((_POINTS, post.n_features))
    x[:] = post.mean
    x[:, order] = np.linspace(start, end, _POINTS)
    # the half-Cauchy prior leaves a spike without mass at zero
    x[x == 0] = 1e-12 * (end - start).max()
    height = post.pdf(x)[:, order]
    highest = height.max(axis=0)
    if not ((highest > 0) & (highest < np.inf)).all():  # too narrow or too wide to draw
        return []
    return [[int(v) for v in np.round(1000 * column / column.max())] for column in height.T]


def _digits(quantiles: FloatArray) -> int:
    """Significant digits that distinguish the ends of the narrowest interval."""
    span = np.abs(quantiles[-1] - quantiles[-2])
    size = np.abs(quantiles).max(axis=0)
    ratio = np.divide(size, span, out=np.ones_like(size), where=span > 0).max()
    return int(np.clip(np.ceil(np.log10(max(ratio, 1.0))) + 4, 4, 15))


def _short(values: FloatArray, digits: int = 4) -> Any:
    """Nested lists of numbers with a few significant digits."""
    if values.ndim > 1:
        return [_short(row, digits) for row in values]
    return [float(f"{value:.{digits}g}") for value in values]
