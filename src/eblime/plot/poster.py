"""The picture that says most: what was explained, which features matter, and how sure that is."""

from __future__ import annotations

from typing import Any

from eblime.explanation import Explanation

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
    return explanation.plot("intervals" if certain else "means").figure
