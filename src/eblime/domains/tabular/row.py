"""A row of a table that can be perturbed: columns are hidden by the values of the background."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence, Sized
from dataclasses import dataclass
from math import isfinite
from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse, special

from eblime._types import FloatArray, IntArray
from eblime.domains.masked import MaskedSubject
from eblime.domains.tabular.background import Background, Column, prepare
from eblime.domains.tabular.cells import is_missing, kinds_of, python_value
from eblime.domains.tabular.table import ArrayTable, SparseTable, Table
from eblime.protocols import MeanBatch

_MAX_ROWS_PER_CALL = 32_768  # about
_LEAST_ODDS = 1e-6  # about


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowScene:
    """A row with the background that hides its columns.

    The score of a mask is the mean over the rows of the background, each with the row's values in
    the shown columns: shap calls this interventional.
    """

    features: Sequence[str]  # those that vary
    table: Table  # the background, and then the row itself
    owner: IntArray  # (d,) feature of each column; -1 if it has the same value everywhere
    link: str  # "identity", or "logit": scores are log-odds of the means

    domain = "tabular"

    @property
    def n_features(self) -> int:
        """Number of features, p."""
        return len(self.features)

    @property
    def cost(self) -> int:
        """Rows that the model is asked about for one mask."""
        return int(self.table.native.shape[0]) - 1

    @property
    def sizes(self) -> Sequence[int]:
        """One large batch: models of tables are fastest with many rows."""
        return (max(1, _MAX_ROWS_PER_CALL // self.cost),)

    def inputs(self, masks: FloatArray) -> MeanBatch:
        """The rows that the scores of some masks are means of; one for the row itself."""
        shown, n = masks > 0.5, self.cost
        sizes = np.where(shown.all(axis=1), 1, n)
        by_column = shown.take(np.maximum(self.owner, 0), axis=1) | (self.owner < 0)
        link = log_odds if self.link == "logit" else None
        return MeanBatch(inputs=self.table.mix(by_column, sizes), sizes=sizes, link=link)


def log_odds(means: FloatArray) -> FloatArray:
    """The logarithms of the odds of probabilities; those of 0 and 1 are those of 1e-6 away."""
    wrong = means[~((means >= 0) & (means <= 1))]
    if wrong.size:
        raise ValueError(
            f"`link` must be 'identity' for scores that are no probabilities; got {wrong[0]:.6g}."
        )
    return np.asarray(special.logit(np.clip(means, _LEAST_ODDS, 1 - _LEAST_ODDS)))


def open_row(row: object, background: Background, link: str = "identity") -> MaskedSubject:
    """Read and check a row, and find its features.

    A feature is fixed if it has the row's value in all rows of the background. The loop gets the
    others; an explanation has all of them.
    """
    table = background.table.append_row(_read_row(row, background))
    values = table.last_row()  # in the dtypes of the background
    whole, fixed = background.scene(values), background.fixed(values)
    vary, owner = np.flatnonzero(~fixed).tolist(), np.full(len(values), -1)
    for number, j in enumerate(vary):
        owner[background.features[j][1]] = number
    names = [whole.features[j] for j in vary]
    scene = RowScene(features=names, table=table, owner=owner, link=link)
    return MaskedSubject(scene=scene, whole=whole, fixed=fixed if fixed.any() else None)


def open_sparse_row(
    row: Any, table: SparseTable, group_of: Mapping[str, str], link: str
) -> MaskedSubject:
    """A row of a sparse matrix: its features are the columns in which it is not zero."""
    dense = np.asarray(row.toarray() if sparse.issparse(row) else row, dtype=float).ravel()
    columns = np.flatnonzero(dense)
    if len(dense) != len(table.names) or not columns.size:
        raise ValueError(
            f"`row` must have {len(table.names)} columns, not all of them zero; got {len(dense)}, "
            f"of which {len(columns)} are not zero."
        )
    background = prepare(table.select(columns), group_of, table.native.shape[0], warn=False)
    return open_row(dense[columns], background, link)


def _read_row(row: object, background: Background) -> list[object]:
    """The values of a row in the order of the background's columns, checked.

    If the background is an array, labels count only if they are the column names; otherwise the
    values are taken in their order.
    """
    names, given = list(background.table.names), as_mapping(row)
    if isinstance(given, Mapping):
        known = {str(name): value for name, value in given.items()}
        absent = [name for name in names if name not in known]
        if absent and not (isinstance(background.table, ArrayTable) and len(known) == len(names)):
            more = " ..." if len(absent) > 8 else ""
            raise ValueError(
                f"`row` must have every column of the background; missing: "
                f"{', '.join(map(repr, absent[:8]))}{more}."
            )
        given = [*known.values()] if absent else [known[name] for name in names]
    if isinstance(given, (str, bytes)) or not isinstance(given, Sized):
        raise TypeError(
            "`row` must be a dictionary, a series, a frame of one row or a sequence; "
            f"got {type(given).__name__}."
        )
    listed: Any = given.ravel() if isinstance(given, np.ndarray) else given
    if len(listed) != len(names):
        raise ValueError(
            f"`row` must have a value for each of the {len(names)} columns; got {len(listed)}."
        )
    values = map(python_value, listed)
    return [_read_value(*pair) for pair in zip(background.columns, values, strict=True)]


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
    return {str(name): value for name, value in frame.rows(named=True)[0].items()}


def _read_value(column: Column, value: Any) -> object:
    """A value of the row; refused if it is of another kind than those of its column.

    Missing values and new categories are allowed: the model decides whether it accepts them. A
    whole number becomes its digits, if these are a category: CSV files have no quotes around 94110.
    """
    if is_missing(value):
        return value
    digits = str(value) if isinstance(value, Integral) else None
    if digits in column.levels and value not in column.levels:
        return digits
    kinds, own = column.kinds, kinds_of(value)
    same = not kinds or kinds & {*own}
    if not same and not (isinstance(value, Hashable) and python_value(value) in column.levels):
        raise TypeError(
            f"Column {column.name!r} of the row must be {' or '.join(sorted(kinds))}, as in the "
            f"background; got {value!r:.60}."
        )
    if "a number" in own and not isfinite(value):
        raise ValueError(f"Column {column.name!r} of the row must be finite; got {value!r}.")
    return value
