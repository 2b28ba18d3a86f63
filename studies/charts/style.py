"""The look of the figures of the measurement pages, and names that several of them share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

__all__ = ["canvas", "legend_below", "log_ticks", "save", "span"]

DOCS = Path(__file__).parents[2] / "docs"
RESULTS, IMAGES = DOCS / "results", DOCS / "images"
NAMES = {
    "lime": "LIME",
    "bayeslime": "BayesLIME",
    "eblime-paper": "EBLIME as printed",
    "eblime-ridge": "EBLIME, one ridge parameter",
    "eblime": "EBLIME",
}
COLOURS = {
    "lime": "#767676",
    "bayeslime": "#D55E00",
    "eblime-paper": "#0072B2",
    "eblime-ridge": "#56B4E9",
    "eblime": "#009E73",
}
GREEN, RED, BLUE, SKY, GREY, PALE = "#009E73", "#D55E00", "#0072B2", "#56B4E9", "#767676", "#c4c4c4"
PRINTED = ("bayeslime", "eblime-paper")  # the methods of the paper's Table 2


def canvas(rows: int, columns: int, width: float, height: float, **how: Any) -> tuple[Figure, Any]:
    """A figure and its axes, in inches."""
    figure = Figure(figsize=(width, height), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False, **how)
    for axes in panels.flat:
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=8.5)
    return figure, panels


def save(figure: Figure, name: str, dpi: int = 120) -> None:
    """Write a picture with 256 colours, which takes a third of the space."""
    from PIL import Image

    path = IMAGES / f"{name}.png"
    figure.savefig(path, dpi=dpi)
    with Image.open(path) as image:
        image.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)


def legend_below(figure: Figure, axes: Axes, columns: int) -> None:
    """One legend for all panels."""
    lines, names = axes.get_legend_handles_labels()
    figure.legend(
        lines, names, loc="outside lower center", ncols=columns, frameon=False, fontsize=9
    )


def log_ticks(axes: Axes, values: Sequence[int], name: str) -> None:
    """A logarithmic horizontal axis with these ticks alone."""
    axes.set_xscale("log")
    axes.set_xticks(list(values), [f"{value:,}" for value in values])
    axes.minorticks_off()
    axes.set_xlabel(name, fontsize=9)


def span(values: Any, digits: int = 0, *, times: float = 100) -> str:
    """The smallest and the largest value, in per cent."""
    return f"{times * min(values):.{digits}f} to {times * max(values):.{digits}f}"
