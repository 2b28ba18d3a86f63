"""Sparse matrices: a few columns at a time, and batches that are sparse again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from eblime._types import FloatArray, IntArray
from eblime.domains.tabular.array_frame import ArrayFrame
from eblime.domains.tabular.cells import Kind

__all__ = ["SparseFrame", "SparseMatrix", "SparseView"]


@runtime_checkable
class SparseMatrix(Protocol):
    """A sparse matrix or array of SciPy, in any format."""

    shape: tuple[int, ...]

    def tocsr(self) -> Any:
        """The same numbers in compressed sparse rows."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SparseFrame:
    """A sparse matrix; the features of a row are the columns in which it is not zero."""

    matrix: Any  # (n, d) csr
    names: Sequence[str]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.matrix.shape[0])

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return int(self.matrix.shape[1])

    def select(self, columns: IntArray) -> SparseView:
        """Some columns as a dense table, whose batches are sparse and have all columns."""
        dense = np.asarray(self.matrix[:, columns].toarray())
        inner = ArrayFrame(values=dense, names=[self.names[c] for c in columns])
        return SparseView(inner=inner, columns=columns, n_columns=self.n_columns)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SparseView:
    """A few columns of a sparse matrix."""

    inner: ArrayFrame
    columns: IntArray  # positions in the matrix
    n_columns: int  # of the matrix

    @property
    def names(self) -> Sequence[str]:
        """Names of the columns."""
        return self.inner.names

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.inner.n_rows

    def column(self, position: int) -> tuple[NDArray[Any], Kind]:
        """Numbers."""
        return self.inner.column(position)

    def append_row(self, row: Sequence[Any]) -> SparseView:
        """One more row."""
        inner = self.inner.append_row(row)
        return SparseView(inner=inner, columns=self.columns, n_columns=self.n_columns)

    def row(self, position: int) -> list[Any]:
        """The values of a row in these columns."""
        return self.inner.row(position)

    def append(self, other: Any) -> SparseView:
        """Not supported: user functions return rows for dense tables only."""
        raise ValueError("`perturb` must be a name if the background is a sparse matrix.")

    def gather(self, rows: IntArray, new_values: Mapping[int, FloatArray]) -> Any:
        """A sparse matrix with all columns, zero in those that are not part of the view."""
        from scipy import sparse

        dense = self.inner.gather(rows, new_values)
        n, k = dense.shape
        starts = np.arange(0, n * k + 1, k)
        columns = np.tile(self.columns, n)
        made = sparse.csr_matrix((dense.ravel(), columns, starts), shape=(n, self.n_columns))
        made.eliminate_zeros()
        return made
