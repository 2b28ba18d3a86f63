"""Columns as bins: where a number lies, which category a value is, and what people call it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from eblime._checks import check_choice
from eblime._types import FloatArray, IntArray
from eblime.domains.frames import as_number, is_missing

__all__ = ["BINS", "Column", "cut_category", "cut_number", "short", "within_bins"]

BINS = ("quartile", "decile", "entropy")
_PERCENTILES = {"quartile": (25, 50, 75), "decile": tuple(range(10, 100, 10))}

BinSpec = str | Sequence[float] | Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Column:
    """One column of the background, cut into bins; missing values have a bin of their own, -1."""

    name: str
    codes: IntArray  # (n,) bin of each row of the background
    numbers: FloatArray | None  # (n,) its numbers, None for categories
    edges: FloatArray | None  # bins of numbers: up to and including each edge, as in lime
    places: Mapping[Any, int] | None  # category -> bin
    times: bool = False  # numbers are nanoseconds
    alone: Mapping[int, float] = field(default_factory=dict)  # bin -> the one number it holds

    def code(self, value: Any) -> int:
        """The bin of another value; -2 for a category that the background does not have."""
        if is_missing(value):
            return -1
        if self.edges is not None:
            return bisect_left(self.edges, as_number(value))
        assert self.places is not None
        return self.places.get(_plain(value), -2)

    def label(self, value: Any) -> str:
        """What people call the bin of a value, such as `30 < age <= 45` or `job = cook`."""
        if is_missing(value):
            return f"{self.name} is missing"
        if self.edges is None:
            return f"{self.name} = {_plain(value)}"
        place, own = self.code(value), as_number(value)
        if self.alone.get(place) == own:
            return f"{self.name} = {self._written(own)}"
        low = self._written(self.edges[place - 1]) if place > 0 else None
        high = self._written(self.edges[place]) if place < len(self.edges) else None
        if low is None:
            return f"{self.name} <= {high}"
        return f"{self.name} > {low}" if high is None else f"{low} < {self.name} <= {high}"

    def _written(self, number: float) -> str:
        """A number or a day as people read it."""
        if not self.times:
            return short(number)
        day, _, hour = str(np.datetime64(int(number), "ns"))[:16].partition("T")
        return day if hour == "00:00" else f"{day} {hour}"


def cut_category(name: str, values: NDArray[Any]) -> Column:
    """A column of categories, numbered in the order they come."""
    places: dict[Any, int] = {}
    try:
        codes = [-1 if is_missing(v) else places.setdefault(_plain(v), len(places)) for v in values]
    except TypeError as error:
        raise TypeError(
            f"Column {name!r} must hold numbers, strings or booleans; got {values[0]!r:.60}."
        ) from error
    return Column(
        name=name, codes=np.array(codes, dtype=np.intp), numbers=None, edges=None, places=places
    )


def cut_number(
    name: str,
    values: FloatArray,
    bins: BinSpec,
    labels: NDArray[Any] | None = None,
    *,
    times: bool = False,
) -> Column:
    """A column of numbers, cut at percentiles, by a tree that separates the labels, or as told."""
    known = values[~np.isnan(values)]
    spec = bins.get(name, "quartile") if isinstance(bins, Mapping) else bins
    if known.size == 0:
        edges = np.empty(0)
    elif isinstance(spec, str):
        check_choice("bins", spec, BINS)
        if spec == "entropy":
            edges = _entropy_edges(known, _labels_of(values, labels))
        else:
            edges = np.percentile(known, _PERCENTILES[spec])
            ends = known.min(), known.max()
            if np.isin(known, ends).all():  # two values: a bin each, however rare one of them is
                edges = np.array(ends[:1])
    else:
        edges = np.asarray(spec, dtype=np.float64)
        if edges.ndim != 1 or not np.isfinite(edges).all():
            raise ValueError(f"`bins` of {name!r} must be a list of finite edges; got {spec!r}.")
    edges = np.unique(edges)
    codes = np.where(np.isnan(values), -1, np.searchsorted(edges, values))
    return Column(
        name=name,
        codes=codes,
        numbers=values,
        edges=edges,
        places=None,
        times=times,
        alone=_alone(values, codes),
    )


def within_bins(rng: np.random.Generator, column: Column, codes: IntArray) -> FloatArray:
    """Normals with the mean and spread of their bin, cut off at its ends: lime's law."""
    assert column.numbers is not None
    assert column.edges is not None
    known = column.numbers[column.codes >= 0]
    places = column.codes[column.codes >= 0]
    count = len(column.edges) + 1
    held = np.maximum(np.bincount(places, minlength=count), 1)
    mean = np.bincount(places, weights=known, minlength=count) / held
    spread = np.bincount(places, weights=(known - mean[places]) ** 2, minlength=count) / held
    sd = np.sqrt(spread) + 1e-11
    low = np.concatenate([[known.min()], column.edges])
    high = np.concatenate([column.edges, [known.max()]])
    start, end = special.ndtr((low - mean) / sd), special.ndtr((high - mean) / sd)
    chance = start[codes] + rng.random(len(codes)) * (end - start)[codes]
    drawn = mean[codes] + sd[codes] * special.ndtri(chance)
    return np.where(codes < 0, np.nan, np.clip(drawn, low[codes], high[codes]))


def short(value: Any) -> str:
    """A number in the few digits people read."""
    number = float(value)
    if number == round(number) and abs(number) < 1e7:
        return str(round(number))
    return f"{number:.4g}"


def _alone(values: FloatArray, codes: IntArray) -> dict[int, float]:
    """Bins that hold one number only, and that number."""
    order = np.argsort(codes, kind="stable")
    places, starts = np.unique(codes[order], return_index=True)
    low = np.minimum.reduceat(values[order], starts)
    high = np.maximum.reduceat(values[order], starts)
    return {
        int(place): float(number)
        for place, number, most in zip(places, low, high, strict=True)
        if number == most
    }


def _labels_of(values: FloatArray, labels: NDArray[Any] | None) -> NDArray[Any]:
    """The labels of the rows whose number is known."""
    if labels is None or len(labels) != len(values):
        raise ValueError(
            'bins="entropy" must be given `background_labels`, one for each of the '
            f"{len(values)} rows; got {'none' if labels is None else len(labels)}."
        )
    return labels[~np.isnan(values)]


def _entropy_edges(values: FloatArray, labels: NDArray[Any]) -> FloatArray:
    """Thresholds of a decision tree of depth 3 grown by entropy, as in lime."""
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


def _plain(value: Any) -> Any:
    """A Python value: NumPy's own types compare and print as Python's."""
    return value.item() if isinstance(value, np.generic) else value
