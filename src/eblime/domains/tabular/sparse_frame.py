"""Sparse matrices: a few columns at a time, and rows that come back sparse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eblime._types import FloatArray, IntArray
from eblime.domains.tabular.frames import ArrayFrame, Kind

__all__ = ["SparseFrame", "SparseView"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SparseFrame:
    """A sparse matrix; only the columns where a row is not zero are its features."""

    matrix: Any  # (n, d) csr
    names: Sequence[str]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.matrix.shape[0])

    def seen(self, columns: IntArray) -> SparseView:
        """Some columns as a dense table whose gathered rows are sparse and of full width."""
        dense = np.asarray(self.matrix[:, columns].toarray())
        inner = ArrayFrame(values=dense, names=[self.names[c] for c in columns])
        return SparseView(inner=inner, columns=columns, width=int(self.matrix.shape[1]))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SparseView:
    """A few columns of a sparse matrix."""

    inner: ArrayFrame
    columns: IntArray
    width: int

    @property
    def names(self) -> Sequence[str]:
        """Names of the columns."""
        return self.inner.names

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.inner.n_rows

    def column(self, place: int) -> tuple[NDArray[Any], Kind]:
        """Numbers."""
        return self.inner.column(place)

    def extended(self, row: Sequence[Any]) -> SparseView:
        """One more row."""
        inner = self.inner.extended(row)
        return SparseView(inner=inner, columns=self.columns, width=self.width)

    def gather(self, places: IntArray, fresh: Mapping[int, FloatArray]) -> Any:
        """A sparse matrix of the full width, zero in all other columns."""
        from scipy import sparse

        dense = self.inner.gather(places, fresh)
        n, k = dense.shape
        starts = np.arange(0, n * k + 1, k)
        columns = np.tile(self.columns, n)
        made = sparse.csr_matrix((dense.ravel(), columns, starts), shape=(n, self.width))
        made.eliminate_zeros()
        return made

    def joined(self, other: Any) -> SparseView:
        """Refused: rows of the user's own are for dense tables."""
        raise ValueError("`perturb` must be a name where the background is a sparse matrix.")
