"""Colours, and axes to draw on."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from eblime._text import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from eblime.results.explanation import Explanation

__all__ = [
    "AGAINST",
    "FAVOUR",
    "INK",
    "NEUTRAL",
    "axes",
    "caption",
    "clean",
    "in_notebook",
    "log_ticks",
    "new_figure",
    "title",
]

FAVOUR, AGAINST = "#009E73", "#D55E00"  # bluish green and vermilion: for and against
NEUTRAL, INK = "#767676", "#222222"


def axes(ax: Axes | None, size: tuple[float, float]) -> Any:
    """The axes given, or new ones of that size in inches."""
    return new_figure(size, shown=True).subplots() if ax is None else ax


def new_figure(size: tuple[float, float], *, shown: bool = False) -> Any:
    """A new figure of that size in inches, unknown to pyplot: no window opens, none is left open.

    A notebook shows at the end of a cell the figures that pyplot knows, and the value of the last
    line. With `shown` pyplot keeps the figure there, for functions that return Axes; without, the
    figure can be displayed, for functions that return it.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("Plots need matplotlib: pip install matplotlib.") from error
    if not in_notebook():
        return Figure(figsize=size, layout="constrained")
    from matplotlib import pyplot

    figure = pyplot.figure(figsize=size, layout="constrained")
    if not shown:
        pyplot.close(figure)
    return figure


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


def caption(text: object, longest: int = 40) -> str:
    """A name from outside as matplotlib draws it: no formulas, no hidden legends, not too long."""
    shown = printable(text)
    short = shown if len(shown) <= longest else f"{shown[: longest - 1]}…"
    return (" " if short[:1] in ("", "_") else "") + short.replace("$", r"\$")


def title(ax: Any, explanation: Explanation) -> None:
    """Write above the axes what was explained, and how well the surrogate fits."""
    post = explanation.posterior
    ax.set_title(
        f"{caption(explanation.label, 30)}: {explanation.prediction:.3g}\n"
        f"R² {post.r2:.2f}, {caption(post.n_masks)} masks, {caption(post.method, 16)}",
        fontsize="medium",
        loc="left",
    )


def log_ticks(ax: Any) -> None:
    """A log scale on x with plain numbers at 1, 2 and 5."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=12))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())


def clean(ax: Any) -> None:
    """Leave out what carries no information."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.tick_params(length=3, color=NEUTRAL)
