"""Importance over the inputs of a run, and differences between runs or cohorts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from eblime._types import FloatArray
from eblime.core.fit_quality import ROUNDING
from eblime.core.overall import Overall, overall, overall_interval, pool_fits

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["By", "compared", "overall_by_feature", "summarised"]

By = str | Mapping[Any, Any] | Sequence[Any] | None
Found = dict[tuple[Any, str], Overall]  # (group, feature) -> importance over its inputs
MOST = 2_000  # inputs per run in the fit; the others enter through their mean |estimate|
_GOLDEN = 0.6180339887498949  # multiples of it are spread evenly over (0, 1)
_SINGLE = 1e-6  # relative error of numbers in single precision, with a margin


def overall_by_feature(
    pieces: Iterable[pd.DataFrame],
    count: int,
    by: By = None,
    only: Callable[[Any], Any] | None = None,
) -> Found:
    """Importance of each feature over the inputs of each group.

    Parameters
    ----------
    pieces
        Frames of rows; all rows of an input are in the same frame.
    count
        Number of inputs of the run.
    by
        How the inputs are grouped; see `Run.summary`.
    only
        From the numbers of inputs to a boolean array: which of them are used.
    """
    import pandas as pd

    group_of = _grouping(by, count)
    share = min(1.0, MOST / max(count, 1))
    kept, totals = [], []
    for rows in pieces:
        table = _estimates(rows.assign(group=group_of(rows)))
        table = table if only is None else table[only(table["input"].to_numpy())]
        sums = table.assign(size=table["weight"] * table["estimate"].abs())
        sums["signed"] = table["weight"] * table["estimate"]
        sums["variance"] = (table["weight"] * table["se"]) ** 2
        named = sums.groupby(["group", "feature"], sort=False)
        totals.append(named[["weight", "size", "signed", "variance"]].sum())
        kept.append(table[(table["input"] * _GOLDEN) % 1.0 < share])
    if not kept:
        return {}
    sums = pd.concat(totals).groupby(level=["group", "feature"], sort=False).sum()
    sample = pd.concat(kept).groupby(["group", "feature"], sort=False)
    return {key: _fitted(rows, sums.loc[key], share) for key, rows in sample}


def _estimates(rows: pd.DataFrame) -> pd.DataFrame:
    """Estimate, standard error and weight of every row; rows without an estimate are left out.

    Where there were too few masks for least squares, the posterior mean and standard deviation
    serve instead, and a point estimate counts as exact.
    """
    known = rows["estimate"].notna() & rows["se"].notna()
    table = rows[["input", "feature", "group"]].assign(
        estimate=rows["estimate"].where(known, rows["mean"]).astype(float),
        se=rows["se"].where(known, rows["sd"].fillna(0.0)).astype(float),
    )
    table["se"] = np.maximum(table["se"], _rounding(rows, table["estimate"]))
    table = table[np.isfinite(table["estimate"]) & np.isfinite(table["se"])]
    table = table[table["group"].notna()]
    same = table.groupby(["group", "feature", "input"], sort=False)["se"]
    weighted: pd.DataFrame = table.assign(weight=1.0 / same.transform("size"), turn=same.cumcount())
    return weighted


def _rounding(rows: Any, estimate: Any) -> Any:
    """The least standard error of every row: that of rounding, even if all masks were asked.

    It is relative to the largest estimate for the same output. Without it the estimate 1e-17 of a
    feature that the model does not use would count as different from zero.
    """
    same = [rows["input"], rows["target"]]
    largest = estimate.abs().groupby(same, sort=False).transform("max")
    return np.maximum(_SINGLE * largest, ROUNDING * rows["prediction"].abs())


def _fitted(rows: Any, sums: Any, share: float) -> Overall:
    """The fit to a sample of the inputs, corrected by the means of all.

    An input has several rows if several outputs were explained, or if a word occurs twice. Its
    first rows are fitted together, then its second rows, and so on.
    """
    rng = np.random.default_rng(0)
    fits = [
        overall(rng, *(turn[name].to_numpy() for name in ("estimate", "se", "weight")))
        for _, turn in rows.groupby("turn")
    ]
    shares = rows.groupby("turn")["weight"].sum().to_numpy() / rows["weight"].sum()
    fit = pool_fits(fits, shares)
    return fit if share == 1.0 else _corrected(rng, fit, rows, sums)


def _corrected(rng: np.random.Generator, fit: Overall, rows: Any, sums: Any) -> Overall:
    """The fit to a sample, moved by the difference between the mean |estimate| of all and its own.

    The draws also get the error that is left: noise adds about min(|estimate|, se) to |estimate|,
    which differs from input to input.
    """
    estimate, se, weight = (rows[name].to_numpy() for name in ("estimate", "se", "weight"))
    n = float(sums["weight"])
    moved = float(sums["size"]) / n - float(np.average(np.abs(estimate), weights=weight))
    noise = np.minimum(se, np.abs(estimate)).std() / np.sqrt(fit.n)
    size = fit.size + moved + noise * rng.standard_normal(fit.size.shape)
    repeats = np.sqrt(len(rows) / fit.n)  # rows of the same input count as equal
    return replace(
        fit,
        size=np.maximum(size, 0.0),
        mean=float(sums["signed"]) / n,
        mean_se=float(np.sqrt(sums["variance"])) / n * repeats,
        n=round(n),
    )


def _grouping(by: By, count: int) -> Callable[[Any], Any]:
    """From rows to the group of each."""
    if by is None:
        return lambda rows: "all"
    if isinstance(by, str):
        return lambda rows: rows["label"] if by == "label" else _by_column(rows, by)
    if isinstance(by, Mapping):
        if not by:
            raise ValueError("`by` must name the group of at least one input; got an empty one.")
        return lambda rows: _by_mapping(rows, by)
    listed = np.asarray(by, dtype=object)
    if listed.shape != (count,):
        raise ValueError(
            f"`by` must have one group for each of the {count} inputs; got shape {listed.shape}."
        )
    return lambda rows: listed[rows["input"].to_numpy()]


def _by_column(rows: pd.DataFrame, column: str) -> pd.Series[Any]:
    """The bin, or else the value, that the row of a table has in a column."""
    own = rows[rows["feature"] == column].drop_duplicates("input").set_index("input")
    groups = own["bin"].fillna(own["value"])
    if len(rows) and not groups.notna().any():
        raise ValueError(
            f'`by` must be "label", a column of the table, or the group of each input; got '
            f"{column!r:.60}."
        )
    return rows["input"].map(groups)


def _by_mapping(rows: pd.DataFrame, groups: Mapping[Any, Any]) -> pd.Series[Any]:
    """The group of an input by its number or else its name; others are left out."""
    return rows["input"].map(groups).fillna(rows["name"].map(groups))


def summarised(found: Found, prob: float, *, grouped: bool) -> pd.DataFrame:
    """One row per group and feature, the most important first in each group."""
    import pandas as pd

    tail = stats.norm.ppf((1 + prob) / 2)
    table = pd.DataFrame([_row(key, entry, prob, tail) for key, entry in found.items()])
    if table.empty:
        table = pd.DataFrame(columns=["group", *_COLUMNS])
    order, rising = (["group", "mean_abs"], [True, False]) if grouped else (["mean_abs"], [False])
    table = table.sort_values(order, ascending=rising, ignore_index=True, key=_sortable)
    return table if grouped else table.drop(columns="group")


def _sortable(column: pd.Series[Any]) -> pd.Series[Any]:
    """Groups are sorted as text, numbers as they are."""
    return column.map(str) if column.name == "group" else column


_COLUMNS = (
    *("feature", "mean_abs", "inputs", "low", "high", "mean", "mean_low", "mean_high"),
    *("positive", "positive_low", "positive_high"),
    *("negative", "negative_low", "negative_high"),
)


def _row(key: tuple[Any, str], entry: Overall, prob: float, tail: float) -> dict[str, Any]:
    """The columns of one group and feature."""
    low, high = entry.size_interval(prob)
    signs = [_with_interval(draws, prob) for draws in (entry.positive, entry.negative)]
    reach = tail * entry.mean_se
    size = float(np.median(entry.size))
    values = (key[1], size, entry.n, low, high)
    mean = (entry.mean, entry.mean - reach, entry.mean + reach)
    listed = (*values, *mean, *signs[0], *signs[1])
    return {"group": key[0], **dict(zip(_COLUMNS, listed, strict=True))}


def _with_interval(draws: FloatArray, prob: float) -> tuple[float, float, float]:
    """Median and interval of draws from both fits."""
    return (float(np.median(draws)), *overall_interval(draws, prob))


def compared(
    first: Mapping[str, Overall], second: Mapping[str, Overall], prob: float
) -> pd.DataFrame:
    """One row per feature that both have, the clearest difference first."""
    import pandas as pd

    tail = stats.norm.ppf((1 + prob) / 2)
    rows = []
    for feature in (name for name in first if name in second):
        one, two = first[feature], second[feature]
        apart = (one.size[:, None] - two.size[None]).reshape(-1, one.size.shape[1])
        low, high = overall_interval(apart, prob)
        reach = tail * float(np.hypot(one.mean_se, two.mean_se))
        rows.append(
            {
                "feature": feature,
                "mean_abs": float(np.median(one.size)),
                "other_mean_abs": float(np.median(two.size)),
                "difference": float(np.median(apart)),
                "low": low,
                "high": high,
                "mean_difference": one.mean - two.mean,
                "mean_low": one.mean - two.mean - reach,
                "mean_high": one.mean - two.mean + reach,
                "inputs": one.n,
                "other_inputs": two.n,
            }
        )
    if not rows:
        raise ValueError("The two must have a feature in common; got none.")
    table = pd.DataFrame(rows)
    clear = np.maximum(table["low"].to_numpy(), -table["high"].to_numpy())
    return table.iloc[np.argsort(-clear, kind="stable")].reset_index(drop=True)
