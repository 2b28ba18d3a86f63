"""Importances against the width of the kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from eblime._checks import check_count, check_level
from eblime.plot.style import (
    COLOURS,
    INK,
    LINES,
    NEUTRAL,
    axes,
    axis_label,
    caption,
    clean,
    legend_below,
    log_ticks,
    title,
)
from eblime.results.explanation import Explanation
from eblime.results.indices import own_width, posteriors_by_width

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["by_width"]

_WIDTHS, _RANGE = 21, 4.0  # from a quarter of the width used to four times it


def by_width(
    explanation: Explanation,
    *,
    top: int = 4,
    widths: Sequence[float] | None = None,
    prob: float = 0.95,
    ax: Axes | None = None,
) -> Axes:
    """The importances of the leading features against the kernel width, with credible bands.

    All widths come from one fit of `Quadrature` to the answers, without a model call. Flat lines:
    the choice of the width does not matter. A line that crosses others or zero: it does.

    Parameters
    ----------
    explanation
        With an `ExponentialKernel`; its distance stays.
    top
        Number of features.
    widths
        In lime's convention; None is from a quarter of the width used to four times it.
    prob
        Probability of the bands.
    ax
        Where to draw; None makes a new figure.

    Examples
    --------
    >>> import eblime
    >>> score = lambda texts: [len(set(t.split())) / 4 for t in texts]
    >>> e = eblime.TextExplainer(score, n_masks=40).explain("to be or not to be")
    >>> ax = eblime.plot.by_width(e, top=2, widths=[0.5, 1.0, 2.0])
    >>> ax.get_xlabel()
    'width of the kernel'
    """
    check_count("top", top)
    level, used = check_level("prob", prob), own_width(explanation)
    if widths is None:
        widths = np.geomspace(used / _RANGE, used * _RANGE, _WIDTHS).tolist()
    widths = np.sort(np.asarray(widths, dtype=float)).tolist()
    fitted = posteriors_by_width(explanation, widths)
    order = explanation.posterior.order()[:top]
    drawn = axes(ax, (6.4, 3.8))
    for rank, j in enumerate(order):
        colour, style = COLOURS[rank % len(COLOURS)], LINES[rank % len(LINES)]
        low, high = np.array([post.interval(level)[j] for post in fitted]).T
        drawn.fill_between(widths, low, high, color=colour, alpha=0.2, linewidth=0)
        mean = [post.mean[j] for post in fitted]
        drawn.plot(widths, mean, style, color=colour, label=caption(explanation.features[j], 24))
    drawn.axhline(0, color=INK, linewidth=0.8, zorder=0)
    drawn.axvline(used, color=NEUTRAL, linestyle="--", linewidth=1.2, label=f"{used:.3g}, used")
    drawn.set_xlim(widths[0], widths[-1])
    log_ticks(drawn)
    drawn.set_xlabel("width of the kernel")
    drawn.set_ylabel(axis_label(explanation, f"({100 * level:g} %)", longest=30))
    legend_below(drawn)
    title(drawn, explanation)
    clean(drawn)
    return drawn
