"""`open_row`: from a row and its background to a subject that can be perturbed."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence, Sized
from dataclasses import dataclass
from decimal import Decimal
from math import isfinite
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import sparse

from eblime._types import BoolArray
from eblime.domains.tabular import TableScene
from eblime.domains.tabular.background import Background, TableSettings, prepare
from eblime.domains.tabular.binning import Column
from eblime.domains.tabular.cells import is_missing, is_time, python_value
from eblime.domains.tabular.frames import ArrayFrame, SparseFrame
from eblime.domains.tabular.neighbourhood import (
    MOST_ROWS,
    GameNeighbourhood,
    RowContext,
    TableNeighbourhood,
    UserNeighbourhood,
    UserPerturb,
)
from eblime.protocols import Neighbourhood

__all__ = ["REPRESENTATIONS", "TableSubject", "as_mapping", "open_row"]

REPRESENTATIONS = ("binary", "continuous", "continuous-mean")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableSubject:
    """One row of a table that can be perturbed.

    A feature is fixed if it has the row's value, or bin, in all rows of the background. The loop
    gets the others; an explanation has all of them.
    """

    context: RowContext
    scene: TableScene  # the features that are not fixed
    whole: TableScene  # all features
    fixed: BoolArray | None  # (p,) of all features; None if none is
    around: bool  # with continuous features: sample around the row, not around the mean
    perturb: str | UserPerturb
    rows_per_mask: int | None = None  # with perturb="background"; None is all, up to MOST_ROWS

    def neighbourhood(self, rng: np.random.Generator) -> Neighbourhood:
        """An empty neighbourhood; the seed of its random rows is drawn here."""
        p = self.context.n_features
        if self.perturb == "background":
            most = MOST_ROWS if self.rows_per_mask is None else self.rows_per_mask
            return GameNeighbourhood(
                context=self.context,
                rows_per_mask=min(most, self.context.background.n_rows),
                seed=int(rng.integers(0, 2**32)),
                masks=np.empty((0, p)),
            )
        if isinstance(self.perturb, str):
            return TableNeighbourhood.empty(self.context, self.perturb, around=self.around, rng=rng)
        return UserNeighbourhood(
            context=self.context,
            perturb=self.perturb,
            frame=self.context.frame,
            masks=np.empty((0, p)),
            origin=np.ones(p),
        )


def open_row(
    row: Any,
    table: Background | SparseFrame,
    settings: TableSettings,
    *,
    representation: str,
    perturb: str | UserPerturb,
    rows_per_mask: int | None = None,
) -> TableSubject:
    """Read and check a row, and find its features; see `TabularExplainer` for the settings.

    The background is prepared, or a sparse matrix, which is prepared for each row by `settings`.
    """
    if isinstance(table, SparseFrame):
        background, values = _open_sparse_row(row, table, settings)
    else:
        background, values = table, _read_row(row, table)
    last, values = background.frame.read_row(values)  # in the dtypes of the background
    by_value, continuous = perturb == "background", representation != "binary"
    scene = whole = background.scene(values, by_value=by_value, continuous=continuous)
    fixed = background.fixed(values, by_value=by_value or continuous)
    if fixed is not None:
        background = background.without(fixed)
        scene = background.scene(values, by_value=by_value, continuous=continuous)
    context = RowContext(
        background=background,
        last=last,
        values=values,
        states=background.states(values),
        continuous=continuous,
    )
    around = representation != "continuous-mean"
    return TableSubject(
        context=context,
        scene=scene,
        whole=whole,
        fixed=fixed,
        around=around,
        perturb=perturb,
        rows_per_mask=rows_per_mask,
    )


def _open_sparse_row(
    row: Any, table: SparseFrame, settings: TableSettings
) -> tuple[Background, list[Any]]:
    """The background and the values for a row of a sparse matrix, where it is not zero."""
    dense_row = row.tocsr().toarray() if sparse.issparse(row) else row
    dense = np.asarray(dense_row, dtype=float).ravel()
    if len(dense) != len(table.names):
        raise ValueError(f"`row` must have {len(table.names)} columns; got {len(dense)}.")
    columns = np.flatnonzero(dense)
    if not columns.size:
        raise ValueError("`row` must have a column that is not zero; all are zero.")
    return prepare(table.select(columns), settings), [float(value) for value in dense[columns]]


def _read_row(row: Any, background: Background) -> list[Any]:
    """The values of a row in the order of the background's columns, checked.

    If the background is an array, labels count only if they are the column names; otherwise the
    values are taken in their order.
    """
    names, given = list(background.frame.names), as_mapping(row)
    if isinstance(given, Mapping):
        others = len(given) == len(names) and not all(name in given for name in names)
        if isinstance(background.frame, ArrayFrame) and others:
            given = list(given.values())
    by_name = isinstance(given, Mapping)
    values = _by_name(given, names) if by_name else _in_order(given, len(names))
    both = list(zip(background.columns, values, strict=True))
    for column, value in both:
        _check_value(column, value)
    return [_as_category(column, value) for column, value in both]


def as_mapping(row: Any) -> Any:
    """A frame of one row or a series as a dictionary; other rows unchanged."""
    if isinstance(row, (dict, list, tuple, np.ndarray)):
        return row
    from narwhals import dependencies, from_native

    if dependencies.is_pandas_like_series(row):
        return {str(name): value for name, value in row.items()}
    if not dependencies.is_into_dataframe(row):
        return row
    frame = from_native(row, eager_only=True)
    if len(frame) != 1:
        raise ValueError(f"`row` must be one row; got {len(frame)}.")
    columns = zip(frame.columns, frame.iter_columns(), strict=True)
    return {str(name): series.to_list()[0] for name, series in columns}


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
    values = [python_value(value) for value in listed]
    if len(values) != n_columns:
        raise ValueError(
            f"`row` must have a value for each of the {n_columns} columns; got {len(values)}."
        )
    return values


def _check_value(column: Column, value: Any) -> None:
    """Refuse a value that is not of the column's kind.

    Missing values and new categories are allowed: the model decides whether it accepts them.
    """
    if is_missing(value) or (type(value) is float and column.is_number and isfinite(value)):
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
    if not column.levels or python_value(_as_category(column, value)) in column.levels:
        return
    kinds = dict.fromkeys(_kind(level) for level in column.levels)
    if None not in kinds and _kind(value) not in kinds:
        wanted = " or ".join(kind for kind in kinds if kind is not None)
        raise TypeError(
            f"Column {column.name!r} of the row must be {wanted}, as in the background; got "
            f"{value!r:.60}."
        )


def _as_category(column: Column, value: Any) -> Any:
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
