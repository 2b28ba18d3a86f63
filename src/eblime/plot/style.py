"""Colours, axes and captions that all plots share."""

from __future__ import annotations

import sys
import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from eblime._text import printable
from eblime._types import BoolArray, FloatArray, IntArray
from eblime.results.notes import barely_moves, cautions, nothing_certain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

    from eblime.posterior import Posterior
    from eblime.results.explanation import Explanation

FAVOUR, AGAINST = "#009E73", "#D55E00"  # bluish green raises the score, vermilion lowers it
NEUTRAL, INK, MARK = "#767676", "#222222", "#0072B2"
COLOURS = (FAVOUR, AGAINST, "#0072B2", "#CC79A7", "#E69F00", "#56B4E9")  # of several features
LINES = ("-", "--", "-.", ":")
STRONGEST = 0.6  # opacity of the colour over the largest importance, if it is certain
PALE = 0.2  # of this strength, if the scores barely move

_LONGEST_NAME = 160  # characters in a title
_LONG_SCALE = 1e3  # ratio of the ends of a log scale above which 2 and 5 have no tick


def axes(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """The given axes, or new ones of that size in inches."""
    return new_figure(size, shown=True).subplots() if ax is None else ax


def beside(ax: Axes) -> Axes | None:
    """New axes in the left half of the place of others; None for axes outside a grid."""
    place: Any = ax.get_subplotspec()
    if place is None:
        return None
    left, right = place.subgridspec(1, 2, wspace=0.02)
    ax.set_subplotspec(right)
    found: Axes = ax.figure.add_subplot(left)
    return found


def feature_axes(
    ax: Axes | None, explanation: Explanation, order: IntArray, *, row: float = 0.28
) -> Axes:
    """Axes with one named row per feature of `order`, from below, and a line at zero."""
    drawn = axes(ax, (6.4, 1.1 + row * len(order)))
    drawn.axvline(0, color=INK, linewidth=0.8, zorder=0)
    drawn.set_yticks(range(len(order)), [caption(explanation.features[j]) for j in order])
    drawn.set_ylim(-0.6, len(order) - 0.4)
    drawn.locator_params(axis="x", nbins=6)
    return drawn


def new_figure(size: tuple[float, float], *, shown: bool = False) -> Figure:
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


def heading(text: object, columns: int) -> str:
    """A name for a title: in lines of about so many characters, and cut only if it is very long."""
    return "\n".join(textwrap.wrap(caption(text, _LONGEST_NAME), columns)) or " "


def axis_label(
    explanation: Explanation, note: str = "", *, longest: int = 36, what: str = "importance"
) -> str:
    """The label of an axis of importances, in lines of about `longest` characters.

    A long class name would otherwise be cut off, or overlap with the power of ten of the ticks.
    """
    words = (caption(explanation.label, 28), explanation.unit and f"({explanation.unit})", note)
    parts = [part.replace(" ", "\xa0") for part in words if part]
    return textwrap.fill(f"{what} for {' '.join(parts)}", longest).replace("\xa0", " ")


def title(ax: Axes, explanation: Explanation, *lines: str) -> None:
    """Set the title: what was explained and how well the surrogate fits, and below it lines."""
    post = explanation.posterior
    first = heading(f"{printable(explanation.label)}: {explanation.prediction:.3g}", 44)
    fit, size = post.fit_label(2, "R²"), "small" if lines else "medium"
    text = [f"{first}, {fit}", *filter(None, lines)]
    if not lines:
        text = [first, heading(f"{fit}, {post.n_masks} masks, {printable(post.method)}", 60)]
    ax.set_title("\n".join(text), fontsize=size, loc="left")


def needs_domain(explanation: Explanation, domain: str, what: str) -> None:
    """Raise a TypeError unless the explanation is of that domain."""
    if explanation.scene.domain != domain:
        article = "an" if domain[0] in "aeiou" else "a"
        raise TypeError(
            f"{what} needs {article} {domain} explanation; "
            f"the domain of this one is {explanation.scene.domain!r}."
        )


def uncertain(explanation: Explanation) -> BoolArray:
    """Whether the 95 % interval of each feature contains zero; always False without intervals."""
    post = explanation.posterior
    if not post.has_spread:
        return np.zeros(post.n_features, dtype=bool)
    low, high = post.interval().T
    return np.asarray(~((low > 0) | (high < 0)))


def signed_shares(explanation: Explanation, most: float | None = None) -> FloatArray:
    """How strongly each feature is coloured, (p,), from -1 to 1; 0: the interval contains zero.

    The end of the 95 % interval nearest to zero, divided by the largest mean or by `most`. So a
    colour is as strong as what is certain of the importance; all are pale if scores barely move.
    """
    post = explanation.posterior
    most = (most or float(np.abs(post.mean).max()) or 1.0) / (PALE if barely_moves(post) else 1)
    if not post.has_spread:
        return np.asarray(post.mean / most)
    low, high = post.interval().T
    least = np.where(low > 0, low, np.where(high < 0, high, 0.0))
    return np.asarray((least / most).clip(-1, 1))


def sign_colour(value: float) -> str:
    """The colour of an importance: green raises the score, orange lowers it, grey does neither."""
    return FAVOUR if value > 0 else AGAINST if value < 0 else NEUTRAL


def rgb(colour: str) -> tuple[float, float, float]:
    """A hexadecimal colour as three numbers in [0, 1]."""
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return red, green, blue


def log_ticks(ax: Axes) -> None:
    """A log scale on x with plain numbers at 1, 2 and 5, or only at 1 if it is long.

    Call it after everything is drawn.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    ax.set_xscale("log")
    low, high = ax.get_xlim()
    digits = (1, 2, 5) if high <= _LONG_SCALE * low else (1,)
    ax.xaxis.set_major_locator(LogLocator(subs=digits, numticks=12))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())


def tick_shares(low: float, high: float, most: int) -> list[tuple[float, str]]:
    """At most that many round numbers between two ends: where, from 0 to 1, and the number."""
    span = high - low
    power = 10.0 ** np.floor(np.log10(span / most))
    step = next(power * k for k in (1, 2, 5, 10) if span / (power * k) <= most)
    numbers = step * np.arange(np.ceil(low / step - 1e-9), np.floor(high / step + 1e-9) + 1)
    return [((value - low) / span, f"{value + 0.0:.6g}") for value in numbers.tolist()]


def legend_below(ax: Axes) -> None:
    """A legend below the axes, where it hides no line."""
    ax.legend(
        frameon=False, fontsize="small", loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=3
    )


def diverging(strength: float = 1.0) -> Colormap:
    """A colour map from orange over white to green; `strength` is the strength of its ends."""
    from matplotlib.colors import LinearSegmentedColormap

    against, favour = (
        tuple(1 - strength * (1 - part) for part in rgb(colour)) for colour in (AGAINST, FAVOUR)
    )
    return LinearSegmentedColormap.from_list("signs", [against, (0.97, 0.97, 0.97), favour])


def sign_bar(
    ax: Axes,
    post: Posterior,
    label: str = "importance",
    strength: float = STRONGEST,
    *,
    two_way: bool = True,
) -> None:
    """A legend of colours beside the axes: importances up, and across the width of the interval."""
    from matplotlib.colorbar import make_axes

    most = float(np.abs(post.mean).max()) or 1.0
    two_way &= post.has_spread
    value, width = np.meshgrid(np.linspace(-1, 1, 81), np.linspace(0, 1, 41), indexing="ij")
    certain = value * (1 - width) if two_way else value
    inches = ax.get_window_extent().height / ax.figure.dpi
    bar, _ = make_axes(ax, shrink=min(0.8, 2.6 / inches), aspect=7 if two_way else 20)
    ends = (0, 100, -most, most)
    shown = diverging(strength * (PALE if barely_moves(post) else 1))((certain + 1) / 2)
    bar.imshow(shown, origin="lower", aspect="auto", extent=ends)
    bar.yaxis.set(ticks_position="right", label_position="right")
    bar.set_ylabel(label)
    bar.tick_params(labelsize="small")
    bar.set_xticks([])
    if two_way:
        bar.set_xlabel("95 % interval:\n±0 \N{RIGHTWARDS ARROW} ±100 %", fontsize="x-small")


def write_cautions(ax: Axes, explanation: Explanation) -> None:
    """Write across a picture that nothing is certain in it, or why it may mean nothing."""
    lines = [*filter(None, [nothing_certain(explanation)]), *cautions(explanation)]
    if lines:
        to_share = ax.transData + ax.transAxes.inverted()
        taken = [to_share.transform(text.get_position())[1] for text in ax.texts]  # by numbers
        free = max((0.5, 0.8, 0.2), key=lambda y: min([abs(y - at) for at in taken], default=1))
        box = {"boxstyle": "round,pad=0.4", "facecolor": "#fff3d6", "alpha": 0.92, "linewidth": 0}
        looks: Any = {"ha": "center", "va": "center", "color": INK, "bbox": box, "zorder": 9}
        words = "\n".join(textwrap.fill(line, 32) for line in lines)
        ax.text(0.5, free, words, fontweight="bold", transform=ax.transAxes, **looks)


def clean(ax: Axes) -> None:
    """Remove the upper and right spines."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.tick_params(length=3, color=NEUTRAL)
