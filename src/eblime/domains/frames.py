"""Tables as users have them: frames of pandas or polars, arrays, sparse matrices.

A `Frame` knows its columns and gathers rows of its own kind back: every value that the model sees
was taken from the user's own table, so that names, dtypes and missing values stay what they were.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from eblime._types import FloatArray, IntArray

__all__ = [
    "ArrayFrame",
    "Frame",
    "Kind",
    "NativeFrame",
    "SparseFrame",
    "as_frame",
    "as_number",
    "is_missing",
]


Kind = Literal["number", "time", "category"]


class Frame(Protocol):
    """A table of n rows: what explainers need of it."""

    @property
    def names(self) -> Sequence[str]: ...  # noqa: D102

    @property
    def n_rows(self) -> int: ...  # noqa: D102

    def column(self, place: int) -> tuple[NDArray[Any], Kind]:
        """A column's values and kind: floats for numbers and times, else objects."""
        ...

    def extended(self, row: Sequence[Any]) -> Frame:
        """The same table with one more row at its end."""
        ...

    def gather(self, places: IntArray, fresh: Mapping[int, FloatArray]) -> Any:
        """Rows put together column by column: value [i, c] is that of row places[i, c].

        Columns in `fresh` have numbers of their own.
        """
        ...


def as_frame(table: Any, names: Sequence[str] | None = None) -> Frame | SparseFrame:
    """Understand a table."""
    if hasattr(table, "tocsr"):
        return SparseFrame(matrix=table.tocsr(), names=_array_names(table.shape, names))
    if isinstance(table, (np.ndarray, list, tuple)):
        values = np.asarray(table)
        if values.dtype.kind in "US":  # numbers among strings became strings
            values = np.asarray(table, dtype=object)
        if values.ndim != 2 or 0 in values.shape or values.dtype.kind not in "buifO":
            raise ValueError(
                "`background` must be a table of at least one row and one column; got an array "
                f"of shape {values.shape} and dtype {values.dtype}."
            )
        return ArrayFrame(values=values, names=_array_names(values.shape, names))
    try:
        import narwhals as nw
    except ImportError as error:
        raise ImportError("Data frames need narwhals: pip install narwhals.") from error
    try:
        frame = nw.from_native(table, eager_only=True)
    except TypeError as error:
        raise TypeError(
            "`background` must be a pandas or polars frame, an array or a sparse matrix; "
            f"got {type(table).__name__}."
        ) from error
    if 0 in frame.shape:
        raise ValueError(
            f"`background` must have at least one row and one column; got shape {frame.shape}."
        )
    if names is not None:
        raise ValueError("`names` are for arrays; a data frame has its own.")
    return NativeFrame(frame=frame, names=[str(name) for name in frame.columns])


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, NaT or pandas' NA."""
    if value is None:
        return True
    try:
        return bool(value != value)  # only a missing value differs from itself
    except (TypeError, ValueError):
        return type(value).__name__ == "NAType"


def as_number(value: Any) -> float:
    """A number or a time as a float, NaN where it is missing; times in nanoseconds."""
    if is_missing(value):
        return float("nan")
    if hasattr(value, "isoformat") or isinstance(value, np.datetime64):
        return float(np.datetime64(value, "ns").astype(np.int64))
    return float(value)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ArrayFrame:
    """A NumPy array, one column a feature."""

    values: NDArray[Any]  # (n, d)
    names: Sequence[str]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.values)

    def column(self, place: int) -> tuple[NDArray[Any], Kind]:
        """Numbers as floats; columns of objects are categories unless all are numbers."""
        values = self.values[:, place]
        if values.dtype.kind in "uif":
            return values.astype(np.float64), "number"
        if values.dtype.kind == "O":
            try:
                floats = np.array([np.nan if is_missing(v) else v for v in values], dtype=float)
            except (TypeError, ValueError):
                return values, "category"
            if not any(isinstance(v, (str, bool, np.bool_)) for v in values):
                return floats, "number"
        return values.astype(object), "category"

    def extended(self, row: Sequence[Any]) -> ArrayFrame:
        """One more row; whole numbers become floats where the row has fractions."""
        kind = self.values.dtype
        last = np.empty((1, len(row)), dtype=object)
        last[0] = row
        if kind.kind != "O":
            numbers = last.astype(np.float64)
            whole = kind.kind in "buif" and np.array_equal(numbers.astype(kind), numbers)
            last = numbers.astype(kind if whole or kind.kind == "f" else np.float64)
        return ArrayFrame(values=np.concatenate([self.values, last]), names=self.names)

    def gather(self, places: IntArray, fresh: Mapping[int, FloatArray]) -> NDArray[Any]:
        """An array of the same dtype."""
        d = self.values.shape[1]
        flat = np.ascontiguousarray(self.values).ravel()
        found = flat.take(places * d + np.arange(d))
        if fresh and found.dtype.kind in "bui":
            found = found.astype(np.float64)
        for place, numbers in fresh.items():
            found[:, place] = numbers
        return np.asarray(found)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NativeFrame:
    """A frame of pandas, polars or another library that narwhals knows."""

    frame: Any  # a narwhals DataFrame
    names: Sequence[str]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.frame)

    def column(self, place: int) -> tuple[NDArray[Any], Kind]:
        """Numbers and times as floats; strings, booleans and categories as objects."""
        series = self.frame[:, place]
        if series.dtype.is_temporal():
            stamps = np.asarray(series.to_numpy()).astype("datetime64[ns]")
            numbers = stamps.astype(np.int64).astype(np.float64)
            return np.where(np.isnat(stamps), np.nan, numbers), "time"
        if series.dtype.is_numeric():
            values = [np.nan if is_missing(v) else v for v in series.to_list()]
            return np.array(values, dtype=np.float64), "number"
        return np.array([*series.to_list(), None], dtype=object)[:-1], "category"

    def extended(self, row: Sequence[Any]) -> NativeFrame:
        """One more row, in the dtypes of the frame wherever its values fit them."""
        import narwhals as nw

        if self.frame.implementation.is_pandas():
            joined = _pandas_extended(self.frame.to_native(), row)
            return NativeFrame(frame=nw.from_native(joined), names=self.names)
        made = {}
        for name, value in zip(self.frame.columns, row, strict=True):
            kind = self.frame[name].dtype
            known = None if is_missing(value) else value
            one = nw.new_series(name, [known], backend=self.frame.implementation)
            fits = not kind.is_integer() or known is None or known == int(known)
            made[name] = one.cast(kind) if fits else one
        wider = {
            name: self.frame[name].cast(one.dtype) if one.dtype.is_float() else self.frame[name]
            for name, one in made.items()
        }
        both = [nw.from_dict(wider), nw.from_dict(made)]
        return NativeFrame(frame=nw.concat(both, how="vertical"), names=self.names)

    def gather(self, places: IntArray, fresh: Mapping[int, FloatArray]) -> Any:
        """A frame of the same kind, columns and dtypes."""
        import narwhals as nw

        native = self.frame.to_native()
        if self.frame.implementation.is_pandas():
            import pandas as pd

            arrays = {
                name: fresh[c] if c in fresh else native[name].array.take(places[:, c])
                for c, name in enumerate(native.columns)
            }
            return pd.DataFrame(arrays, copy=False)
        series = {
            name: nw.new_series(name, fresh[c], backend=self.frame.implementation)
            if c in fresh
            else self.frame[name][places[:, c]]
            for c, name in enumerate(self.frame.columns)
        }
        return nw.from_dict(series).to_native()


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


def _pandas_extended(native: Any, row: Sequence[Any]) -> Any:
    """A pandas frame with one more row, column by column in the dtypes that it has."""
    import pandas as pd

    parts = {}
    for name, value in zip(native.columns, row, strict=True):
        kind = native[name].dtype
        known = None if is_missing(value) else value
        try:
            one = pd.Series([known], dtype=kind)
        except (TypeError, ValueError):  # a fraction among whole numbers
            one = pd.Series([value])
        parts[name] = pd.concat([native[name], one], ignore_index=True)
    return pd.DataFrame(parts, columns=native.columns)


def _array_names(shape: tuple[int, ...], names: Sequence[str] | None) -> list[str]:
    """Names of an array's columns."""
    if names is None:
        return [f"column {c}" for c in range(shape[1])]
    listed = [str(name) for name in names]
    if len(listed) != shape[1] or len(set(listed)) < len(listed):
        raise ValueError(
            f"`names` must name each of the {shape[1]} columns differently; got {len(listed)}."
        )
    return listed
