"""The table that rows are compared with: columns cut into bins, and features made of columns."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eblime._types import FloatArray, IntArray
from eblime.domains.tabular.binning import BinSpec, Column, cut_category, cut_number
from eblime.domains.tabular.frames import Frame, is_missing
from eblime.domains.tabular.numerals import short_text

__all__ = ["Background", "Feature", "TableSettings", "narrowed", "prepare"]

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
    changing: Sequence[bool]  # whether each column has several bins
    column_feature: IntArray  # (d,) feature of each column, p where it has none

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
        """Whether the rows of the background, and the row itself at the end, share its bins.

        By feature, (p, n + 1).
        """
        found = np.ones((len(self.features), self.n_rows + 1), dtype=bool)
        for shared, feature in zip(found, self.features, strict=True):
            for c in feature.columns:
                shared[:-1] &= self.columns[c].codes == self.columns[c].code(row[c])
        return found

    def for_row(self, row: Sequence[Any]) -> Background:
        """The background with the features that can be explained for a row.

        A feature that is the same in every row of the background counts where the row differs.
        """
        kept = [feature for feature in self.features if self._differs(feature, row)]
        if not kept:
            raise ValueError(
                "`row` must differ from the background in at least one column; it is the same in "
                "all of them."
            )
        if len(kept) == len(self.features):
            return self
        return replace(self, features=kept, column_feature=_owners(kept, len(self.columns)))

    def _differs(self, feature: Feature, row: Sequence[Any]) -> bool:
        """Whether a feature has several bins, or the row is in another one than the background."""
        return any(
            self.changing[c] or self.columns[c].code(row[c]) != self.columns[c].codes[0]
            for c in feature.columns
        )

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
    """Cut every column into bins and put together the features; warn about constant columns.

    A background of one row is a reference: a feature has the row's value or the reference's.
    """
    names = list(frame.names)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"`background` must have different column names; {twice!r} comes twice.")
    columns = _cut_columns(frame, settings)
    changing = [bool((column.codes != column.codes[0]).any()) for column in columns]
    features = _features(columns, settings.groups, names)
    if frame.n_rows > 1:
        _check_constants(
            [name for name, moves in zip(names, changing, strict=True) if not moves], names
        )
    return Background(
        frame=frame,
        columns=columns,
        features=features,
        changing=changing,
        column_feature=_owners(features, len(names)),
    )


def _cut_columns(frame: Frame, settings: TableSettings) -> list[Column]:
    """Every column of a table, cut into bins."""
    names = list(frame.names)
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
            columns.append(cut_number(name, values, bins, settings.labels, times=kind == "time"))
    return columns


def _check_constants(constants: Sequence[str], names: Sequence[str]) -> None:
    """Warn about columns in one bin; refuse a background that has no others."""
    if len(constants) == len(names):
        raise ValueError(
            "`background` must have a column that changes; all are constant. To compare with one "
            "reference row, pass that row alone."
        )
    if constants:
        warnings.warn(
            f"These columns are in one bin throughout the background, and are left out for rows in "
            f"that bin: {', '.join(map(repr, constants[:8]))}"
            f"{' ...' if len(constants) > 8 else ''}.",
            stacklevel=5,
        )


def _owners(features: Sequence[Feature], n_columns: int) -> IntArray:
    """The feature of each column, p where it has none."""
    owner = np.full(n_columns, len(features), dtype=np.intp)
    for j, feature in enumerate(features):
        owner[list(feature.columns)] = j
    return owner


def _features(columns: Sequence[Column], groups: Groups | None, names: list[str]) -> list[Feature]:
    """Groups and other columns, in their order of appearance."""
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
        if group is None:
            found.append(Feature(name=column.name, columns=(c,), scale=_scale(column)))
        elif group not in done:
            done.add(group)
            places = tuple(sorted(place for place, name in member.items() if name == group))
            found.append(Feature(name=group, columns=places, scale=None))
    return found


def _scale(column: Column) -> tuple[float, float] | None:
    """Mean and standard deviation of a column of numbers, as scikit-learn's scaler has them."""
    if column.numbers is None or column.times:
        return None
    known = column.numbers[column.codes >= 0]
    mean, sd = (float(known.mean()), float(known.std())) if known.size else (0.0, 0.0)
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
