"""Bars: importances with their credible intervals, and several explanations side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from eblime._checks import check_count, check_level
from eblime.plot.style import (
    AGAINST,
    COLOURS,
    FAVOUR,
    INK,
    NEUTRAL,
    axes,
    axis_label,
    caption,
    clean,
    needs_domain,
    title,
)
from eblime.results.explanation import Explanation

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["compare", "intervals", "means", "side_by_side", "valued"]

_PALETTE = (*COLOURS, INK, NEUTRAL)  # of several explanations, which also differ in shape
_MARKERS = ("o", "s", "D", "^", "v", "P", "X", "*")


def intervals(explanation: Explanation, *, top: int = 15, ax: Axes | None = None) -> Axes:
    """The most important features with mean, 50 % and 95 % intervals: the paper's Fig. 1.

    Green raises the score and orange lowers it; grey where the 95 % interval contains zero.

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> rows = np.random.default_rng(0).random((50, 3))
    >>> e = eblime.TabularExplainer(lambda table: table[:, 0], rows, n_masks=50).explain(rows[0])
    >>> ax = eblime.plot.intervals(e, top=3)
    >>> ax.get_yticklabels()[-1].get_text()  # the most important feature is on top
    '0.5506 < column 0 <= 0.8078'
    """
    check_count("top", top)
    post = explanation.posterior
    order = post.order()[:top][::-1]
    wide, narrow, mean = post.interval(0.95)[order], post.interval(0.5)[order], post.mean[order]
    drawn = axes(ax, (6.4, 1.1 + 0.28 * len(order)))
    for row, (outer, inner, centre) in enumerate(zip(wide, narrow, mean, strict=True)):
        colour = FAVOUR if outer[0] > 0 else AGAINST if outer[1] < 0 else NEUTRAL
        drawn.hlines(row, *outer, color=colour, linewidth=1.6)
        drawn.hlines(row, *inner, color=colour, linewidth=5)
        drawn.plot(centre, row, "o", color="white", markeredgecolor=INK, markersize=5, zorder=3)
    drawn.axvline(0, color=INK, linewidth=0.8, zorder=0)
    drawn.set_yticks(range(len(order)), [caption(explanation.features[j]) for j in order])
    drawn.set_ylim(-0.6, len(order) - 0.4)
    drawn.locator_params(axis="x", nbins=6)
    drawn.set_xlabel(axis_label(explanation, "(bars: 50 % and 95 %)"))
    title(drawn, explanation)
    clean(drawn)
    return drawn


def means(explanation: Explanation, *, top: int = 15, ax: Axes | None = None) -> Axes:
    """The most important features as bars from zero, for methods that give a point estimate.

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> rows = np.random.default_rng(0).random((50, 3))
    >>> e = eblime.TabularExplainer(lambda table: table[:, 0], rows, n_masks=50).explain(rows[0])
    >>> ax = eblime.plot.means(e, top=3)
    >>> ax.get_yticklabels()[-1].get_text()  # the most important feature is on top
    '0.5506 < column 0 <= 0.8078'
    """
    check_count("top", top)
    mean, order = explanation.posterior.mean, explanation.posterior.order()[:top][::-1]
    drawn = axes(ax, (6.4, 1.1 + 0.28 * len(order)))
    colours = [FAVOUR if mean[j] > 0 else AGAINST for j in order]
    drawn.barh(range(len(order)), mean[order], color=colours, height=0.6)
    drawn.axvline(0, color=INK, linewidth=0.8)
    drawn.set_yticks(range(len(order)), [caption(explanation.features[j]) for j in order])
    drawn.locator_params(axis="x", nbins=6)
    drawn.set_xlabel(axis_label(explanation))
    title(drawn, explanation)
    clean(drawn)
    return drawn


def valued(explanation: Explanation, *, top: int = 12, ax: Axes | None = None) -> Axes:
    """A row of a table: bars with 95 % whiskers, and beside each the value of its column.

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> rows = np.random.default_rng(0).random((50, 3))
    >>> e = eblime.TabularExplainer(lambda table: table[:, 0], rows, n_masks=50).explain(rows[0])
    >>> ax = eblime.plot.valued(e)
    >>> len(ax.patches)
    3
    """
    scene: Any = explanation.scene
    needs_domain(explanation, "tabular", 'plot("values")')
    check_count("top", top)
    post = explanation.posterior
    order = post.order()[:top][::-1]
    mean, rows = post.mean[order], np.arange(len(order))
    drawn = axes(ax, (7.2, 1.1 + 0.34 * len(order)))
    colours = [FAVOUR if value > 0 else AGAINST for value in mean]
    drawn.barh(rows, mean, color=colours, height=0.62, alpha=0.85)
    if post.has_spread:
        ends = post.interval()[order]
        drawn.hlines(rows, ends[:, 0], ends[:, 1], color=INK, linewidth=1.6)
    drawn.axvline(0, color=INK, linewidth=0.8)
    drawn.set_yticks(rows, [caption(explanation.features[j]) for j in order])
    beside = drawn.secondary_yaxis("right")
    beside.set_yticks(rows, [caption(scene.values[j], 18) for j in order])
    beside.tick_params(length=0, labelcolor=NEUTRAL)
    beside.spines["right"].set_visible(False)
    drawn.set_xlabel(axis_label(explanation, "(whiskers: 95 %)" if post.has_spread else ""))
    title(drawn, explanation)
    clean(drawn)
    return drawn


def compare(
    first: Explanation,
    second: Explanation,
    *,
    names: tuple[str, str] | None = None,
    top: int = 12,
    ax: Axes | None = None,
) -> Axes:
    """Two explanations of the same features: means and 95 % intervals, one below the other.

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> rows = np.random.default_rng(0).random((50, 3))
    >>> e = eblime.TabularExplainer(lambda table: table[:, 0], rows, n_masks=50).explain(rows[0])
    >>> ax = eblime.plot.compare(e, e.refit("bayeslime"))
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['EBLIME', 'BayesLIME']
    """
    labels = (first.posterior.method, second.posterior.method) if names is None else names
    if labels[0] == labels[1]:
        labels = (f"{labels[0]} (first)", f"{labels[1]} (second)")
    return side_by_side(dict(zip(labels, (first, second), strict=True)), top=top, ax=ax)


def side_by_side(
    explanations: Mapping[str, Explanation],
    *,
    top: int = 10,
    prob: float = 0.95,
    ax: Axes | None = None,
) -> Axes:
    """Several explanations of the same features: means and intervals, one below the other.

    Parameters
    ----------
    explanations
        By name, as in the legend. A point estimate has no interval.
    top
        How many features: those with the largest mean of any explanation.
    prob
        Level of the intervals.
    ax
        Where to draw; None makes a new figure.
    """
    check_count("top", top)
    check_level("prob", prob)
    entries = list(explanations.values())
    for other in entries[1:]:
        if list(entries[0].features) != list(other.features):
            raise ValueError(
                "The explanations must have the same features; got "
                f"{len(entries[0].features)} and {len(other.features)} features that differ."
            )
    size = np.abs(np.stack([entry.posterior.mean for entry in entries])).max(axis=0)
    order = np.argsort(-size, kind="stable")[:top][::-1]
    drawn = axes(ax, (6.4, 1.2 + (0.12 + 0.12 * len(entries)) * max(len(order), 3)))
    shifts = 0.32 * np.linspace(1, -1, len(entries)) * (1 - 1 / len(entries))
    for k, (name, entry) in enumerate(explanations.items()):
        colour, marker = _PALETTE[k % len(_PALETTE)], _MARKERS[k % len(_MARKERS)]
        mean, rows = entry.posterior.mean[order], np.arange(len(order)) + shifts[k]
        if entry.posterior.has_spread:
            ends = entry.posterior.interval(prob)[order]
            drawn.hlines(rows, ends[:, 0], ends[:, 1], color=colour, linewidth=2)
        drawn.plot(mean, rows, marker, color=colour, markersize=5, label=caption(name))
    drawn.axvline(0, color=INK, linewidth=0.8, zorder=0)
    drawn.set_yticks(range(len(order)), [caption(entries[0].features[j]) for j in order])
    drawn.set_ylim(-0.6, len(order) - 0.4)
    drawn.set_xlabel(f"importance (bars: {100 * prob:g} %)")
    _legend(drawn, len(entries))
    labels = dict.fromkeys(caption(entry.label, 30) for entry in entries)
    drawn.set_title(" and\n".join(labels), fontsize="medium", loc="left")
    clean(drawn)
    return drawn


def _legend(drawn: Axes, entries: int) -> None:
    """The legend: inside for two explanations, and beside the bars for more."""
    if entries <= 2:
        drawn.legend(frameon=False, loc="best", fontsize="small")
    else:
        drawn.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0))
