"""Reading tables, rows and predictions, and naming the features of a row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from eblime._types import FloatArray
from eblime._warn import warn_user
from eblime.compat.lime._table import TableDomainMapper
from eblime.compat.lime.discretize import BaseDiscretizer
from eblime.domains.tabular import TableScene
from eblime.domains.tabular.numerals import short_text

__all__ = [
    "as_row",
    "as_rows",
    "class_scores",
    "column_names",
    "column_numbers",
    "name_row",
    "regression_scores",
]


def as_rows(data: Any) -> Any:
    """The training rows as numbers, (n, columns); sparse ones stay sparse."""
    if sparse.issparse(data):
        return sparse.csr_matrix(data).astype(float)
    try:
        rows = np.asarray(data, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(
            "`training_data` must be numbers; encode categories as whole numbers, or use "
            "eblime.TabularExplainer, which takes data frames with text and missing values."
        ) from error
    if rows.ndim != 2 or 0 in rows.shape:
        raise ValueError(
            f"`training_data` must have shape (rows, columns); got shape {rows.shape}."
        )
    if not np.isfinite(rows).all():
        raise ValueError(
            "`training_data` must have no missing or infinite values; eblime.TabularExplainer "
            "takes missing values."
        )
    return rows


def column_names(data: Any, names: Sequence[Any] | None) -> list[Any]:
    """The given names, those of a data frame, or the numbers of the columns."""
    n = data.shape[1] if hasattr(data, "shape") else np.shape(data)[1]
    if names is None:
        return [str(name) for name in getattr(data, "columns", range(n))]
    if len(names) < n:
        raise ValueError(f"`feature_names` must have {n} entries; got {len(names)}.")
    if len(names) > n:  # as lime does: often the last name is that of the target
        warn_user(
            f"`feature_names` has {len(names)} entries for {n} columns; the first {n} are used. "
            "Check that they are in the order of the columns."
        )
    return list(names)[:n]


def column_numbers(columns: Iterable[Any] | None, names: Sequence[Any]) -> list[int]:
    """Numbers of the columns that are given by number or by name; None is none."""
    found = []
    for column in () if columns is None else columns:
        number = names.index(column) if isinstance(column, str) and column in names else column
        if isinstance(number, str) or not 0 <= number < len(names):
            raise ValueError(
                f"`categorical_features` must be numbers of columns, 0 .. {len(names) - 1}, or "
                f"names of `feature_names`; got {column!r:.60}."
            )
        found.append(int(number))
    return found


def as_row(row: Any, n_columns: int) -> Any:
    """One row as an array of numbers, or as a sparse matrix in canonical form."""
    if sparse.issparse(row):
        found = sparse.csr_matrix(row.reshape(1, -1)).astype(float)
        found.sum_duplicates()
        found.eliminate_zeros()
        shape, values = found.shape[1:], found.data
    else:
        found = np.asarray(row, dtype=np.float64)
        shape, values = found.shape, found
    if shape != (n_columns,):
        raise ValueError(f"`data_row` must be one row of {n_columns} values; got shape {shape}.")
    if not np.isfinite(values).all():
        raise ValueError("`data_row` must have no missing or infinite values.")
    return found


def class_scores(predicted: Any) -> FloatArray:
    """Class probabilities, (n, classes); warns if they do not sum to one."""
    scores = np.asarray(predicted, dtype=np.float64)
    if scores.ndim == 1:
        raise NotImplementedError(
            "`predict_fn` must return probabilities of shape (rows, classes); got one number per "
            "row. Use predict_proba, or mode='regression'."
        )
    if scores.ndim != 2:
        raise ValueError(
            f"`predict_fn` must return an array of shape (rows, classes); got {scores.shape}."
        )
    if not np.allclose(scores.sum(axis=1), 1.0):
        warn_user(
            "The probabilities that `predict_fn` returns do not sum to 1. Check that it returns "
            "probabilities rather than classes or logarithms."
        )
    return scores


def regression_scores(predicted: Any) -> FloatArray:
    """Predictions as one column, (n, 1); of several columns the first one is taken, as in lime."""
    scores = np.asarray(predicted, dtype=np.float64)
    if scores.ndim not in (1, 2):
        raise ValueError(f"`predict_fn` must return one number per row; got shape {scores.shape}.")
    return scores[:, None] if scores.ndim == 1 else scores[:, :1]


def name_row(
    row: Any,
    scaled_row: FloatArray,
    names: Sequence[Any],
    categories: Sequence[int],
    categorical_names: Mapping[int, Sequence[Any]],
    discretizer: BaseDiscretizer | None,
) -> tuple[TableDomainMapper, TableScene]:
    """The names and values of a row's features, for lime's methods and for an explanation."""
    columns = [str(name) for name in names]
    if sparse.issparse(row):
        values = [f"{value:.2f}" for value in row.data]
        mapper = TableDomainMapper(columns, values, scaled_row, [], None, row.indices)
        return mapper, _scene(columns, columns, [short_text(v) for v in row.data], row.indices)
    shown, values = list(columns), [f"{value:.2f}" for value in row]
    texts = [short_text(value) for value in row]
    cut = {} if discretizer is None else discretizer.names
    for j in categories:
        if j not in cut:
            texts[j] = _category_name(int(row[j]), columns[j], categorical_names.get(j))
            shown[j], values[j] = f"{columns[j]}={texts[j]}", "True"
    binned = None
    if discretizer is not None:
        bins = discretizer.discretize(row)
        binned = [cut[j][int(bins[j])] if j in cut else name for j, name in enumerate(shown)]
    mapper = TableDomainMapper(shown, values, scaled_row, categories, binned)
    return mapper, _scene(mapper.names, columns, texts, range(len(columns)))


def _category_name(level: int, column: str, names: Any) -> str:
    """The name of a category; its number if the column has no names."""
    if names is None:
        return str(level)
    try:
        return str(names[level])
    except (IndexError, KeyError) as error:
        raise ValueError(
            "`categorical_names` must have a name for each category; got none for category "
            f"{level} of column {column!r:.60}."
        ) from error


def _scene(
    features: Sequence[str], columns: Sequence[str], values: Sequence[str], chosen: Iterable[int]
) -> TableScene:
    """The row as an explanation keeps it; `chosen` are the columns that it has."""
    numbers = list(chosen)
    return TableScene(
        features=[features[j] for j in numbers],
        columns=[columns[j] for j in numbers],
        values=list(values),
    )
