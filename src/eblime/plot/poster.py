"""The picture that says most: what was explained, which features matter, and how sure that is."""

from __future__ import annotations

from typing import Any

from eblime.results.explanation import Explanation

__all__ = ["poster"]


def poster(explanation: Explanation, top: int = 5) -> Any:
    """A matplotlib figure of the input with its features marked, and of their intervals."""
    from matplotlib.figure import Figure

    certain = explanation.posterior.has_spread
    if hasattr(explanation.scene, "photo"):
        kinds = ("map", "top_k", "intervals") if certain else ("map", "means")
        figure = Figure(figsize=(4.2 * len(kinds), 4.2), layout="constrained")
        panels = figure.subplots(1, len(kinds))
        for axes, kind in zip(panels, kinds, strict=True):
            settings = {} if kind in ("intervals", "means") else {"top": top}
            explanation.plot(kind, ax=axes, **settings)
        return figure
    if hasattr(explanation.scene, "pieces"):
        return _text_poster(explanation, "intervals" if certain else "means")
    kind = "values" if hasattr(explanation.scene, "values") else "intervals"
    return explanation.plot(kind if certain or kind == "values" else "means").figure


def _text_poster(explanation: Explanation, kind: str) -> Any:
    """The text above, the intervals of its words below."""
    from matplotlib.figure import Figure

    above: Any = explanation.plot("text").figure
    tall = above.get_size_inches()[1]
    rows = min(10, explanation.scene.n_features)
    below = 1.1 + 0.28 * rows
    figure = Figure(figsize=(above.get_size_inches()[0], tall + below), layout="constrained")
    upper, lower = figure.subplots(2, 1, height_ratios=[tall, below])
    explanation.plot("text", ax=upper)
    explanation.plot(kind, top=rows, ax=lower)
    return figure
