"""Colours, axes and captions that all plots share."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from eblime._text import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from eblime.results.explanation import Explanation

__all__ = [
    "AGAINST",
    "COLOURS",
    "FAVOUR",
    "INK",
    "LINES",
    "NEUTRAL",
    "axes",
    "caption",
    "clean",
    "in_notebook",
    "log_ticks",
    "needs_domain",
    "new_figure",
    "rgb",
    "title",
]

FAVOUR, AGAINST = "#009E73", "#D55E00"  # bluish green raises the score, vermilion lowers it
NEUTRAL, INK = "#767676", "#222222"
COLOURS = (FAVOUR, AGAINST, "#0072B2", "#CC79A7", "#E69F00", "#56B4E9")  # of several features
LINES = ("-", "--", "-.", ":")


def axes(ax: Axes | None, size: tuple[float, float]) -> Any:
    """The given axes, or new ones of that size in inches."""
    return new_figure(size, shown=True).subplots() if ax is None else ax


def new_figure(size: tuple[float, float], *, shown: bool = False) -> Any:
    """A new figure of that size in inches, without pyplot: no window opens.

    At the end of a cell, a notebook shows the open figures of pyplot and the value of the last
    line. With `shown`, pyplot keeps the figure open there: for functions that return Axes. Without,
    the figure itself can be displayed: for functions that return the figure.
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
    """A name as matplotlib draws it: not a formula, not left out of the legend, not too long."""
    shown = printable(text)
    short = shown if len(shown) <= longest else f"{shown[: longest - 1]}…"
    return (" " if short[:1] in ("", "_") else "") + short.replace("$", r"\$")


def title(ax: Any, explanation: Explanation) -> None:
    """Set the title: what was explained, and how well the surrogate fits."""
    post = explanation.posterior
    ax.set_title(
        f"{caption(explanation.label, 30)}: {explanation.prediction:.3g}\n"
        f"{post.fit_label(2, 'R²')}, {caption(post.n_masks)} masks, {caption(post.method, 16)}",
        fontsize="medium",
        loc="left",
    )


def needs_domain(explanation: Explanation, domain: str, what: str) -> None:
    """Raise a TypeError unless the explanation is of that domain."""
    if explanation.scene.domain != domain:
        article = "an" if domain[0] in "aeiou" else "a"
        raise TypeError(
            f"{what} needs {article} {domain} explanation; "
            f"the domain of this one is {explanation.scene.domain!r}."
        )


def rgb(colour: str) -> tuple[float, float, float]:
    """A hexadecimal colour as three numbers in [0, 1]."""
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return red, green, blue


def log_ticks(ax: Any) -> None:
    """A log scale on x with plain numbers at 1, 2 and 5."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=12))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())


def clean(ax: Any) -> None:
    """Remove the upper and right spines."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.tick_params(length=3, color=NEUTRAL)
