"""An explanation in a notebook: HTML without scripts, readable on light and dark backgrounds.

A notebook does not have the page's style sheet, so elements carry `style` attributes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from eblime._types import FloatArray, IntArray
from eblime.plot.style import AGAINST, FAVOUR, rgb
from eblime.reporting.diagnostics import cautions, fit_sentence
from eblime.reporting.render import render
from eblime.reporting.views import input_view
from eblime.results.comparison import Comparison
from eblime.results.explanation import Explanation

if TYPE_CHECKING:
    from markupsafe import Markup

__all__ = ["comparison_fragment", "fragment"]

_ROWS = 10
_NEUTRAL = "#888888"
_STYLES = {  # what the page's style sheet says about these classes
    "document": "white-space:pre-wrap;line-height:1.9",
    "picture": "filter:grayscale(1)",
}


def fragment(explanation: Explanation) -> str:
    """The input and the most important features with their 95 % intervals, as HTML."""
    post = explanation.posterior
    return str(
        render(
            "notebook.html.j2",
            label=explanation.label,
            prediction=explanation.prediction,
            fit=fit_sentence(explanation),
            cautions=cautions(explanation),
            view=_styled(input_view(explanation), post.mean),
            rows=_rows(explanation),
            has_intervals=post.has_spread,
            left_out=max(0, post.n_features - _ROWS),
            neutral=_NEUTRAL,
        )
    )


def comparison_fragment(comparison: Comparison) -> str:
    """The most important features by every method, with 95 % intervals, as HTML."""
    first = comparison[comparison.methods[0]]
    order = comparison.order()[:_ROWS]
    columns = [_numbers(comparison[name], order) for name in comparison.methods]
    return str(
        render(
            "comparison.html.j2",
            label=first.label,
            prediction=first.prediction,
            calls=comparison.model_calls,
            names=[first.features[j] for j in order],
            rows=list(zip(*columns, strict=True)),
            notes=comparison.notes(),
            left_out=max(0, len(first.features) - _ROWS),
        )
    )


def _numbers(explanation: Explanation, order: IntArray) -> list[tuple[float, ...]]:
    """Mean and interval of some features; the mean alone for a point estimate."""
    post = explanation.posterior
    if not post.has_spread:
        return [(float(post.mean[j]),) for j in order]
    ends = post.interval()
    return [(float(post.mean[j]), float(ends[j, 0]), float(ends[j, 1])) for j in order]


def _styled(view: Markup, mean: FloatArray) -> Markup:
    """The view with a `style` in every tag that has a feature or a class of `_STYLES`."""
    from markupsafe import Markup

    largest = np.abs(mean).max() or 1.0

    def add_style(match: re.Match[str]) -> str:
        tag = match[0]
        feature = re.search(r'\sdata-feature="(\d+)"', tag)
        name = re.search(r'\sclass="([\w-]+)', tag)
        style = _STYLES.get(name[1], "") if name else ""
        if feature and int(feature[1]) < len(mean):
            style = _tint(mean[int(feature[1])] / largest)
        if not style:
            return tag
        if ' style="' in tag:
            return tag.replace(' style="', f' style="{style};', 1)
        return re.sub(r"\s*/?>$", lambda end: f' style="{style}"{end[0]}', tag)

    return Markup(re.sub(r"<[a-zA-Z][^<>]*>", add_style, view))


def _tint(share: float) -> str:
    """The style of a feature with that share of the largest importance, for HTML and for SVG."""
    colour = ",".join(str(round(255 * part)) for part in rgb(FAVOUR if share > 0 else AGAINST))
    return (
        f"background-color:rgba({colour},{0.6 * abs(share):.2f});color:inherit;"
        f"padding:.1em;border-radius:.2em;fill:rgb({colour});fill-opacity:{0.75 * abs(share):.2f}"
    )


def _rows(explanation: Explanation) -> list[dict[str, Any]]:
    """Names and numbers of the most important features, and positions in a bar 120 units wide."""
    post, order = explanation.posterior, explanation.posterior.order()[:_ROWS]
    mean = post.mean[order]
    low, high = np.minimum(mean, 0), np.maximum(mean, 0)
    if post.has_spread:
        low, high = post.interval()[order].T
    ends = np.concatenate([low, high, [0.0]])
    ends = ends[np.isfinite(ends)]
    start, length = ends.min(), np.ptp(ends) or 1.0

    def position(values: FloatArray) -> FloatArray:
        return np.asarray(3 + 114 * np.clip((values - start) / length, 0, 1))

    zero = float(position(np.zeros(1))[0])
    return [
        {
            "name": explanation.features[j],
            "numbers": numbers,
            "bar": tuple(bar),
            "zero": zero,
            "colour": FAVOUR if bar[0] >= zero else AGAINST if bar[2] <= zero else _NEUTRAL,
        }
        for j, numbers, bar in zip(
            order,
            np.stack([low, mean, high], axis=1).tolist(),
            np.stack([position(low), position(mean), position(high)], axis=1).tolist(),
            strict=True,
        )
    ]
