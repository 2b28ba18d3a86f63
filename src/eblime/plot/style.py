"""Colours, and axes to draw on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eblime._text import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["AGAINST", "FAVOUR", "INK", "NEUTRAL", "axes", "caption", "clean", "log_ticks"]

FAVOUR, AGAINST = "#009E73", "#D55E00"  # bluish green and vermilion: for and against
NEUTRAL, INK = "#767676", "#222222"


def axes(ax: Axes | None, size: tuple[float, float]) -> Any:
    """The axes given, or new ones of that size in inches."""
    if ax is not None:
        return ax
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("Pictures need matplotlib: pip install matplotlib.") from error
    return Figure(figsize=size, layout="constrained").subplots()


def caption(text: object, longest: int = 40) -> str:
    """A name from outside as matplotlib draws it: no formulas, no hidden legends, not too long."""
    shown = printable(text)
    short = shown if len(shown) <= longest else f"{shown[: longest - 1]}…"
    return (" " if short[:1] in ("", "_") else "") + short.replace("$", r"\$")


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
