"""Plots of runs over tables: the importances of all inputs, with the values of their rows.

Points whose sign is uncertain are faint, so that noise is not read as signal.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from eblime._checks import check_count
from eblime._text import name_outputs
from eblime._types import FloatArray
from eblime.plot.style import INK, NEUTRAL, axes, caption, clean, rgb, sign_colour

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from eblime.batch.results import Run

_MOST = 1_500  # points per feature
_FAINT, _CLEAR = 0.06, 0.9  # opacity of an uncertain and of a certain point
_UNUSED = 0.35  # opacity of a feature that may not be used, relative to others
_ROOM = 0.4  # half of the height of a swarm
_COLUMNS = ["label", "feature", "value", "mean", "sd", "low", "high", "prob_positive", "estimate"]
_COLUMNS += ["se"]
_FEW = 12  # numbers of a column that have places of their own, at most
_GOLDEN = 0.6180339887498949  # multiples of it are spread evenly over (0, 1)


def beeswarm(run: Run, *, top: int = 12, label: str | None = None, ax: Axes | None = None) -> Axes:
    """One point per input and feature: importance across, the row's value as colour.

    Features are ordered by their importance over all inputs. Points whose sign is uncertain are
    faint, and so are all points of a feature that may not be used: one whose interval in
    `Run.summary` begins at zero; its name is grey. Values that are not numbers are grey.

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

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> rows = np.random.default_rng(0).random((20, 3))
    >>> explainer = eblime.TabularExplainer(lambda table: table[:, 0], rows, n_masks=50)
    >>> run = eblime.explain_many(explainer, rows[:4], progress=False)
    >>> ax = eblime.plot.beeswarm(run)  # or run.plot("beeswarm")
    >>> ax.get_yticklabels()[-1].get_text()  # the most important column is on top
    'column 0'
    """
    from matplotlib.cm import ScalarMappable

    check_count("top", top)
    rows = _rows(run, label)
    ranked = run.summary(by=None if label is None else "label")  # the most important first
    ranked = (ranked if label is None else ranked[ranked["group"] == label]).head(top)[::-1]
    order = list(ranked["feature"])
    drawn = axes(ax, (7.2, 1.3 + 0.42 * len(order)))
    width = float(rows["mean"].abs().max()) or 1.0
    for position, (feature, low) in enumerate(zip(order, ranked["low"], strict=True)):
        own = rows[rows["feature"] == feature]
        points = _thin(own)
        height = position + _swarm(points["mean"] / width)
        colours = _colours(points) * [1, 1, 1, 1.0 if low > 0 else _UNUSED]
        drawn.scatter(points["mean"], height, c=colours, s=12, linewidths=0)
    drawn.axvline(0, color=INK, linewidth=0.8, zorder=0)
    drawn.set_yticks(range(len(order)), [caption(name) for name in order])
    for text, low in zip(drawn.get_yticklabels(), ranked["low"], strict=True):
        text.set_color(INK if low > 0 else NEUTRAL)
    drawn.set_ylim(-0.7, len(order) - 0.3)
    note = "faint: uncertain" + "; grey name: may not be used" * bool((ranked["low"] <= 0).any())
    drawn.set_xlabel(f"{_axis_name(run, own)}\n({note})")
    bar = drawn.figure.colorbar(ScalarMappable(cmap="viridis"), ax=drawn, aspect=40, pad=0.02)
    bar.set_ticks([0.0, 1.0], labels=["low", "high"])
    bar.set_label("value of the column", labelpad=-12)
    clean(drawn)
    return drawn


def dependence(
    run: Run,
    *,
    feature: str | None = None,
    label: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Importance of a column against its value in each row, with the intervals of single rows.

    Points of a category, or of a number in a column with few, are spread sideways. The black lines
    are their means, with their 95 % intervals as bands. They are least-squares estimates. The
    points are posterior means, which are shrunk towards zero, so a line can lie beyond most of its
    points.

    Parameters
    ----------
    run
        A run over a table.
    feature
        The column; None is refused, and the columns are listed.
    label
        Draw only explanations of this output.
    ax
        Where to draw; None makes new axes.

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> rows = np.random.default_rng(0).random((20, 3))
    >>> explainer = eblime.TabularExplainer(lambda table: table[:, 0], rows, n_masks=50)
    >>> run = eblime.explain_many(explainer, rows[:4], progress=False)
    >>> ax = eblime.plot.dependence(run, feature="column 0")  # or run.plot("dependence", ...)
    >>> ax.get_xlabel()
    'column 0'
    """
    rows = _rows(run, label)
    known = list(dict.fromkeys(rows["feature"]))
    if feature not in known:
        listed = ", ".join(repr(name) for name in known[:12])
        raise ValueError(f"`feature` must be one of {listed}; got {feature!r:.60}.")
    rows = rows[rows["feature"] == feature]
    x, ticks, missing = _positions(rows)
    rows = rows.assign(x=x)
    drawn = axes(ax, (6.4, 4.0))
    points = _thin(rows)
    signs = np.array([rgb(sign_colour(mean)) for mean in points["mean"]])
    colours: Any = np.column_stack([signs, _certainty(points)])  # matplotlib allows no arrays
    drawn.scatter(points["x"], points["mean"], c=colours, s=14, linewidths=0, zorder=3)
    ends = points["low"], points["high"]  # NaN for a point estimate
    drawn.vlines(points["x"], *ends, colors=colours * [1, 1, 1, 0.3], linewidth=0.8)
    drawn.axhline(0, color=INK, linewidth=0.8, zorder=0)
    drawn.set(xlabel=caption(feature), ylabel=_axis_name(run, rows))
    if ticks:
        drawn.set_xticks(list(ticks), list(ticks.values()))
        _place_means(drawn, rows)
    if missing is not None:
        style: Any = {"color": NEUTRAL, "rotation": 90, "ha": "center", "va": "bottom"}
        drawn.text(missing, 0.01, "missing", transform=drawn.get_xaxis_transform(), **style)
    clean(drawn)
    return drawn


def _rows(run: Run, label: str | None) -> pd.DataFrame:
    rows = run.frame(_COLUMNS)
    if not rows["value"].notna().any():
        raise TypeError("This plot needs a run over a table; this run has no values of columns.")
    if label is None:
        return rows
    if label not in set(rows["label"]):
        listed = ", ".join(map(repr, sorted(set(rows["label"]))[:12]))
        raise ValueError(f"`label` must be one of {listed}; got {label!r:.60}.")
    return rows[rows["label"] == label]


def _axis_name(run: Run, rows: pd.DataFrame) -> str:
    """The axis of the importances of one feature: for which output, or for each how often."""
    predicted = run.settings["targets"] == 1
    words = name_outputs(Counter(rows["label"]), predicted=predicted)
    return textwrap.fill(f"importance for {caption(words, 120)}", 48)


def _thin(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.iloc[:: -(-len(rows) // _MOST)]


def _certainty(rows: pd.DataFrame) -> FloatArray:
    """Opacity of each point: faint if its sign is a coin toss, clear if it is certain."""
    chance = rows["prob_positive"].fillna(1.0).to_numpy(dtype=float)
    certain = np.abs(2 * chance - 1) ** 3
    return np.asarray(_FAINT + (_CLEAR - _FAINT) * certain)


def _colours(rows: pd.DataFrame) -> FloatArray:
    """Colour by the rank of the row's value, opacity by certainty, (n, 4)."""
    from matplotlib import colormaps

    colours, values = np.tile([*rgb(NEUTRAL), 1.0], (len(rows), 1)), _numbers(rows)
    if values is not None:
        known = values.notna().to_numpy()
        ranks = values[known].rank().to_numpy()
        ranks = ranks - ranks.min()
        colours[known] = colormaps["viridis"](0.95 * ranks / max(ranks.max(), 1.0))
    colours[:, 3] = _certainty(rows)
    return colours


def _numbers(rows: pd.DataFrame) -> pd.Series[float] | None:
    """The rows' values as numbers, NaN where missing; None if they are categories."""
    import pandas as pd

    values = pd.to_numeric(rows["value"], errors="coerce")
    return values if values.notna().mean() > 0.5 else None


def _positions(rows: pd.DataFrame) -> tuple[FloatArray, dict[float, str], float | None]:
    """Where values are drawn, ticks that matplotlib does not set, and where missing values are.

    A number is drawn at its value, and a missing one to the right. A category, or a number of a
    column with few numbers, has a place of its own.
    """
    values, names = _numbers(rows), rows["value"].fillna("missing").astype(str)
    spread = np.arange(len(rows)) * _GOLDEN % 1.0 - 0.5  # so that points do not hide each other
    if values is None or values.nunique() <= _FEW:
        order = names.sort_values() if values is None else names[values.sort_values().index]
        places = {name: float(j) for j, name in enumerate(dict.fromkeys(order))}
        ticks = {j: caption(name, 16) for name, j in places.items()}
        return names.map(places).to_numpy() + 0.5 * spread, ticks, None
    x, unknown = values.to_numpy(dtype=float), values.isna().to_numpy()
    low, high = float(np.nanmin(x)), float(np.nanmax(x))
    right = high + 0.08 * (high - low)
    x = np.where(unknown, right + 0.4 * (right - high) * spread, x)
    return np.asarray(x, dtype=np.float64), {}, right if unknown.any() else None


def _swarm(x: pd.Series[float]) -> FloatArray:
    """Heights that spread points with similar x, within +- 0.4."""
    cells = (80 * x).round()
    rank = cells.groupby(cells).cumcount().to_numpy()
    height = np.where(rank % 2, 1, -1) * ((rank + 1) // 2)
    return np.asarray(height * min(0.06, _ROOM / max(np.abs(height).max(), 1.0)))


def _place_means(drawn: Axes, rows: pd.DataFrame) -> None:
    """Means over the rows of each place, with 95 % bands; of least-squares estimates if stored."""
    stored = rows["estimate"].notna().all() and rows["se"].notna().all()
    names, kind = (("estimate", "se"), ", not shrunk") if stored else (("mean", "sd"), "")
    label = f"mean of a value{kind} (95 %)"
    for place, group in rows.groupby(rows["x"].round()):
        mean, ends = float(group[names[0]].mean()), [place - 0.25, place + 0.25]
        reach = 1.96 * float(np.sqrt((group[names[1]].fillna(0.0) ** 2).sum())) / len(group)
        drawn.fill_between(ends, mean - reach, mean + reach, color=INK, alpha=0.25, linewidth=0)
        drawn.plot(ends, [mean, mean], color=INK, linewidth=1.6, zorder=4, label=label)
        label = ""  # one entry in the legend
    drawn.legend(loc="lower right", bbox_to_anchor=(1, 1), frameon=False, fontsize="small")
