"""Reading one row: its values in the order of the background's columns, checked by kind."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from eblime.domains.tabular.background import Background
from eblime.domains.tabular.binning import Column
from eblime.domains.tabular.frames import ArrayFrame, as_frame, is_missing
from eblime.domains.tabular.sparse_frame import SparseFrame

__all__ = ["read_row"]


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
    """Refuse a value that is not of the column's kind.

    A missing value and a category that the background does not have are levels of their own: the
    model decides whether it takes them.
    """
    if is_missing(value):
        return
    if column.numbers is None:
        if not isinstance(value, Hashable):
            raise TypeError(
                f"Column {column.name!r} must be one number, string or boolean in the row; got "
                f"{value!r:.60}."
            )
        return
    stamp = hasattr(value, "isoformat") or isinstance(value, np.datetime64)
    number = isinstance(value, (int, float, bool, np.number, np.bool_))
    if stamp != column.times or not (stamp or number):
        kind = "a date" if column.times else "a number"
        raise TypeError(f"Column {column.name!r} must be {kind} in the row; got {value!r:.60}.")
    if not stamp and not np.isfinite(float(value)):
        raise ValueError(f"Column {column.name!r} must be finite in the row; got {value!r}.")
