"""Plots of runs over tables: the importances of all inputs, with the values of their rows.

Points whose sign is uncertain are faint, so that noise is not read as signal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from eblime._checks import check_count
from eblime._types import FloatArray
from eblime.plot.style import AGAINST, FAVOUR, INK, NEUTRAL, axes, caption, clean, rgb

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["RunLike", "beeswarm", "dependence"]

_MOST = 1_500  # points per feature
_FAINT, _CLEAR = 0.06, 0.9  # opacity of an uncertain and of a certain point
_UNUSED = 0.35  # opacity of a feature that may not be used, relative to others
_ROOM = 0.4  # half of the height of a swarm


class RunLike(Protocol):
    """What the plots read of a run."""

    def frame(self) -> Any:
        """One row per input, target and feature."""

    def summary(self, prob: float = 0.95, *, by: Any = None) -> Any:
        """Importance of each feature over all inputs, or over those of each group."""


def beeswarm(
    run: RunLike, *, top: int = 12, label: str | None = None, ax: Axes | None = None
) -> Axes:
    """One point per input and feature: importance across, the row's value as colour.

    Features are ordered by their importance over all inputs. Points whose sign is uncertain are
    faint, and so are all points of a feature that may not be used: one whose interval in
    `Run.summary` begins at zero. Values that are not numbers are grey.

    Parameters
    ----------
    run
        A run over a table.
    top
        Number of features.
    label
        Draw only explanations of this output.
    ax
        Where to draw; None makes new axes.
    """
    check_count("top", top)
    rows = _rows(run, label)
    ranked = _ranked(run, label).head(top)[::-1]
    order = list(ranked["feature"])
    drawn = axes(ax, (7.2, 1.3 + 0.42 * len(order)))
    width = float(rows["mean"].abs().max()) or 1.0
    for position, (feature, low) in enumerate(zip(order, ranked["low"], strict=True)):
        points = _thinned(rows[rows["feature"] == feature])
        height = position + _swarm(points["mean"].to_numpy(dtype=float) / width)
        colours = _colours(points) * [1, 1, 1, 1.0 if low > 0 else _UNUSED]
        drawn.scatter(points["mean"], height, c=colours, s=12, linewidths=0)
    drawn.axvline(0, color=INK, linewidth=0.8, zorder=0)
    drawn.set_yticks(range(len(order)), [caption(name) for name in order])
    for text, low in zip(drawn.get_yticklabels(), ranked["low"], strict=True):
        text.set_color(INK if low > 0 else NEUTRAL)
    drawn.set_ylim(-0.7, len(order) - 0.3)
    drawn.set_xlabel(f"importance for {_output(rows)} (faint: uncertain)")
    _value_bar(drawn)
    clean(drawn)
    return drawn  # type: ignore[no-any-return]


def dependence(
    run: RunLike, *, feature: str, label: str | None = None, ax: Axes | None = None
) -> Axes:
    """Importance of a column against its value in each row, with the intervals of single rows.

    The black lines are means over the rows of a bin or category, with their 95 % intervals as
    bands; they are not shrunk.

    Parameters
    ----------
    run
        A run over a table.
    feature
        The column.
    label
        Draw only explanations of this output.
    ax
        Where to draw; None makes new axes.
    """
    rows = _rows(run, label)
    known = list(dict.fromkeys(rows["feature"]))
    if feature not in known:
        listed = ", ".join(repr(name) for name in known[:12])
        raise ValueError(f"`feature` must be one of {listed}; got {feature!r:.60}.")
    rows = rows[rows["feature"] == feature]
    rows = rows.assign(x=_positions(rows))
    drawn = axes(ax, (6.4, 4.0))
    points = _thinned(rows)
    shade = _certainty(points)
    sides = np.where(points["mean"] > 0, 0, 1)
    colours = np.column_stack([np.array([rgb(FAVOUR), rgb(AGAINST)])[sides], shade])
    faint = colours * [1, 1, 1, 0.3]
    if points["low"].notna().all():
        drawn.vlines(points["x"], points["low"], points["high"], colors=faint, linewidth=0.8)
    drawn.scatter(points["x"], points["mean"], c=colours, s=14, linewidths=0, zorder=3)
    _bin_means(drawn, rows)
    drawn.axhline(0, color=INK, linewidth=0.8, zorder=0)
    drawn.set_xlabel(caption(feature))
    drawn.set_ylabel(f"importance for {_output(rows)}")
    if _numbers(rows) is None:
        names = sorted(rows["value"].astype(str).unique())
        drawn.set_xticks(range(len(names)), [caption(name, 16) for name in names])
    clean(drawn)
    return drawn  # type: ignore[no-any-return]


def _rows(run: RunLike, label: str | None) -> Any:
    """The rows of a run over a table, of one output if it is named."""
    rows = run.frame()
    if not rows["value"].notna().any():
        raise TypeError("This plot needs a run over a table; this run has no values of columns.")
    if label is None:
        return rows
    if label not in set(rows["label"]):
        listed = ", ".join(map(repr, sorted(set(rows["label"]))[:12]))
        raise ValueError(f"`label` must be one of {listed}; got {label!r:.60}.")
    return rows[rows["label"] == label]


def _ranked(run: RunLike, label: str | None) -> Any:
    """The features with their importance over all inputs, the most important first."""
    if label is None:
        return run.summary()
    table = run.summary(by="label")
    return table[table["group"] == label]


def _output(rows: Any) -> str:
    """The name of the explained output, if it is the same for all rows."""
    names = rows["label"].unique()
    return caption(names[0]) if len(names) == 1 else "the explained output"


def _thinned(rows: Any) -> Any:
    """At most 1,500 rows, spread evenly over the run."""
    step = -(-len(rows) // _MOST)
    return rows.iloc[::step]


def _certainty(rows: Any) -> FloatArray:
    """Opacity of each point: faint if its sign is a coin toss, clear if it is certain."""
    chance = rows["prob_positive"].fillna(1.0).to_numpy(dtype=float)
    certain = np.abs(2 * chance - 1) ** 3
    return np.asarray(_FAINT + (_CLEAR - _FAINT) * certain)


def _colours(rows: Any) -> FloatArray:
    """Colour by the rank of the row's value, opacity by certainty, (n, 4)."""
    from matplotlib import colormaps

    values = _numbers(rows)
    if values is None:
        colours = np.tile([*rgb(NEUTRAL), 1.0], (len(rows), 1))
    else:
        ranks = values.rank(method="average", pct=True).to_numpy(dtype=float)
        colours = colormaps["viridis"](0.95 * ranks)
    colours[:, 3] = _certainty(rows)
    return np.asarray(colours)


def _numbers(rows: Any) -> Any:
    """The rows' values as numbers; None if they are categories."""
    import pandas as pd

    values = pd.to_numeric(rows["value"], errors="coerce")
    return values if values.notna().mean() > 0.5 else None


def _positions(rows: Any) -> Any:
    """Where the row's value is drawn: the number itself, or the number of its category."""
    values = _numbers(rows)
    if values is not None:
        return values
    names = sorted(rows["value"].astype(str).unique())
    # spread evenly, so that points do not hide each other
    jitter = 0.5 * (np.arange(len(rows)) * 0.6180339887 % 1.0 - 0.5)
    return rows["value"].astype(str).map(names.index) + jitter


def _swarm(x: FloatArray) -> FloatArray:
    """Heights that spread points with similar x, within +- 0.4."""
    cells = np.round(x * 80).astype(int)
    _, group, counts = np.unique(cells, return_inverse=True, return_counts=True)
    seen = np.zeros(len(counts), dtype=int)
    height = np.empty(len(x))
    for i, cell in enumerate(group):
        rank = seen[cell]
        height[i] = (1 if rank % 2 else -1) * ((rank + 1) // 2)
        seen[cell] += 1
    return height * min(0.06, _ROOM / max(float(np.abs(height).max()), 1.0))


def _bin_means(drawn: Any, rows: Any) -> None:
    """Means over the rows of each bin, with 95 % bands; of least-squares estimates if stored."""
    stored = rows["estimate"].notna().all() and rows["se"].notna().all()
    names = ("estimate", "se") if stored else ("mean", "sd")
    for _, group in rows.groupby(rows["bin"].fillna(rows["value"]).fillna("missing"), sort=False):
        x = group["x"].dropna()
        if x.empty:
            continue
        mean = float(group[names[0]].mean())
        reach = 1.96 * float(np.sqrt((group[names[1]].fillna(0.0) ** 2).sum())) / len(group)
        ends = [float(x.min()), float(x.max())]
        drawn.fill_between(ends, mean - reach, mean + reach, color=INK, alpha=0.25, linewidth=0)
        drawn.plot(ends, [mean, mean], color=INK, linewidth=1.6, zorder=4)


def _value_bar(drawn: Any) -> None:
    """The colours of low and high values."""
    from matplotlib.cm import ScalarMappable

    bar = drawn.figure.colorbar(ScalarMappable(cmap="viridis"), ax=drawn, aspect=40, pad=0.02)
    bar.set_ticks([0.0, 1.0], labels=["low", "high"])
    bar.set_label("value of the column", labelpad=-12)
    bar.outline.set_visible(False)
