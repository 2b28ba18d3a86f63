"""Reading one row: its values in the order of the background's columns, checked by kind."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence, Sized
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, Protocol, runtime_checkable

import numpy as np

from eblime.domains.tabular.array_frame import ArrayFrame
from eblime.domains.tabular.background import Background
from eblime.domains.tabular.binning import Column
from eblime.domains.tabular.cells import is_missing, is_time, plain
from eblime.domains.tabular.frame import Frame
from eblime.domains.tabular.frames import as_frame
from eblime.domains.tabular.sparse_frame import SparseFrame

__all__ = ["in_column_order", "labelled", "read_row"]


@runtime_checkable
class DataFrameLike(Protocol):
    """A data frame of any library."""

    @property
    def columns(self) -> Any:
        """Its columns or their names."""
        ...

    @property
    def shape(self) -> tuple[int, ...]:
        """(rows, columns)."""
        ...


@runtime_checkable
class SeriesLike(Protocol):
    """A labelled series, such as a row of a pandas frame."""

    @property
    def index(self) -> Any:
        """Its labels."""
        ...

    def items(self) -> Iterable[tuple[Any, Any]]:
        """Pairs of label and value."""
        ...


def read_row(row: Any, background: Background) -> list[Any]:
    """The values of a row in the order of the background's columns, checked.

    Parameters
    ----------
    row
        A mapping, a pandas series, a frame of one row, or a sequence of values.
    background
        The background. If it is an array, labels count only if they are the column names;
        otherwise the values are taken in their order.
    """
    values = in_column_order(row, background.frame)
    both = list(zip(background.columns, values, strict=True))
    for column, value in both:
        _check_value(column, value)
    return [_spelled(column, value) for column, value in both]


def in_column_order(row: Any, frame: Frame) -> list[Any]:
    """The values of a row in the order of a table's columns; see `read_row`."""
    names, given = list(frame.names), labelled(row)
    if (
        isinstance(frame, ArrayFrame)
        and isinstance(given, Mapping)
        and len(given) == len(names)
        and not all(name in given for name in names)
    ):
        given = list(given.values())
    by_name = isinstance(given, Mapping)
    return _by_name(given, names) if by_name else _in_order(given, len(names))


def labelled(row: Any) -> Any:
    """A frame of one row or a series as a dictionary; other rows unchanged."""
    if isinstance(row, DataFrameLike):
        return _only_row(row)
    if isinstance(row, SeriesLike):
        return {str(name): value for name, value in row.items()}
    return row


def _only_row(table: Any) -> dict[str, Any]:
    """The values of a data frame of one row, by column."""
    import narwhals as nw

    frame = as_frame(table)
    if isinstance(frame, SparseFrame) or frame.n_rows != 1:
        raise ValueError(f"`row` must be one row; got {frame.n_rows}.")
    native = nw.from_native(table, eager_only=True)
    return {str(name): native[:, c].to_list()[0] for c, name in enumerate(native.columns)}


def _by_name(row: Mapping[Any, Any], names: Sequence[str]) -> list[Any]:
    """The values of a row with labels."""
    known = {str(name): value for name, value in row.items()}
    absent = [name for name in names if name not in known]
    if absent:
        more = " ..." if len(absent) > 8 else ""
        raise ValueError(
            f"`row` must have every column of the background; missing: "
            f"{', '.join(map(repr, absent[:8]))}{more}."
        )
    return [known[name] for name in names]


def _in_order(row: Any, n_columns: int) -> list[Any]:
    """The values of a row without labels."""
    if isinstance(row, (str, bytes)) or not isinstance(row, Sized):
        raise TypeError(
            "`row` must be a dictionary, a series, a frame of one row or a sequence; "
            f"got {type(row).__name__}."
        )
    if isinstance(row, np.ndarray) and row.size > max(row.shape, default=1):
        raise ValueError(f"`row` must be one row; got an array of shape {row.shape}.")
    listed: Any = row.ravel() if isinstance(row, np.ndarray) else row
    values = [plain(value) for value in listed]
    if len(values) != n_columns:
        raise ValueError(
            f"`row` must have a value for each of the {n_columns} columns; got {len(values)}."
        )
    return values


def _check_value(column: Column, value: Any) -> None:
    """Refuse a value that is not of the column's kind.

    Missing values and new categories are allowed: the model decides whether it accepts them.
    """
    if is_missing(value):
        return
    if column.numbers is None:
        _check_category(column, value)
        return
    time = is_time(value)
    number = _kind(value) in ("a number", "True or False")
    if time != column.times or not (time or number):
        kind = "a date" if column.times else "a number"
        raise TypeError(f"Column {column.name!r} of the row must be {kind}; got {value!r:.60}.")
    if not time and not np.isfinite(float(value)):
        raise ValueError(f"Column {column.name!r} of the row must be finite; got {value!r}.")


def _check_category(column: Column, value: Any) -> None:
    """Refuse a category of another kind than those of the background, such as 5 among strings."""
    if not isinstance(value, Hashable):
        raise TypeError(
            f"Column {column.name!r} of the row must be one number, string or boolean; got "
            f"{value!r:.60}."
        )
    if not column.levels or plain(_spelled(column, value)) in column.levels:
        return
    kinds = dict.fromkeys(_kind(level) for level in column.levels)
    if None not in kinds and _kind(value) not in kinds:
        wanted = " or ".join(kind for kind in kinds if kind is not None)
        raise TypeError(
            f"Column {column.name!r} of the row must be {wanted}, as in the background; got "
            f"{value!r:.60}."
        )


def _spelled(column: Column, value: Any) -> Any:
    """A whole number as its digits, if these are a category: a CSV file has no quotes around 94110.

    Other values are unchanged.
    """
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if whole and column.levels and value not in column.levels and str(value) in column.levels:
        return str(value)
    return value


def _kind(value: Any) -> str | None:
    """What a value is, in words; None for other kinds, such as periods and intervals."""
    if isinstance(value, (bool, np.bool_)):
        return "True or False"
    if isinstance(value, (Real, Decimal)):
        return "a number"
    return "a string" if isinstance(value, str) else None
