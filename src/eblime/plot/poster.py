"""The figure that says most: the input with its features marked, beside their intervals."""

from __future__ import annotations

from typing import Any

from eblime import registry
from eblime._checks import check_count
from eblime.plot.style import new_figure
from eblime.plot.text import text_size
from eblime.results.explanation import Explanation

__all__ = ["poster"]

_LISTED = 10  # features with their intervals


def poster(explanation: Explanation, top: int = 5) -> Any:
    """A matplotlib figure of the input with its features marked, and of their intervals.

    For an image every superpixel of the list has its number on the map.
    """
    check_count("top", top)
    certain = explanation.posterior.has_spread
    importances = "intervals" if certain else "means"
    name = explanation.scene.domain
    known = name in registry.names("domains")
    picture = registry.find("domains", name).picture if known else "intervals"
    if picture == "map":
        return _image_poster(explanation, top)
    if picture == "text":
        return _text_poster(explanation, importances)
    if picture not in ("intervals", "values"):
        return _stacked_poster(explanation, picture, importances)
    figure = new_figure((7.2, 1.1 + 0.34 * min(12, explanation.scene.n_features)))
    kind = importances if picture == "intervals" else picture
    explanation.plot(kind, ax=figure.subplots())
    return figure


def _image_poster(explanation: Explanation, top: int) -> Any:
    """The map, the probabilities to be among the first, and the intervals, side by side."""
    listed = max(top, _LISTED)
    certain = explanation.posterior.has_spread
    figure = new_figure((5.0 * (3 if certain else 2), 4.2))
    panels = list(figure.subplots(1, 3 if certain else 2))
    explanation.plot("map", ax=panels[0], top=top, numbered=listed)
    if certain:
        explanation.plot("top_k", ax=panels[1], top=top)
    explanation.plot("intervals" if certain else "means", ax=panels[-1], top=listed)
    return figure


def _stacked_poster(explanation: Explanation, picture: str, kind: str) -> Any:
    """The picture that another package draws above, the intervals of its features below."""
    rows = min(_LISTED, explanation.scene.n_features)
    tall, below = 3.0, 1.1 + 0.28 * rows
    figure = new_figure((7.2, tall + below))
    upper, lower = figure.subplots(2, 1, height_ratios=[tall, below])
    explanation.plot(picture, ax=upper)
    explanation.plot(kind, top=rows, ax=lower)
    return figure


def _text_poster(explanation: Explanation, kind: str) -> Any:
    """The text above, the intervals of its words below."""
    columns, tall = text_size(explanation)
    rows = min(_LISTED, explanation.scene.n_features)
    below = 1.1 + 0.28 * rows
    figure = new_figure((columns, tall + below))
    upper, lower = figure.subplots(2, 1, height_ratios=[tall, below])
    explanation.plot("text", ax=upper)
    explanation.plot(kind, top=rows, ax=lower)
    return figure
