"""Columns cut into bins: the bin of a value, and a readable label for it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from eblime._checks import check_choice
from eblime._types import BoolArray, FloatArray, IntArray
from eblime.domains.tabular.cells import (
    Cells,
    as_number,
    edge_text,
    exact_text,
    is_missing,
    is_time,
    python_value,
    value_text,
)

__all__ = ["BinSpec", "Column", "cut_category", "cut_number", "draw_in_bins"]

BINS = ("quartile", "decile", "entropy")
_PERCENTILES = {"quartile": (25, 50, 75), "decile": tuple(range(10, 100, 10))}

_DAY = 86400e6  # microseconds

BinSpec = str | Sequence[float] | Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Column:
    """One column of the background, cut into bins. Missing values have their own bin, -1.

    Numbers are cut at `edges`. Categories, and numbers that are the same in every row, have one bin
    per value: `levels`.
    """

    name: str
    codes: IntArray  # (n,) bin of each row of the background
    numbers: FloatArray | None  # (n,) numbers or times; None for other categories
    edges: FloatArray | None  # (k,) upper edges; a bin includes its edge, as in lime
    levels: Mapping[Any, int] | None  # value -> bin
    lowest: FloatArray  # (bins,) smallest number of each bin, NaN for an empty one
    highest: FloatArray  # (bins,) largest number of each bin
    times: bool = False  # numbers are microseconds
    whole: bool = False  # numbers are whole numbers, or whole days
    limits: tuple[float, float] | None = None  # of a dtype of whole numbers
    labels: dict[int, str] = field(default_factory=dict)  # of bins, written when first needed

    @property
    def is_number(self) -> bool:
        """Whether its values are numbers, neither times nor categories."""
        return self.numbers is not None and not self.times

    def varies(self, by_value: bool) -> bool:
        """Whether the background has several bins, or with `by_value` several values."""
        found = (self.codes != self.codes[0]).any()
        if by_value and self.numbers is not None:
            found |= np.unique(self.numbers).size > 1
        return bool(found)

    def take(self, rows: IntArray) -> Column:
        """The same column of some rows of the background."""
        numbers = None if self.numbers is None else self.numbers[rows]
        return replace(self, codes=self.codes[rows], numbers=numbers)

    def code(self, value: Any) -> int:
        """The bin of a value: -1 if it is missing, -2 if the background does not have it."""
        if is_missing(value):
            return -1
        if self.edges is not None:
            return bisect_left(self.edges, as_number(value))
        assert self.levels is not None
        return self.levels.get(self._key(value), -2)

    def same(self, values: Sequence[Any] | NDArray[Any], own: Any) -> NDArray[np.bool_]:
        """Whether each value is in the bin of the row's own value, (n,)."""
        own_code = self.code(own)
        found = np.array([self.code(value) for value in values]) == own_code
        if own_code == -2:  # not in the background: a separate level
            key = self._key(own)
            found &= [not is_missing(value) and self._key(value) == key for value in values]
        return np.asarray(found)

    def label(self, value: Any) -> str:
        """A readable name for the bin of a value, such as `30 < age <= 45` or `job = cook`."""
        if is_missing(value):
            return f"{self.name} is missing"
        if self.numbers is None:
            return f"{self.name} = {python_value(value)}"
        own, code = as_number(value), self.code(value)
        if self.edges is None or self.lowest[code] == own == self.highest[code]:
            return f"{self.name} {self._value(own)}"
        if not self.lowest[code] <= own <= self.highest[code]:
            return self._bin_label(code, own)
        if code not in self.labels:  # the row's own number adds nothing to those of the bin
            self.labels[code] = self._bin_label(code, own)
        return self.labels[code]

    def _bin_label(self, code: int, own: float) -> str:
        """The name of a bin by its edges."""
        assert self.edges is not None
        low = self._edge(code - 1, own) if code > 0 else None
        high = self._edge(code, own) if code < len(self.edges) else None
        if low is None:
            return f"{self.name} <= {high}"
        return f"{self.name} > {low}" if high is None else f"{low} < {self.name} <= {high}"

    def bin_laws(self) -> FloatArray:
        """The truncated normals that `draw_in_bins` draws from, one row per bin, as in lime.

        A column of whole numbers gets those in the bin.
        """
        assert self.numbers is not None
        assert self.edges is not None
        known = self.numbers[self.codes >= 0]
        known_codes = self.codes[self.codes >= 0]
        n_bins = len(self.edges) + 1
        counts = np.maximum(np.bincount(known_codes, minlength=n_bins), 1)
        mean = np.bincount(known_codes, weights=known, minlength=n_bins) / counts
        squares = (known - mean[known_codes]) ** 2
        sd = np.sqrt(np.bincount(known_codes, weights=squares, minlength=n_bins) / counts) + 1e-11
        low = np.concatenate([[known.min()], self.edges])
        high = np.concatenate([self.edges, [known.max()]])
        start, end = special.ndtr((low - mean) / sd), special.ndtr((high - mean) / sd)
        if self.limits is not None:  # a bin includes its upper edge alone
            low, high = np.append(low[0], np.floor(low[1:]) + 1), np.floor(high)
        return np.stack([start, end - start, mean, sd, low, high], axis=1)

    def _key(self, value: Any) -> Any:
        """A value as a key of `levels`."""
        return python_value(value) if self.numbers is None else as_number(value)

    def _value(self, own: float) -> str:
        """A number, rounded only if it still differs from all others of the background."""
        if self.times:
            return f"= {exact_text(own, times=True)}"
        gaps = np.abs(np.concatenate([self.lowest, self.highest]) - own)
        nearest = np.fmin.reduce(gaps[gaps > 0], initial=np.inf)
        return value_text(own, within=float(nearest) / 2)

    def _edge(self, position: int, own: float) -> str:
        """An edge with enough digits to separate the numbers below it from those above.

        The numbers are the background's and the row's own.
        """
        assert self.edges is not None
        edge = float(self.edges[position])
        below = np.append(self.highest[: position + 1], own if own <= edge else np.nan)
        above = np.append(self.lowest[position + 1 :], own if own > edge else np.nan)
        low = np.fmax.reduce(below, initial=-np.inf)
        high = np.fmin.reduce(above, initial=np.inf)
        return edge_text(edge, float(low), float(high), whole=self.whole, times=self.times)


def draw_in_bins(
    laws: FloatArray, bins: IntArray, chance: FloatArray, whole: BoolArray
) -> FloatArray:
    """Numbers from truncated normals with the mean and spread of each bin, as lime does, (k, n).

    Parameters
    ----------
    laws
        Columns of `Column.bin_laws` for all columns of the table, (6, columns, bins).
    bins
        Which of them each number has, counted over all columns, (k, n).
    chance
        Random numbers between 0 and 1, (k, n).
    whole
        Columns of whole numbers, (k,): they get the nearest ones in the bin.
    """
    some = np.empty(bins.shape)  # one array for all: memory takes longer than arithmetic

    def of(k: int) -> FloatArray:
        laws[k].take(bins, out=some, mode="clip")
        return some

    drawn = chance * of(1)
    drawn += of(0)
    special.ndtri(drawn, out=drawn)
    drawn *= of(3)
    drawn += of(2)
    if whole.any():
        drawn[whole] = drawn[whole].round() + 0.0  # no -0.0
    np.maximum(drawn, of(4), out=drawn)
    np.minimum(drawn, of(5), out=drawn)
    return np.asarray(drawn)


def cut_category(name: str, cells: Cells) -> Column:
    """Cut a column of categories; they are numbered in the order of their first appearance."""
    levels: dict[Any, int] = {}
    values, times = cells.values.astype(object), cells.kind == "time"
    codes = np.empty(len(values), dtype=np.intp)
    for row, value in enumerate(values):
        try:
            missing = is_missing(value)
            codes[row] = -1 if missing else levels.setdefault(python_value(value), len(levels))
        except TypeError as error:
            raise TypeError(
                f"Column {name!r} must hold one number, string or boolean in each row; got "
                f"{value!r:.60} in row {row}. Split it into several columns."
            ) from error
    none = np.empty(0)
    return Column(
        name=name,
        codes=codes,
        numbers=values.astype(np.float64) if times else None,
        edges=None,
        levels=levels,
        lowest=none,
        highest=none,
        times=times,
    )


def cut_number(
    name: str, cells: Cells, bins: BinSpec, labels: NDArray[Any] | None = None
) -> Column:
    """Cut a column of numbers: at percentiles, by a tree that separates labels, or at given edges.

    A column that is the same in every row is not cut: a value is equal to it or not.
    """
    values, times = cells.values, cells.kind == "time"
    missing = np.isnan(values)
    known = values[~missing]
    edges: FloatArray | None = None
    levels: dict[Any, int] | None = {float(number): 0 for number in known[:1]}
    codes, lowest, highest = np.where(missing, -1, 0), known[:1], known[:1]
    if known.size and (known[0] != known).any():
        spec = bins.get(name, "quartile") if isinstance(bins, Mapping) else bins
        if times and spec is bins and not isinstance(spec, str):
            spec = "quartile"  # a list is for the columns of numbers
        if isinstance(spec, str):
            edges = np.unique(_named_edges(spec, values, labels))
        else:
            edges = np.unique(_given_edges(name, spec, times=times))
        levels = None
        codes = np.where(missing, -1, np.searchsorted(edges, values))
        lowest, highest = _ends(values, codes, len(edges) + 1)
    return Column(
        name=name,
        codes=codes,
        numbers=values,
        edges=edges,
        levels=levels,
        lowest=lowest,
        highest=highest,
        times=times,
        whole=bool((known % (_DAY if times else 1.0) == 0).all()),
        limits=cells.limits,
    )


def _given_edges(name: str, spec: Any, *, times: bool) -> FloatArray:
    """Edges that the user gave: numbers, or dates for a column of times."""
    try:
        fits = all(is_time(edge) == times for edge in spec)
        edges = np.array([as_number(edge) for edge in spec]) if fits else np.empty(())
    except (TypeError, ValueError):
        edges = np.empty(())
    if edges.ndim != 1 or not np.isfinite(edges).all():
        kind = "dates, such as datetime.date(2020, 1, 1)" if times else "finite edges"
        raise ValueError(f"`bins` of {name!r} must be a list of {kind}; got {spec!r:.60}.")
    return edges


def _named_edges(spec: str, values: FloatArray, labels: NDArray[Any] | None) -> FloatArray:
    """Where a column of numbers is cut by one of `BINS`."""
    known = values[~np.isnan(values)]
    check_choice("bins", spec, BINS)
    if spec == "entropy":
        if labels is None or len(labels) != len(values):
            raise ValueError(
                'bins="entropy" needs labels, bins=("entropy", labels), one for each of the '
                f"{len(values)} rows; got {'none' if labels is None else len(labels)}."
            )
        return _entropy_edges(known, labels[~np.isnan(values)])
    ends = known.min(), known.max()
    if np.isin(known, ends).all():  # two values: one bin each, however rare one of them is
        return np.array(ends[:1])
    return np.asarray(np.percentile(known, _PERCENTILES[spec]))


def _ends(values: FloatArray, codes: IntArray, count: int) -> tuple[FloatArray, FloatArray]:
    """The smallest and the largest number of each bin, NaN for an empty one."""
    lowest, highest = np.full(count, np.nan), np.full(count, np.nan)
    known = codes >= 0
    np.fmin.at(lowest, codes[known], values[known])
    np.fmax.at(highest, codes[known], values[known])
    return lowest, highest


def _entropy_edges(values: FloatArray, labels: NDArray[Any]) -> FloatArray:
    """Thresholds of a decision tree of depth 3 that splits by entropy, as in lime."""
    try:
        from sklearn.tree import DecisionTreeClassifier
    except ImportError as error:
        raise ImportError(
            "Entropy bins need scikit-learn: pip install 'eblime[sklearn]'."
        ) from error
    tree = DecisionTreeClassifier(criterion="entropy", max_depth=3, random_state=0)
    grown = tree.fit(values[:, None], labels).tree_
    edges = grown.threshold[grown.children_left > -1]
    return np.asarray(edges if edges.size else [np.median(values)], dtype=np.float64)
