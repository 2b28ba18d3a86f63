"""The background: the table that rows are compared with, cut into bins and features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eblime._types import BoolArray, FloatArray, IntArray
from eblime._warn import warn_user
from eblime.domains.tabular import TableScene
from eblime.domains.tabular.binning import BinSpec, Column, cut_category, cut_number
from eblime.domains.tabular.cells import as_number, exact_text, is_missing, value_text
from eblime.domains.tabular.frames import ArrayFrame, Frame, cell_words

__all__ = ["Background", "Feature", "TableSettings", "prepare"]

Groups = Mapping[str, Sequence[str | int]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableSettings:
    """How a table is cut into bins and features; columns are given by their names."""

    categorical: frozenset[str]
    bins: BinSpec
    group_of: Mapping[str, str]  # column -> name of its group
    labels: NDArray[Any] | None  # one per row of the background, for entropy bins

    @classmethod
    def read(
        cls,
        names: Sequence[str],
        categorical: Sequence[str | int] | None,
        bins: BinSpec,
        groups: Groups | None,
        labels: NDArray[Any] | None = None,
    ) -> TableSettings:
        """Check settings of `TabularExplainer`; columns are given by their names or numbers."""
        if isinstance(bins, Mapping):
            bins = {_column_name(names, entry, "bins"): spec for entry, spec in bins.items()}
        group_of: dict[str, str] = {}
        for title, entries in (groups or {}).items():
            for entry in entries:
                name = _column_name(names, entry, "groups")
                if name in group_of:
                    raise ValueError(f"`groups` must not share columns; {name!r} is in two.")
                group_of[name] = str(title)
        return cls(
            categorical=frozenset(
                _column_name(names, entry, "categorical") for entry in categorical or ()
            ),
            bins=bins,
            group_of=group_of,
            labels=labels,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Feature:
    """One column, or a group of columns that change together."""

    name: str
    columns: tuple[int, ...]
    scale: tuple[float, float] | None  # mean and sd of a single column of numbers

    def values_text(self, row: Sequence[Any]) -> str:
        """The row's values, with all their digits."""
        return ", ".join(_value_text(row[c]) for c in self.columns)

    def standardise(self, numbers: Any) -> Any:
        """Numbers minus the mean of their column, divided by its standard deviation."""
        mean, sd = self.scale or (0.0, 1.0)
        return (numbers - mean) / sd


@dataclass(frozen=True, kw_only=True, eq=False)
class Tables:
    """The background in arrays, so that perturbed rows are looked up and not computed."""

    frame: Frame
    columns: Sequence[Column]
    features: Sequence[Feature]
    states: NDArray[Any]  # (p, n) bin of each row; of a group, a number for the bins of its columns

    @classmethod
    def of(cls, frame: Frame, columns: Sequence[Column], features: Sequence[Feature]) -> Tables:
        """The states of the features, in as few bytes as they need."""
        states = np.stack([_states([columns[c].codes for c in f.columns]) for f in features])
        bins = [column.levels if column.edges is None else column.edges for column in columns]
        most = max(int(states.max()), *(0 if some is None else len(some) for some in bins))
        small = states.astype(np.int16 if most < 2**15 else np.int64)
        return cls(frame=frame, columns=columns, features=features, states=small)

    @cached_property
    def words(self) -> ArrayFrame:
        """The words of all values, to find equal rows."""
        return ArrayFrame(native=cell_words(self.frame.native), names=self.frame.names)

    @cached_property
    def repeats(self) -> FloatArray:
        """For each feature, the probability that two rows have the same value, (p,)."""
        one = [np.unique(column, return_counts=True)[1] for column in self.words.native.T]
        same = [float(((count / self.frame.n_rows) ** 2).sum()) for count in one]
        return np.array([min(same[c] for c in feature.columns) for feature in self.features])

    @cached_property
    def counts(self) -> list[dict[int, int]]:
        """For each feature, the number of rows in each state."""
        found = [np.unique(row, return_counts=True) for row in self.states]
        return [dict(zip(*map(np.ndarray.tolist, pair), strict=True)) for pair in found]

    @cached_property
    def repeats_of_draws(self) -> FloatArray:
        """As `repeats`, for numbers drawn in bins: in bins of one number, or of whole numbers."""
        n = self.frame.n_rows
        found = self.repeats.copy()
        for j, feature in enumerate(self.features):
            if feature.scale is not None:
                column = self.columns[feature.columns[0]]
                few = column.lowest == column.highest
                shares = {code: count / n for code, count in self.counts[j].items()}
                kept = [x for code, x in shares.items() if code < 0 or column.limits or few[code]]
                found[j] = sum(x**2 for x in kept)
        return found

    @cached_property
    def bin_laws(self) -> FloatArray:
        """The laws of numbers in bins, (6, p, bins); any law where a feature or a bin has none."""
        laws = {
            j: self.columns[feature.columns[0]].bin_laws()
            for j, feature in enumerate(self.features)
            if feature.scale is not None
        }
        found = np.full((6, len(self.features), max(map(len, laws.values()), default=1)), 0.5)
        for j, law in laws.items():
            found[:, j, : len(law)] = law.T
        return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Background:
    """A table prepared for explaining its rows."""

    frame: Frame
    columns: Sequence[Column]
    features: Sequence[Feature]
    varies: Sequence[bool]  # whether each column has several bins
    column_feature: IntArray  # (d,) feature of each column, p if it belongs to none
    tables: Tables  # of all features
    numbers: IntArray  # (p,) of the features among all of them

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.frame.n_rows

    def by_column(self, rows: IntArray) -> IntArray:
        """Row numbers per feature, (n, p), as row numbers per column, (n, d).

        Columns that belong to no feature get the number of the row itself, `n_rows`.
        """
        p = len(self.features)
        if np.array_equal(self.column_feature, np.arange(p)):
            return rows
        itself = np.full((len(rows), 1), self.n_rows, dtype=rows.dtype)
        return np.concatenate([rows, itself], axis=1).take(self.column_feature, axis=1)

    def states(self, row: Sequence[Any]) -> IntArray:
        """The state of each feature in a row, (p,), as in `Tables.states`; -2 if it has none."""
        return np.array(
            [self._state(*pair, row) for pair in zip(self.numbers, self.features, strict=True)]
        )

    def _state(self, number: int, feature: Feature, row: Sequence[Any]) -> int:
        """The state of a feature in a row."""
        codes = [self.columns[c].code(row[c]) for c in feature.columns]
        if len(codes) == 1:
            return codes[0]
        same = [
            self.columns[c].codes == code for c, code in zip(feature.columns, codes, strict=True)
        ]
        found = np.flatnonzero(np.all(same, axis=0))
        return int(self.tables.states[number, found[0]]) if found.size else -2

    def fixed(self, row: Sequence[Any], *, by_value: bool = False) -> BoolArray | None:
        """Which features are the same in all rows of the background and in the row, (p,).

        They have the same bins, or, with `by_value`, the same values. None if all features vary.
        """
        found = np.array([not self._differs(one, row, by_value) for one in self.features])
        if found.all():
            raise ValueError(
                "`row` must differ from the background in at least one column; it is equal in "
                "all of them."
            )
        return found if found.any() else None

    def without(self, fixed: BoolArray) -> Background:
        """The background without the features that are fixed."""
        kept = np.flatnonzero(~fixed).tolist()
        features = [self.features[j] for j in kept]
        return replace(
            self,
            features=features,
            column_feature=_feature_of_columns(features, len(self.columns)),
            numbers=self.numbers[kept],
        )

    def scene(self, row: Sequence[Any], *, by_value: bool, continuous: bool) -> TableScene:
        """The features of a row in words; columns of numbers and dates by bin or by value."""
        return TableScene(
            features=[self._label(one, row, by_value, continuous) for one in self.features],
            columns=[feature.name for feature in self.features],
            values=[feature.values_text(row) for feature in self.features],
        )

    def _differs(self, feature: Feature, row: Sequence[Any], by_value: bool) -> bool:
        """Whether some row of the background is in another bin than the row, or has another value.

        Missing values and categories are bins of their own.
        """
        for c in feature.columns:
            column, value = self.columns[c], row[c]
            if not by_value:
                differs = self.varies[c] or column.code(value) != column.codes[0]
            elif column.numbers is None or is_missing(value):
                differs = (column.codes != column.code(value)).any()
            else:
                differs = ((column.codes < 0) | (column.numbers != as_number(value))).any()
            if differs:
                return True
        return False

    def _label(self, feature: Feature, row: Sequence[Any], by_value: bool, continuous: bool) -> str:
        """A readable name for a feature: its bin, its value, or the values of a group."""
        if len(feature.columns) > 1:
            return f"{feature.name}: {self._members(feature, row)}"
        value, column = row[feature.columns[0]], self.columns[feature.columns[0]]
        if (by_value or continuous) and feature.scale is not None and not is_missing(value):
            return f"{feature.name} {value_text(float(value))}"
        if by_value and column.times and not is_missing(value):
            return f"{feature.name} = {exact_text(as_number(value), times=True)}"
        return column.label(value)

    def _members(self, feature: Feature, row: Sequence[Any]) -> str:
        """Values of a group; for dummy variables only the names of those that are 1."""
        values = [row[c] for c in feature.columns]
        names = [self.columns[c].name for c in feature.columns]
        if all(not is_missing(v) and v in (0, 1) for v in values):
            on = [name for name, value in zip(names, values, strict=True) if value]
            return ", ".join(on) or "none"
        texts = [  # long numbers are rounded and marked
            value_text(float(value)) if _is_number(value) else f"= {_value_text(value)}"
            for value in values
        ]
        return ", ".join(f"{name} {text}" for name, text in zip(names, texts, strict=True))


def prepare(
    frame: Frame, settings: TableSettings, *, by_value: bool = False, most: int | None = None
) -> Background:
    """Cut every column into bins and build the features; warn about constant columns.

    A background of one row is a reference: a feature has the row's value or the reference's. With
    `by_value` bins do not matter. Of more than `most` rows, that many are kept, drawn at random:
    the same ones each time.
    """
    columns = [_cut_column(c, frame, settings) for c in range(len(frame.names))]
    varies = [column.varies(by_value) for column in columns]
    features = _features(columns, settings.group_of)
    if frame.n_rows > 1:
        both = zip(frame.names, varies, strict=True)
        _check_constant_columns([name for name, several in both if not several], frame.names)
    if most is not None and frame.n_rows > most:
        rows = np.sort(np.random.default_rng(0).choice(frame.n_rows, most, replace=False))
        columns, frame = [column.take(rows) for column in columns], frame.take(rows)
    return Background(
        frame=frame,
        columns=columns,
        features=features,
        varies=varies,
        column_feature=_feature_of_columns(features, len(columns)),
        tables=Tables.of(frame, columns, features),
        numbers=np.arange(len(features)),
    )


def _cut_column(position: int, frame: Frame, settings: TableSettings) -> Column:
    """Cut a column of a table into bins."""
    name, cells, bins = frame.names[position], frame.column(position), settings.bins
    if cells.kind == "category" or name in settings.categorical:
        if isinstance(bins, Mapping) and name in bins:
            raise ValueError(
                f"`bins` must be for columns of numbers or times; {name!r} holds categories."
            )
        return cut_category(name, cells)
    infinite = np.flatnonzero(np.isinf(cells.values))
    if infinite.size:
        row = int(infinite[0])
        raise ValueError(f"Column {name!r} must be finite; got {cells.values[row]} in row {row}.")
    return cut_number(name, cells, bins, settings.labels)


def _check_constant_columns(constant: Sequence[str], names: Sequence[str]) -> None:
    """Warn about columns with a single bin; refuse a background that has no others."""
    if len(constant) == len(names):
        raise ValueError(
            "`background` must have a column that varies; all are constant. To compare with one "
            "reference row, pass only that row."
        )
    if constant:
        more = " ..." if len(constant) > 8 else ""
        warn_user(
            "These columns are the same, or in one bin, in all rows of the background: "
            f"{', '.join(map(repr, constant[:8]))}{more}. Their importance is 0 for rows that do "
            "not differ there."
        )


def _states(codes: Sequence[IntArray]) -> IntArray:
    """The state of a feature in each row, (n,): the bin of a column, or a number for several."""
    if len(codes) == 1:
        return codes[0]
    return np.unique(np.stack(codes, axis=1), axis=0, return_inverse=True)[1].ravel()


def _feature_of_columns(features: Sequence[Feature], n_columns: int) -> IntArray:
    """The feature of each column, p if it belongs to none."""
    owner = np.full(n_columns, len(features), dtype=np.intp)
    for j, feature in enumerate(features):
        owner[list(feature.columns)] = j
    return owner


def _features(columns: Sequence[Column], group_of: Mapping[str, str]) -> list[Feature]:
    """Groups and single columns, in their order of appearance."""
    members: dict[Any, list[int]] = {}
    for c, column in enumerate(columns):
        members.setdefault(group_of.get(column.name, c), []).append(c)
    return [
        Feature(name=key, columns=tuple(found), scale=None)
        if isinstance(key, str)
        else Feature(name=columns[key].name, columns=(key,), scale=_scale(columns[key]))
        for key, found in members.items()
    ]


def _scale(column: Column) -> tuple[float, float] | None:
    """Mean and standard deviation of a column of numbers, as in scikit-learn's scaler."""
    if column.numbers is None or column.times:
        return None
    known = column.numbers[column.codes >= 0]
    mean, sd = (float(known.mean()), float(known.std())) if known.size else (0.0, 0.0)
    return (mean, sd) if sd > 0 else None


def _column_name(names: Sequence[str], entry: str | int, setting: str) -> str:
    """The name of a column that is given by its name or number."""
    if str(entry) in names:
        return str(entry)
    number = isinstance(entry, (int, np.integer)) and not isinstance(entry, bool)
    if number and 0 <= int(entry) < len(names):
        return names[int(entry)]
    raise ValueError(f"`{setting}` must name columns of the background; got {entry!r}.")


def _value_text(value: Any) -> str:
    """A value with all its digits."""
    if is_missing(value):
        return "missing"
    return exact_text(float(value)) if _is_number(value) else str(value)


def _is_number(value: Any) -> bool:
    """Whether a value is a number, and neither missing nor True or False."""
    number = isinstance(value, (int, float, np.number)) and not isinstance(value, (bool, np.bool_))
    return number and not is_missing(value)
