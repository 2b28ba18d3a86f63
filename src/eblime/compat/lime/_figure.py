"""Bars with intervals, as a figure that pyplot knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from eblime.plot.style import AGAINST, FAVOUR, INK, caption, clean

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["bar_figure"]


def bar_figure(
    rows: Sequence[tuple[Any, ...]], title: str, figsize: tuple[float, float] | None
) -> Figure:
    """Bars of (name, weight) or (name, weight, low, high), the first one on top."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError("Plots need matplotlib: pip install matplotlib.") from error
    upwards = list(rows)[::-1]
    size = (6.4, 1.1 + 0.34 * len(upwards)) if figsize is None else figsize
    figure = pyplot.figure(figsize=size, layout="tight")  # allows tight_layout() afterwards
    drawn = figure.subplots()
    weights, places = [row[1] for row in upwards], np.arange(len(upwards))
    colours = [FAVOUR if weight > 0 else AGAINST for weight in weights]
    drawn.barh(places, weights, color=colours, height=0.62)
    for place, row in zip(places, upwards, strict=True):
        if len(row) == 4:
            drawn.hlines(place, row[2], row[3], color=INK, linewidth=1.6)
    drawn.axvline(0, color=INK, linewidth=0.8)
    drawn.set_yticks(places, [caption(row[0]) for row in upwards])
    drawn.set_title(caption(title, 60))
    clean(drawn)
    return figure
