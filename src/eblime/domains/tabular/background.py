"""The background: the rows whose values hide the columns of an explained row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from eblime._types import BoolArray, FloatArray, IntArray
from eblime._warn import warn_user
from eblime.domains.tabular import TableScene, cells
from eblime.domains.tabular.table import Table

_MOST_SORTED = 20_000  # rows that are compared; of more, so many are drawn first
_MOST_CODES = 16  # columns that the categories of a column become; others share them
Groups = Mapping[str, Sequence[str | int]]


class Column(NamedTuple):
    """One column of the background."""

    name: str
    kind: str  # "number", "time" or "category"
    kinds: set[str]  # of its values, in words; empty if they have others
    levels: frozenset[object]  # its categories; none for numbers and times
    constant: tuple[object, ...]  # the value of all rows; () if they differ

    def key(self, value: object) -> Any:
        """What equal values have in common; None for missing ones."""
        if cells.is_missing(value):
            return None
        return cells.python_value(value) if self.kind == "category" else cells.as_number(value)

    def label(self, value: object) -> str:
        """The column with its value in words."""
        known = self.key(value)
        if known is None:
            return f"{self.name} is missing"
        if self.kind == "number":
            text = cells.short_text(known)
            return f"{self.name} {'=' if float(text) == known else '≈'} {text}"
        return f"{self.name} = {known if self.kind == 'category' else cells.time_text(known)}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Background:
    """Rows of a table, prepared for explaining others."""

    table: Table
    columns: Sequence[Column]
    features: Sequence[tuple[str, Sequence[int]]]  # names and columns, hidden together

    def fixed(self, row: Sequence[object]) -> BoolArray:
        """Which features are the same in all rows and in this one, (p,)."""
        same = [column.constant == (column.key(row[c]),) for c, column in enumerate(self.columns)]
        found = np.array([all(same[c] for c in columns) for _, columns in self.features])
        if found.all():
            raise ValueError(
                "`row` must differ from the background in at least one column; it is equal in "
                "all of them."
            )
        return found

    def scene(self, row: Sequence[object]) -> TableScene:
        """The features of a row in words."""
        return TableScene(
            features=[self._label(*feature, row) for feature in self.features],
            columns=[name for name, _ in self.features],
            values=[", ".join(_text(row[c]) for c in columns) for _, columns in self.features],
        )

    def _label(self, name: str, columns: Sequence[int], row: Sequence[object]) -> str:
        """A readable name; of dummy variables only the names of those that are 1."""
        found = [self.columns[c].label(row[c]) for c in columns]
        if len(found) == 1:
            return found[0]
        if all(not cells.is_missing(row[c]) and row[c] in (0, 1) for c in columns):
            found = [self.columns[c].name for c in columns if row[c]] or ["none"]
        return f"{name}: {', '.join(found)}"


def prepare(
    table: Table, group_of: Mapping[str, str], most: int, *, warn: bool = True
) -> Background:
    """Read the columns of a table and keep at most so many of its rows.

    A background of one row is a reference: a feature has the row's value or the reference's.
    """
    every = [table.column(c) for c in range(len(table.names))]
    columns = [_read_column(name, one) for name, one in zip(table.names, every, strict=True)]
    if warn and table.native.shape[0] > 1:
        _check_constant_columns([column.name for column in columns if column.constant], table.names)
    rows = choose_rows(every, most)
    kept = [_read_column("", cells.Cells(one.values[rows], one.kind)).constant for one in every]
    members: dict[str | int, list[int]] = {}
    for c, name in enumerate(table.names):
        members.setdefault(group_of.get(name, c), []).append(c)
    return Background(
        table=table.take(rows),
        columns=[c._replace(constant=now) for c, now in zip(columns, kept, strict=True)],
        features=[
            (k if isinstance(k, str) else table.names[k], found) for k, found in members.items()
        ],
    )


def choose_rows(columns: Sequence[cells.Cells], most: int) -> IntArray:
    """The numbers of at most so many rows that stand for all, each for equally many others.

    The rows are cut in two along the direction in which they differ most, then each part, and so
    on, until there are as many cells of similar rows, and one row of each is drawn: a row of every
    kind, where drawing from all of them would leave this to chance.
    """
    n, rng = len(columns[0].values), np.random.default_rng(0)
    if n <= most:
        return np.arange(n)
    some = np.sort(rng.permutation(n)[: max(most, _MOST_SORTED)])
    encoded = np.hstack([_encode(cells.Cells(one.values[some], one.kind)) for one in columns])
    return np.sort(some[list(_draw_from_cells(rng, encoded, np.arange(len(some)), most))])


def _encode(column: cells.Cells) -> FloatArray:
    """A column as numbers with a variance of one in all; one or several, or none if constant."""
    if column.kind == "category":
        texts = np.array(["" if cells.is_missing(value) else str(value) for value in column.values])
        found = np.eye(_MOST_CODES)[np.unique(texts, return_inverse=True)[1] % _MOST_CODES]
    else:
        known = np.isfinite(column.values)
        found = np.where(known, column.values, column.values[known].sum() / max(1, known.sum()))
        found = found[:, None]
    found = found - found.mean(axis=0)
    size = np.sqrt(np.mean(found**2) * found.shape[1])
    return np.asarray(found / size if size else found[:, :0])


def _draw_from_cells(
    rng: np.random.Generator, encoded: FloatArray, rows: IntArray, n_cells: int
) -> Iterator[int]:
    if n_cells == 1:
        yield int(rng.choice(rows))
        return
    moved, below = encoded[rows] - encoded[rows].mean(axis=0), n_cells // 2
    if encoded.shape[1]:
        axis = np.linalg.eigh(moved.T @ moved)[1][:, -1]
        axis *= np.sign(axis[np.argmax(np.abs(axis).round(9))])  # of equals, the first
        rows = rows[np.argsort((moved @ axis).round(9), kind="stable")]
    cut = int(len(rows) * below / n_cells + rng.random())
    yield from _draw_from_cells(rng, encoded, rows[:cut], below)
    yield from _draw_from_cells(rng, encoded, rows[cut:], n_cells - below)


def group_columns(names: Sequence[str], groups: Groups | None) -> dict[str, str]:
    """The group of each column that has one; columns are given by their names or numbers."""
    found: dict[str, str] = {}
    given: Any = groups or {}
    lists = given.values() if isinstance(given, Mapping) else [None]
    if any(isinstance(each, str) or not isinstance(each, Iterable) for each in lists):
        raise TypeError(
            "`groups` must be a dictionary from names of groups to lists of columns, such as "
            f"{{'job': ['job_a', 'job_b']}}; got {given!r:.80}."
        )
    for title, entries in (groups or {}).items():
        for entry in entries:
            number = names.index(str(entry)) if str(entry) in names else entry
            if not isinstance(number, (int, np.integer)) or not 0 <= number < len(names):
                raise ValueError(f"`groups` must name columns of the background; got {entry!r}.")
            if names[number] in found:
                raise ValueError(f"`groups` must not share columns; {names[number]!r} is in two.")
            found[names[number]] = str(title)
    return found


def _read_column(name: str, read: cells.Cells) -> Column:
    values, kind = read
    if kind == "category":
        levels = set()
        for row, value in enumerate(values):
            try:
                levels |= {None if cells.is_missing(value) else cells.python_value(value)}
            except TypeError as error:
                raise TypeError(
                    f"Column {name!r} must hold one number, string or boolean in each row; got "
                    f"{value!r:.60} in row {row}. Split it into several columns."
                ) from error
        constant = tuple(levels) if len(levels) == 1 else ()
        known = frozenset(levels - {None})
        each = [cells.kinds_of(level)[:1] for level in known]
        return Column(name, kind, set().union(*each) if all(each) else set(), known, constant)
    infinite = np.flatnonzero(np.isinf(values))
    if infinite.size:
        row = int(infinite[0])
        raise ValueError(f"Column {name!r} must be finite; got {values[row]} in row {row}.")
    first, missing = values[0], np.isnan(values)
    same = missing.all() or (values == first).all()
    constant = (None if missing[0] else float(first),) if same else ()
    kinds = {"a number" if kind == "number" else "a date"}
    return Column(name, kind, kinds, frozenset(), constant)


def _check_constant_columns(constant: Sequence[str], names: Sequence[str]) -> None:
    """Warn about columns with a single value; refuse a background that has no others."""
    if len(constant) == len(names):
        raise ValueError(
            "`background` must have a column that varies; all are constant. To compare with one "
            "reference row, pass only that row."
        )
    if constant:
        more = " ..." if len(constant) > 8 else ""
        warn_user(
            "These columns are the same in all rows of the background: "
            f"{', '.join(map(repr, constant[:8]))}{more}. Their importance is 0 for rows that do "
            "not differ there."
        )


def _text(value: Any) -> str:
    if cells.is_missing(value):
        return "missing"
    number = isinstance(value, (int, float, np.number)) and not isinstance(value, (bool, np.bool_))
    return cells.exact_text(float(value)) if number else str(value)
