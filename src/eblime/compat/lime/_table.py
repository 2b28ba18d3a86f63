"""Rows of tables: names of features, scaling, and perturbed rows as lime draws them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from eblime._types import FloatArray, IntArray
from eblime.compat.lime.discretize import BaseDiscretizer
from eblime.compat.lime.explanation import DomainMapper

__all__ = ["Neighbours", "Scaler", "TableDomainMapper", "draw_rows", "draw_sparse", "frequencies"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scaler:
    """Mean and scale of each column; 0 and 1 for categories and bins. Arrays may be changed."""

    mean_: FloatArray
    scale_: FloatArray

    @classmethod
    def of(cls, data: Any) -> Scaler:
        """Mean and standard deviation of each column; the scale of a constant column is 1."""
        if sparse.issparse(data):
            mean = np.asarray(data.mean(axis=0)).ravel()
            variance = np.asarray(data.multiply(data).mean(axis=0)).ravel() - mean**2
        else:
            mean, variance = data.mean(axis=0), data.var(axis=0)
        rounding = data.shape[0] * np.finfo(float).eps
        constant = variance <= rounding * variance + (rounding * mean) ** 2
        scale = np.sqrt(np.where(constant, 1.0, variance))
        return cls(mean_=np.array(mean, dtype=float), scale_=scale)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Neighbours:
    """Perturbed rows; the first one is the row itself."""

    data: FloatArray  # (N, p) as the regression sees them, before scaling
    inverse: Any  # (N, columns) as the model sees them
    columns: IntArray | None = None  # of the table, for each of the p features; None if the same

    @classmethod
    def of(cls, row: Any, data: Any, inverse: Any) -> Neighbours:
        """Perturbed rows that were drawn for a row; a sparse one has features only where it is set.

        Parameters
        ----------
        row
            The row, (columns,), or a sparse matrix with one row.
        data, inverse
            The perturbed rows as the regression and as the model sees them, (N, columns).
        """
        wanted = row.shape[-1:]
        if data.shape[1:] != wanted or data.shape[0] != inverse.shape[0]:
            raise ValueError(
                f"Perturbed rows must have shape (n, {wanted[0]}), for the regression and for the "
                f"model; got shapes {data.shape} and {inverse.shape}."
            )
        if not sparse.issparse(row):
            return cls(data=np.asarray(data, dtype=np.float64), inverse=inverse)
        columns = np.asarray(row.indices, dtype=np.intp)
        return cls(data=data[:, columns].toarray(), inverse=inverse, columns=columns)

    def scaled(self, scaler: Scaler) -> FloatArray:
        """What the regression sees; as in lime, sparse rows are multiplied by the scales."""
        if self.columns is not None:
            return np.asarray(self.data * scaler.scale_[self.columns])
        return np.asarray((self.data - scaler.mean_) / scaler.scale_)


class TableDomainMapper(DomainMapper):
    """Names of the features of a row.

    Parameters
    ----------
    feature_names, feature_values
        Names of the columns and values of the row, as text.
    scaled_row
        The row as the regression sees it.
    categorical_features
        Columns that are categories or bins.
    discretized_feature_names
        Names with the row's bin, such as "30.00 < age <= 45.00"; None without bins.
    feature_indexes
        The columns that a sparse row has.
    """

    page_options = ("show_table", "show_all")

    def __init__(
        self,
        feature_names: Sequence[str],
        feature_values: Sequence[str],
        scaled_row: Any,
        categorical_features: Sequence[int],
        discretized_feature_names: Sequence[str] | None = None,
        feature_indexes: Any = None,
    ) -> None:
        self.exp_feature_names = feature_names
        self.feature_names = feature_names
        self.feature_values = feature_values
        self.scaled_row = scaled_row
        self.categorical_features = categorical_features
        self.discretized_feature_names = discretized_feature_names
        self.feature_indexes = feature_indexes
        self.all_categorical = feature_indexes is None and (
            len(categorical_features) == len(feature_names)
        )

    @property
    def names(self) -> Sequence[str]:
        """The names that explanations show."""
        if self.discretized_feature_names is None:
            return self.exp_feature_names
        return self.discretized_feature_names

    def map_exp_ids(self, exp: Any, **kwargs: Any) -> list[tuple[Any, float]]:
        """(name, weight) pairs."""
        if kwargs:
            raise TypeError(f"`{next(iter(kwargs))}` is not an option for a table.")
        return [(self.names[j], weight) for j, weight in exp]


def frequencies(column: Any) -> tuple[list[Any], FloatArray]:
    """The different values of a column, sorted, and how often each occurs, as shares."""
    values, counts = np.unique(column, return_counts=True)
    return values.tolist(), counts / float(counts.sum())


def draw_rows(
    random_state: np.random.RandomState,
    row: FloatArray,
    n: int,
    *,
    normal: tuple[FloatArray, FloatArray] | None,
    levels: Mapping[int, tuple[Sequence[Any], FloatArray]],
    discretizer: BaseDiscretizer | None,
) -> tuple[FloatArray, FloatArray]:
    """Perturbed rows in lime's order of draws, as the regression and as the model sees them.

    Parameters
    ----------
    random_state
        Where the draws come from.
    row
        The row, (columns,).
    n
        Number of rows, with the row itself.
    normal
        Centre and scale of each column, to draw numbers from normal distributions first; None
        with a discretiser.
    levels
        Values and shares of the columns that are categories or bins. The regression sees whether
        the row's own value was drawn.
    discretizer
        Draws numbers from bins, last; None for none.
    """
    data = np.zeros((n, len(row)), order="F")  # columns are drawn one after the other
    if normal is not None:
        data = random_state.normal(0, 1, data.size).reshape(data.shape) * normal[1] + normal[0]
    own = row if discretizer is None else discretizer.discretize(row)
    data[0] = row
    inverse = data.copy()
    for column, (values, shares) in levels.items():
        drawn = random_state.choice(values, size=n, replace=True, p=shares)
        data[:, column] = drawn == own[column]
        data[0, column] = 1
        inverse[:, column] = drawn
    if discretizer is not None:
        inverse[1:] = discretizer.undiscretize(inverse[1:])
    inverse[0] = row
    return np.ascontiguousarray(data), np.ascontiguousarray(inverse)


def draw_sparse(
    random_state: np.random.RandomState, row: Any, n: int, *, around: bool, scaler: Scaler
) -> tuple[Any, Any]:
    """Perturbed sparse rows, twice: only the entries that the row has are changed."""
    columns = np.asarray(row.indices, dtype=np.intp)
    values, scale, mean = row.data, scaler.scale_[columns], scaler.mean_[columns]
    drawn = random_state.normal(0, 1, n * len(columns)).reshape(n, len(columns))
    data = drawn * scale + (values if around else mean)
    data[0] = values
    starts = np.arange(n + 1) * len(columns)
    rows = sparse.csr_matrix((data.ravel(), np.tile(columns, n), starts), shape=(n, row.shape[1]))
    return rows, rows.copy()
