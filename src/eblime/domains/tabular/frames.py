"""Reading tables: pandas and polars frames, arrays, sparse matrices."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from eblime.domains.tabular.array_frame import array_names, read_array
from eblime.domains.tabular.frame import Frame
from eblime.domains.tabular.narwhals_frame import NarwhalsFrame
from eblime.domains.tabular.pandas_frame import PandasFrame
from eblime.domains.tabular.sparse_frame import SparseFrame, SparseMatrix

__all__ = ["as_frame"]


def as_frame(table: Any, names: Sequence[str] | None = None) -> Frame | SparseFrame:
    """Wrap a table.

    Parameters
    ----------
    table
        A pandas or polars frame, another frame that narwhals supports, an array, or a sparse
        matrix.
    names
        Names of the columns; only for arrays and sparse matrices.
    """
    if isinstance(table, (np.ndarray, list, tuple)):
        return read_array(table, names)
    if isinstance(table, SparseMatrix):
        return SparseFrame(matrix=table.tocsr(), names=array_names(table.shape[1], names))
    from narwhals import dependencies

    if dependencies.is_pandas_dataframe(table):
        return PandasFrame(frame=table, names=_checked_names(table.columns, table.shape, names))
    frame = _narwhals_frame(table)
    return NarwhalsFrame(frame=frame, names=_checked_names(frame.columns, frame.shape, names))


def _narwhals_frame(table: Any) -> Any:
    """A frame of any library that narwhals supports, as a narwhals frame."""
    import narwhals as nw

    try:
        return nw.from_native(table, eager_only=True)
    except TypeError as error:
        raise TypeError(
            "`background` must be a pandas or polars frame, an array or a sparse matrix; "
            f"got {type(table).__name__}.{_advice(table)}"
        ) from error


def _advice(table: Any) -> str:
    """How to turn an object of another type into a table."""
    if isinstance(table, (str, os.PathLike)):
        return " Read the file first, for example with pandas.read_csv."
    if isinstance(table, dict):
        return " Pass pandas.DataFrame(background)."
    if hasattr(table, "__array__"):
        return " Pass numpy.asarray(background)."
    return " Call its collect() first." if hasattr(table, "collect") else ""


def _checked_names(
    columns: Iterable[Any], shape: tuple[int, ...], names: Sequence[str] | None
) -> list[str]:
    """The column names of a data frame, all different."""
    if 0 in shape:
        raise ValueError(
            f"`background` must have at least one row and one column; got shape {shape}."
        )
    if names is not None:
        raise ValueError("`names` must be None for a data frame, which has its own column names.")
    found = [str(name) for name in columns]
    if len(set(found)) < len(found):
        double = next(name for name in found if found.count(name) > 1)
        raise ValueError(f"`background` must have different column names; {double!r} occurs twice.")
    return found
