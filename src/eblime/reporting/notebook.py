"""Results in a notebook: HTML without scripts, readable on light and dark backgrounds.

A notebook does not have the page's style sheet, so elements carry `style` attributes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from eblime._types import FloatArray, IntArray
from eblime.plot.style import AGAINST, FAVOUR, rgb, sign_colour, signed_shares
from eblime.posterior import Posterior
from eblime.reporting.render import render
from eblime.reporting.views import input_view
from eblime.results.comparison import Comparison
from eblime.results.explanation import Explanation
from eblime.results.indices import Interactions
from eblime.results.notes import fit_sentence, notes

if TYPE_CHECKING:
    from markupsafe import Markup

_ROWS = 10
_NEUTRAL = "#888888"
_STYLES = {  # what the page's style sheet says about these classes
    "document": "white-space:pre-wrap;line-height:1.9",
    "picture": "filter:grayscale(1)",
    "target": "stroke:#0072b2;stroke-width:2.5;stroke-dasharray:7 4",
    "volume": "display:grid;grid-template-columns:1fr 1fr;gap:.5em",
}


def fragment(shown: Explanation | Comparison | Interactions) -> str:
    """The most important features, or pairs, with their 95 % intervals, as HTML."""
    if isinstance(shown, Comparison):
        return _comparison(shown)
    if isinstance(shown, Interactions):
        return _table(shown.posterior, shown.names, "pair", label=shown.label)
    post = shown.posterior
    return _table(
        post,
        shown.features,
        "feature",
        label=shown.label,
        text=f"{shown.prediction:.4g}. {fit_sentence(shown)} {shown.estimand}",
        notes=notes(shown),
        view=_add_styles(input_view(shown), signed_shares(shown)),
    )


def _table(post: Posterior, names: Sequence[str], noun: str, **parts: Any) -> str:
    """The largest entries of a posterior, below the other parts of the template."""
    empty = {"text": post.estimand, "notes": [], "view": ""}
    return str(
        render(
            "notebook.html.j2",
            rows=_rows(post, names),
            noun=noun,
            has_intervals=post.has_spread,
            left_out=max(0, post.n_features - _ROWS),
            neutral=_NEUTRAL,
            **{**empty, **parts},
        )
    )


def _comparison(comparison: Comparison) -> str:
    """The most important features by every method, with 95 % intervals, as HTML."""
    first = comparison[comparison.methods[0]]
    if comparison.settings:
        lines = comparison.sensitivity_table(between="\t").split("\n")
        table = [line.split("\t") for line in lines]
        return str(
            render(
                "choices.html.j2",
                label=first.label,
                prediction=first.prediction,
                table=table,
                calls=comparison.total_calls,
                notes=comparison.notes(),
            )
        )
    order, names = comparison.order()[:_ROWS], first.features
    columns = [_numbers(comparison[name], order) for name in comparison.methods]
    return str(
        render(
            "comparison.html.j2",
            label=first.label,
            prediction=first.prediction,
            calls=comparison.model_calls,
            names=[names[j] for j in order],
            rows=list(zip(*columns, strict=True)),
            notes=comparison.notes(),
            left_out=max(0, len(names) - _ROWS),
        )
    )


def _numbers(explanation: Explanation, order: IntArray) -> list[tuple[float, ...]]:
    """Mean and interval of some features; the mean alone for a point estimate."""
    post = explanation.posterior
    if not post.has_spread:
        return [(float(post.mean[j]),) for j in order]
    ends = post.select(order).interval().tolist()
    return [(float(post.mean[j]), *pair) for j, pair in zip(order, ends, strict=True)]


def _add_styles(view: Markup, shares: FloatArray) -> Markup:
    """The view with a `style` in every tag that has a feature or a class of `_STYLES`.

    It is without what only the script of a page shows.
    """
    from markupsafe import Markup

    def add_style(match: re.Match[str]) -> str:
        tag = match[0]
        feature = re.search(r'\sdata-feature="(\d+)"', tag)
        name = re.search(r'\sclass="([\w-]+)', tag)
        style = _STYLES.get(name[1], "") if name else ""
        if feature and int(feature[1]) < len(shares):
            style = _tint(shares[int(feature[1])])
        if not style:
            return tag
        if ' style="' in tag:
            return tag.replace(' style="', f' style="{style};', 1)
        return re.sub(r"\s*/?>$", lambda end: f' style="{style}"{end[0]}', tag)

    plain = re.sub(r"<template>.*?</template>", "", view, flags=re.DOTALL)
    return Markup(re.sub(r"<[a-zA-Z][^<>]*>", add_style, plain))


def _tint(share: float) -> str:
    """The style of a feature with that share of the largest importance, for HTML and for SVG."""
    colour = ",".join(str(round(255 * part)) for part in rgb(sign_colour(share)))
    return (
        f"background-color:rgba({colour},{0.6 * abs(share):.2f});color:inherit;"
        f"padding:.1em;border-radius:.2em;fill:rgb({colour});fill-opacity:{0.75 * abs(share):.2f}"
    )


def _rows(post: Posterior, names: Sequence[str]) -> list[dict[str, Any]]:
    """Names and numbers of the largest entries, and positions in a bar 120 units wide."""
    order = post.order()[:_ROWS]
    mean = post.mean[order]
    low, high = np.minimum(mean, 0), np.maximum(mean, 0)
    if post.has_spread:
        low, high = post.select(order).interval().T
    ends = np.concatenate([low, high, [0.0]])
    ends = ends[np.isfinite(ends)]
    start, length = ends.min(), np.ptp(ends) or 1.0

    def position(values: FloatArray) -> FloatArray:
        return np.asarray(3 + 114 * np.clip((values - start) / length, 0, 1))

    zero = float(position(np.zeros(1))[0])
    return [
        {
            "name": names[j],
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
