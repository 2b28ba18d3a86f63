"""The table that rows are compared with: columns cut into bins, and features made of columns."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eblime._types import FloatArray, IntArray
from eblime.domains.binning import BinSpec, Column, cut_category, cut_number
from eblime.domains.frames import ArrayFrame, Frame, as_frame, is_missing
from eblime.domains.numerals import short_text
from eblime.domains.sparse_frame import SparseFrame

__all__ = ["Background", "Feature", "TableSettings", "narrowed", "prepare", "read_row"]

Groups = Mapping[str, Sequence[str | int]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableSettings:
    """How a table is to be read."""

    categorical: Sequence[str | int] | None
    bins: BinSpec
    groups: Groups | None
    labels: NDArray[Any] | None  # of the background's rows, for entropy bins


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Feature:
    """One column, or several that move together."""

    name: str
    columns: tuple[int, ...]
    scale: tuple[float, float] | None  # mean and sd of a single column of numbers

    def written(self, row: Sequence[Any]) -> str:
        """The row's values as people read them."""
        return ", ".join(_written(row[c]) for c in self.columns)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Background:
    """A table prepared for explaining its rows."""

    frame: Frame
    columns: Sequence[Column]
    features: Sequence[Feature]
    constants: Sequence[str]  # columns that never change, which cannot be explained
    column_feature: IntArray  # (d,) feature of each column, p where it is constant

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.frame.n_rows

    def spread(self, places: IntArray) -> IntArray:
        """Rows to take, by feature (n, p), as rows to take by column (n, d)."""
        p = len(self.features)
        if np.array_equal(self.column_feature, np.arange(p)):
            return places
        whole = np.full((len(places), 1), self.n_rows, dtype=places.dtype)
        return np.concatenate([places, whole], axis=1).take(self.column_feature, axis=1)

    def same(self, row: Sequence[Any]) -> NDArray[np.bool_]:
        """Whether the rows of the background share the row's bins, by feature, (p, n)."""
        found = np.ones((len(self.features), self.n_rows), dtype=bool)
        for shared, feature in zip(found, self.features, strict=True):
            for c in feature.columns:
                shared &= self.columns[c].codes == self.columns[c].code(row[c])
        return found

    def label(self, feature: Feature, row: Sequence[Any], continuous: bool) -> str:
        """A feature as people read it: its bin, its value, or the values of a group."""
        if len(feature.columns) > 1:
            return f"{feature.name}: {self._members(feature, row)}"
        value = row[feature.columns[0]]
        if continuous and feature.scale is not None and not is_missing(value):
            return f"{feature.name} = {_written(value)}"
        return self.columns[feature.columns[0]].label(value)

    def _members(self, feature: Feature, row: Sequence[Any]) -> str:
        """The members of a group that are on, for dummies, else all values."""
        values = [row[c] for c in feature.columns]
        names = [self.columns[c].name for c in feature.columns]
        if all(not is_missing(v) and v in (0, 1) for v in values):
            on = [name for name, value in zip(names, values, strict=True) if value]
            return ", ".join(on) or "none"
        return ", ".join(f"{n} = {_written(v)}" for n, v in zip(names, values, strict=True))


def narrowed(settings: TableSettings, names: Sequence[str], columns: IntArray) -> TableSettings:
    """Settings of a wide table for a few of its columns: what speaks of others is left out."""
    kept = {int(c) for c in columns}

    def here(entries: Sequence[str | int], setting: str) -> list[str | int]:
        places = [_place(names, entry, setting) for entry in entries]
        return [names[place] for place in places if place in kept]

    groups = {title: here(entries, "groups") for title, entries in (settings.groups or {}).items()}
    bins = settings.bins
    if isinstance(bins, Mapping):
        told = {_place(names, name, "bins"): spec for name, spec in bins.items()}
        bins = {names[place]: spec for place, spec in told.items() if place in kept}
    return TableSettings(
        categorical=here(settings.categorical or (), "categorical"),
        bins=bins,
        groups={title: members for title, members in groups.items() if members},
        labels=settings.labels,
    )


def prepare(frame: Frame, settings: TableSettings) -> Background:
    """Cut every column into bins and put together the features; constants are left out and told."""
    names = list(frame.names)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"`background` must have different column names; {twice!r} comes twice.")
    forced = {_place(names, entry, "categorical") for entry in settings.categorical or ()}
    bins = settings.bins
    if isinstance(bins, Mapping):
        bins = {names[_place(names, name, "bins")]: spec for name, spec in bins.items()}
    columns = []
    for c, name in enumerate(names):
        values, kind = frame.column(c)
        if kind == "category" or c in forced:
            columns.append(cut_category(name, values.astype(object)))
        else:
            _refuse_infinite(name, values)
            columns.append(
                cut_number(name, values, settings.bins, settings.labels, times=kind == "time")
            )
    changing = [bool((column.codes != column.codes[0]).any()) for column in columns]
    features = _features(columns, changing, settings.groups, names)
    constants = [name for name, moves in zip(names, changing, strict=True) if not moves]
    if not features:
        raise ValueError("`background` must have a column that changes; all are constant.")
    if constants:
        warnings.warn(
            f"These columns are in one bin throughout the background, and are left out: "
            f"{', '.join(map(repr, constants[:8]))}{' ...' if len(constants) > 8 else ''}.",
            stacklevel=4,
        )
    owner = np.full(len(names), len(features), dtype=np.intp)
    for j, feature in enumerate(features):
        owner[list(feature.columns)] = j
    return Background(
        frame=frame, columns=columns, features=features, constants=constants, column_feature=owner
    )


def read_row(row: Any, background: Background) -> list[Any]:
    """A row's values in the order of the columns, each of them one that can be explained."""
    names = [column.name for column in background.columns]
    values = _values(row, names, by_place=isinstance(background.frame, ArrayFrame))
    for column, value in zip(background.columns, values, strict=True):
        _check_value(column, value)
    return values


def _values(row: Any, names: Sequence[str], *, by_place: bool) -> list[Any]:
    """The values of a mapping, a series, a frame of one row, or a sequence.

    For an array's columns labels count where they are the names, else places.
    """
    if hasattr(row, "columns") and hasattr(row, "shape"):  # a frame
        frame = as_frame(row)
        if isinstance(frame, SparseFrame) or frame.n_rows != 1:
            raise ValueError(f"`row` must be one row; got {frame.n_rows}.")
        import narwhals as nw

        native = nw.from_native(row, eager_only=True)
        row = {str(name): native[:, c].to_list()[0] for c, name in enumerate(native.columns)}
    elif hasattr(row, "index") and hasattr(row, "items"):  # a pandas series
        row = {str(name): value for name, value in row.items()}
    if by_place and isinstance(row, Mapping) and len(row) == len(names):
        row = row if all(name in row for name in names) else list(row.values())
    if isinstance(row, Mapping):
        known = {str(name): value for name, value in row.items()}
        absent = [name for name in names if name not in known]
        if absent:
            raise ValueError(
                f"`row` must have every column of the background; missing: "
                f"{', '.join(map(repr, absent[:8]))}{' ...' if len(absent) > 8 else ''}."
            )
        return [known[name] for name in names]
    if isinstance(row, (str, bytes)) or not hasattr(row, "__len__"):
        raise TypeError(
            "`row` must be a dictionary, a series, a frame of one row or a sequence; "
            f"got {type(row).__name__}."
        )
    listed = row.ravel() if isinstance(row, np.ndarray) else row
    values = [v.item() if isinstance(v, np.generic) else v for v in listed]
    if len(values) != len(names):
        raise ValueError(
            f"`row` must have a value for each of the {len(names)} columns; got {len(values)}."
        )
    return values


def _check_value(column: Column, value: Any) -> None:
    """Refuse a value that the background gives no way to explain."""
    if column.edges is not None and not is_missing(value):
        stamp = hasattr(value, "isoformat") or isinstance(value, np.datetime64)
        if stamp != column.times:
            kind = "a date" if column.times else "a number"
            raise TypeError(f"Column {column.name!r} must be {kind} in the row; got {value!r:.60}.")
        if not stamp and not isinstance(value, (int, float, bool, np.number, np.bool_)):
            raise TypeError(
                f"Column {column.name!r} must be a number in the row; got {value!r:.60}."
            )
        if not stamp and not np.isfinite(float(value)):
            raise ValueError(f"Column {column.name!r} must be finite in the row; got {value!r}.")
        return
    code = column.code(value)
    if code == -1 and not (column.codes == -1).any():
        raise ValueError(
            f"Column {column.name!r} is missing in the row, and never is in the background: there "
            "is nothing to compare it with."
        )
    if code == -2:
        known = [repr(category) for category in list(column.places or ())[:8]]
        raise ValueError(
            f"Column {column.name!r} must have a category of the background in the row; got "
            f"{value!r:.60}, known are {', '.join(known)}"
            f"{' ...' if len(column.places or ()) > 8 else ''}."
        )


def _features(
    columns: Sequence[Column], changing: Sequence[bool], groups: Groups | None, names: list[str]
) -> list[Feature]:
    """Groups in their order of appearance, then every other column that changes."""
    member: dict[int, str] = {}
    for title, entries in (groups or {}).items():
        for entry in entries:
            place = _place(names, entry, "groups")
            if place in member:
                raise ValueError(f"`groups` must not share columns; {names[place]!r} is in two.")
            member[place] = str(title)
    found: list[Feature] = []
    done: set[str] = set()
    for c, column in enumerate(columns):
        group = member.get(c)
        if group is None and changing[c]:
            found.append(Feature(name=column.name, columns=(c,), scale=_scale(column)))
        elif group is not None and group not in done:
            done.add(group)
            places = tuple(sorted(place for place, name in member.items() if name == group))
            if any(changing[place] for place in places):
                found.append(Feature(name=group, columns=places, scale=None))
    return found


def _scale(column: Column) -> tuple[float, float] | None:
    """Mean and standard deviation of a column of numbers, as scikit-learn's scaler has them."""
    if column.numbers is None or column.times:
        return None
    mean, sd = float(np.nanmean(column.numbers)), float(np.nanstd(column.numbers))
    return (mean, sd) if sd > 0 else None


def _place(names: Sequence[str], entry: str | int, setting: str) -> int:
    """A column by name or number."""
    if str(entry) in names:
        return list(names).index(str(entry))
    number = isinstance(entry, (int, np.integer)) and not isinstance(entry, bool)
    if number and 0 <= int(entry) < len(names):
        return int(entry)
    raise ValueError(f"`{setting}` must name columns of the background; got {entry!r}.")


def _refuse_infinite(name: str, values: FloatArray) -> None:
    """Numbers must be finite or missing."""
    if np.isinf(values).any():
        row = int(np.flatnonzero(np.isinf(values))[0])
        raise ValueError(f"Column {name!r} must be finite; got {values[row]} in row {row}.")


def _written(value: Any) -> str:
    """A value in the few signs people read."""
    if is_missing(value):
        return "missing"
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.number)):
        return str(value)
    return short_text(float(value))
