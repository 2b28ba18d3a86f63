"""Weights of features without a posterior, as bars on a page or in a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from eblime.plot.style import sign_colour
from eblime.reporting.render import render, render_page

__all__ = ["weights_fragment", "weights_page"]

_HALF = 60  # half the width of the bars


def weights_page(weights: Mapping[str, Sequence[tuple[Any, float]]]) -> str:
    """A self-contained page: for each label the features and their weights."""
    return render_page(
        "weights_page.html.j2",
        scripted=False,
        heading="Explanation",
        sections=_sections(weights),
    )


def weights_fragment(weights: Mapping[str, Sequence[tuple[Any, float]]]) -> str:
    """The same for a notebook."""
    return str(render("weights.html.j2", sections=_sections(weights)))


def _sections(weights: Mapping[str, Sequence[tuple[Any, float]]]) -> list[dict[str, Any]]:
    """What the templates show: names, weights, and where each bar ends."""
    return [{"label": label, "rows": _rows(pairs)} for label, pairs in weights.items()]


def _rows(pairs: Sequence[tuple[Any, float]]) -> list[dict[str, Any]]:
    """One row per feature; the longest bar is that of the largest weight."""
    largest = max((abs(weight) for _, weight in pairs), default=0.0) or 1.0
    return [
        {
            "name": str(name),
            "weight": float(weight),
            "end": _HALF + _HALF * float(weight) / largest,
            "colour": sign_colour(weight),
        }
        for name, weight in pairs
    ]
