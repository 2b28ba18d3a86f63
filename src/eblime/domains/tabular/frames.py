"""Tables of every library: arrays, sparse matrices, and data frames, which narwhals reads.

Every value that the model sees is taken from the user's own table, so names, dtypes and missing
values stay what they were. Frames are copies: a table that is changed later changes nothing here.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from eblime._types import FloatArray, IntArray
from eblime.domains.tabular.cells import Cells, is_missing, microseconds, python_value, read_objects

__all__ = [
    "ArrayFrame",
    "ColumnFrame",
    "Frame",
    "SparseFrame",
    "as_frame",
    "row_keys",
    "table_kind",
]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ArrayFrame:
    """A NumPy array, one column per feature, or some columns of a sparse matrix."""

    native: NDArray[Any]  # (n, d)
    names: Sequence[str]
    finish: Callable[[NDArray[Any]], Any] = np.asarray  # from rows to what the model gets

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.native)

    def column(self, position: int) -> Cells:
        """Numbers as floats; a column of objects holds numbers, times or categories."""
        values = self.native[:, position]
        if values.dtype.kind in "uif":
            return Cells(values.astype(np.float64), "number", _limits(values.dtype))
        return read_objects(values.astype(object))

    def append_row(self, row: Sequence[Any]) -> tuple[ArrayFrame, list[Any]]:
        """The array with one more row, and its values as the model sees them.

        An integer array becomes float if the row has fractions.
        """
        dtype = self.native.dtype
        last = np.empty((1, len(row)), dtype=object)
        last[0] = row
        if dtype.kind != "O":
            numbers = last.astype(np.float64)  # None becomes NaN
            with np.errstate(invalid="ignore"):
                fits = dtype.kind in "buif" and np.array_equal(numbers.astype(dtype), numbers)
            last = numbers.astype(dtype if fits or dtype.kind == "f" else np.float64)
        return self._with_rows(last), [python_value(value) for value in last[0]]

    def append(self, other: Any) -> ArrayFrame:
        """The rows of another array at the end."""
        if not isinstance(other, ArrayFrame):
            raise ValueError("`perturb` must return an array, because the background is an array.")
        return self._with_rows(other.native)

    def gather(self, rows: IntArray, new_values: Mapping[int, FloatArray]) -> Any:
        """An array of the same dtype whose value [i, c] is that of row `rows[i, c]` in column c.

        `new_values` replaces whole columns by new numbers; fractions turn integers into floats.
        """
        d = self.native.shape[1]
        found = self.native.ravel().take(rows * d + np.arange(d))
        if found.dtype.kind in "bui" and any((new % 1 != 0).any() for new in new_values.values()):
            found = found.astype(np.float64)
        for position, numbers in new_values.items():
            found[:, position] = numbers
        return self.finish(found)

    def _with_rows(self, rows: NDArray[Any]) -> ArrayFrame:
        """The array with more rows at its end."""
        both = np.concatenate([self.native, rows])
        return ArrayFrame(native=both, names=self.names, finish=self.finish)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ColumnFrame:
    """A data frame of pandas, polars, or another library that narwhals supports."""

    frame: Any  # a narwhals DataFrame
    names: Sequence[str]

    @property
    def native(self) -> Any:
        """The data frame of its own library."""
        return self.frame.to_native()

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.frame)

    def column(self, position: int) -> Cells:
        """Numbers and times as floats; strings, booleans and categories as objects."""
        import narwhals as nw

        series = self.frame[:, position]
        dtype, native = series.dtype, series.to_native()
        if dtype in (nw.Duration, nw.Time) or str(getattr(native, "dtype", "")).startswith("comp"):
            raise TypeError(
                f"Column {self.names[position]!r} must hold numbers, dates, strings, booleans or "
                f"categories; got {dtype}. Convert it to numbers first."
            )
        if dtype.is_temporal():
            zone = getattr(dtype, "time_zone", None)
            local = series if zone is None else series.dt.replace_time_zone(None)
            return Cells(microseconds(np.asarray(local.to_numpy())), "time")
        if dtype.is_numeric():
            limits = _limits(str(dtype).lower()) if dtype.is_integer() else None
            return Cells(_floats(series), "number", limits)
        objects = _objects(series)
        named = dtype in (nw.String, nw.Boolean, nw.Categorical, nw.Enum)
        return Cells(objects, "category") if named else read_objects(objects)

    def append_row(self, row: Sequence[Any]) -> tuple[ColumnFrame, list[Any]]:
        """The frame with one more row, and its values as the model sees them.

        Columns keep their dtypes if the values fit them.
        """
        if self.frame.implementation.is_pandas():
            dtypes = self.native.dtypes
            below = list(map(_one_of_pandas, self.names, dtypes, row))
        else:
            below = list(map(_one_value, self.names, self.frame.iter_columns(), row))
        return self._with_rows(below), [python_value(one.to_list()[0]) for one in below]

    def append(self, other: Any) -> ColumnFrame:
        """The rows of another frame at the end, in this frame's column order and dtypes."""
        if not (
            isinstance(other, ColumnFrame)
            and other.frame.implementation is self.frame.implementation
            and set(other.names) == set(self.names)
        ):
            raise ValueError(
                "`perturb` must return a frame of the background's kind with the same columns."
            )
        below = [other.frame[:, other.names.index(name)] for name in self.names]
        return self._with_rows(list(map(_fit, self.names, self.frame.iter_columns(), below)))

    def gather(self, rows: IntArray, new_values: Mapping[int, FloatArray]) -> Any:
        """A frame of the same library, with the same columns and dtypes; see `ArrayFrame`."""
        pandas = self.frame.implementation.is_pandas()  # has a way of its own that is faster
        columns = [series for _, series in self.native.items()] if pandas else self._columns
        take = _take_from_pandas if pandas else lambda series, chosen: series[chosen]
        found = [
            _new_numbers(self.names[c], self.frame[:, c], new_values[c])
            if c in new_values
            else take(series, rows[:, c])
            for c, series in enumerate(columns)
        ]
        return self._assemble(found)

    @property
    def _columns(self) -> list[Any]:
        """The columns as narwhals series."""
        return list(self.frame.iter_columns())

    def _with_rows(self, below: Sequence[Any]) -> ColumnFrame:
        """The frame with series of more rows at its end; a column takes the dtype of its series."""
        import narwhals as nw

        if self.frame.implementation.is_pandas():
            both = _concat_pandas(self.native, self._assemble(below))
        else:
            pairs = zip(self._columns, below, strict=True)
            parts = [self._assemble([_cast(*pair) for pair in pairs]), self._assemble(below)]
            frames = [nw.from_native(part, eager_only=True) for part in parts]
            both = nw.concat(frames, how="vertical")
        return ColumnFrame(frame=nw.from_native(both, eager_only=True), names=self.names)

    def _assemble(self, columns: Sequence[Any]) -> Any:
        """Columns as a frame of the library, with the user's own labels."""
        import narwhals as nw

        if not self.frame.implementation.is_pandas():
            return nw.from_dict(dict(zip(self.frame.columns, columns, strict=True))).to_native()
        import pandas as pd

        natives = [one.to_native() if isinstance(one, nw.Series) else one for one in columns]
        made = pd.DataFrame(dict(enumerate(natives)), copy=False)
        made.columns = self.native.columns
        return made


Frame = ArrayFrame | ColumnFrame


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SparseFrame:
    """A sparse matrix; the features of a row are the columns in which it is not zero."""

    native: Any  # (n, d) csr
    names: Sequence[str]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.native.shape[0])

    def select(self, columns: IntArray) -> ArrayFrame:
        """Some columns as a dense table, whose batches are sparse and have all columns."""
        dense = np.ascontiguousarray(self.native[:, columns].toarray())
        finish = partial(_as_sparse, columns, int(self.native.shape[1]))
        return ArrayFrame(native=dense, names=[self.names[c] for c in columns], finish=finish)


def as_frame(table: Any, names: Sequence[str] | None = None) -> Frame | SparseFrame:
    """A copy of a table.

    Parameters
    ----------
    table
        A pandas or polars frame, another frame that narwhals supports, an array, or a sparse
        matrix.
    names
        Names of the columns; only for arrays and sparse matrices.
    """
    if isinstance(table, (np.ndarray, list, tuple)):
        return _read_array(table, names)
    if sparse.issparse(table):
        return SparseFrame(native=table.tocsr().copy(), names=_array_names(table.shape[1], names))
    import narwhals as nw

    try:
        frame = nw.from_native(table, eager_only=True)
    except TypeError as error:
        raise TypeError(
            "`background` must be a pandas or polars frame, an array or a sparse matrix; "
            f"got {type(table).__name__}.{_advice(table)}"
        ) from error
    found = _frame_names(frame.columns, frame.shape, names)
    immutable = frame.implementation.is_pyarrow()
    return ColumnFrame(frame=frame if immutable else frame.clone(), names=found)


def row_keys(table: Any) -> list[bytes]:
    """A key for each row of a table: its numbers as bytes, and digests of other values.

    Two rows have the same key if and only if the model sees the same.

    Examples
    --------
    >>> first, second, third = row_keys(np.array([[1.0, 2.0], [1.0, 3.0], [1.0, 2.0]]))
    >>> first == third, first == second
    (True, False)
    """
    if sparse.issparse(table):
        rows = table.tocsr()
        return [
            rows.indices[a:b].astype(np.int64).tobytes() + rows.data[a:b].tobytes()
            for a, b in zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
        ]
    if isinstance(table, np.ndarray):
        columns = [_words(column) for column in table.T]
    else:
        import narwhals as nw

        frame = nw.from_native(table, eager_only=True)
        if all(dtype == nw.Float64 for dtype in frame.schema.values()):  # much faster
            return row_keys(np.asarray(frame.to_numpy(), dtype=np.float64))
        columns = [_series_words(series) for series in frame.iter_columns()]
    words = np.ascontiguousarray(np.column_stack(columns))
    keys: list[bytes] = words.view(f"V{8 * words.shape[1]}").ravel().tolist()
    return keys


def table_kind(table: Any) -> tuple[str, ...]:
    """What rows of a table have in common: its type, and names and dtypes of the columns."""
    kind = f"{type(table).__module__}.{type(table).__qualname__}"
    if isinstance(table, np.ndarray) or sparse.issparse(table):
        return kind, str(table.dtype), str(table.shape[1])
    dtypes = getattr(table, "dtypes", None)
    if dtypes is not None:  # pandas and polars
        return kind, *map(str, table.columns), *map(str, dtypes)
    return kind, *table.schema.names, *map(str, table.schema.types)


def _limits(dtype: Any) -> tuple[float, float] | None:
    """The least and the largest number of an integer dtype; None for other dtypes."""
    try:
        known = np.iinfo(dtype)
    except (TypeError, ValueError):  # not integers, or of more bits than NumPy has
        return None
    largest = float(known.max)
    return float(known.min), largest if largest <= known.max else float(np.nextafter(largest, 0))


def _as_sparse(columns: IntArray, n_columns: int, dense: NDArray[Any]) -> Any:
    """Some columns as a sparse matrix with all columns, zero in the others."""
    n, k = dense.shape
    starts = np.arange(0, n * k + 1, k)
    entries = (dense.ravel(), np.tile(columns, n), starts)
    made = sparse.csr_matrix(entries, shape=(n, n_columns))
    made.eliminate_zeros()
    return made


def _cast(series: Any, like: Any) -> Any:
    """A series in exactly the dtype of another one; itself if it has this dtype.

    narwhals has one dtype for strings and one for dictionaries where libraries have several.
    """
    import narwhals as nw

    native, wanted = series.to_native(), like.to_native()
    arrow = series.implementation.is_pyarrow()
    known, dtype = (native.type, wanted.type) if arrow else (native.dtype, wanted.dtype)
    if known == dtype:
        return series
    pandas_like = series.implementation.is_pandas_like()
    cast = native.astype(dtype) if pandas_like else native.cast(dtype)
    return nw.from_native(cast, series_only=True).alias(like.name)


def _fit(name: str, column: Any, series: Any) -> Any:
    """New values in the dtype of a column; numbers that do not fit it in a wider one."""
    import narwhals as nw

    dtype = column.dtype
    try:
        cast = _cast(series, column)
        if not dtype.is_integer() or np.array_equal(_floats(cast), _floats(series), equal_nan=True):
            return cast
    except Exception:  # each library has its own exception for a value that fails
        if not dtype.is_numeric() or series.dtype == nw.String:
            _refuse_value(name, dtype, series.to_list()[0])
    return series if series.dtype.is_numeric() else series.cast(nw.Float64)


def _one_value(name: str, column: Any, value: Any) -> Any:
    """A series of one value, in the dtype of a column or in one that can hold the value."""
    import narwhals as nw

    known = None if is_missing(value) else value
    return _fit(name, column, nw.new_series(column.name, [known], backend=column.implementation))


def _new_numbers(name: str, column: Any, numbers: FloatArray) -> Any:
    """New numbers in the dtype of a column if they fit it; missing ones are null."""
    import narwhals as nw

    if column.implementation.is_pandas() and column.to_native().dtype == np.float64:
        return numbers
    known: Any = numbers
    if np.isnan(numbers).any():
        known = [None if number != number else number for number in numbers.tolist()]
    made = nw.new_series(column.name, known, nw.Float64, backend=column.implementation)
    return _fit(name, column, made)


def _one_of_pandas(name: str, dtype: Any, value: Any) -> Any:
    """A pandas series of one value, in a dtype or in one that can hold the value."""
    import pandas as pd

    of_numpy = isinstance(dtype, np.dtype)
    if is_missing(value):
        if of_numpy and dtype.kind in "iu":
            return pd.Series([np.nan])
        as_object = of_numpy and dtype.kind in "bO"
        return pd.Series([value if as_object else None], dtype=object if as_object else dtype)
    if isinstance(dtype, pd.CategoricalDtype) and value not in dtype.categories:
        dtype = pd.CategoricalDtype([*dtype.categories, value], ordered=dtype.ordered)
    try:
        return pd.Series([value], dtype=dtype)
    except (TypeError, ValueError, OverflowError):
        if not pd.api.types.is_numeric_dtype(dtype) or isinstance(value, str):
            _refuse_value(name, dtype, value)
        return pd.Series([value])  # a fraction in an integer column


def _take_from_pandas(series: Any, rows: IntArray) -> Any:
    """Values of a pandas series by number, without an index."""
    import pandas as pd

    values, dtype = series.array, series.dtype
    if isinstance(dtype, np.dtype) and dtype.kind in "buif":
        return values.to_numpy().take(rows)
    return pd.Series(values.take(rows), dtype=dtype, copy=False)  # pandas must not infer a dtype


def _concat_pandas(above: Any, below: Any) -> Any:
    """Two pandas frames in one. pandas finds common dtypes, but not of categories."""
    import pandas as pd

    for label, dtype in below.dtypes.items():
        if isinstance(dtype, pd.CategoricalDtype) and dtype != above.dtypes[label]:
            above = above.astype({label: dtype})
    return pd.concat([above, below], ignore_index=True)


def _refuse_value(name: str, dtype: Any, value: Any) -> NoReturn:
    """Refuse a value of the row that the dtype of its column cannot hold."""
    raise ValueError(
        f"Column {name!r} of the row must have a value that its dtype {dtype} can hold; got "
        f"{value!r:.60}."
    )


def _read_array(table: Any, names: Sequence[str] | None) -> ArrayFrame:
    """Check an array, or lists of rows, and name its columns."""
    if isinstance(table, np.ma.MaskedArray):
        table = np.ma.filled(table.astype(np.float64), np.nan)
    values = np.array(table, order="C")
    if values.dtype.kind in "US":  # a mix of numbers and strings, all turned into strings
        values = np.array(table, dtype=object, order="C")
    if values.ndim != 2 or 0 in values.shape or values.dtype.kind not in "buifO":
        records = values.ndim == 1 and values.size > 0 and isinstance(values[0], (Mapping, np.void))
        raise ValueError(
            "`background` must be a table of at least one row and one column; got an array "
            f"of shape {values.shape} and dtype {values.dtype}."
            f"{' Pass pandas.DataFrame(background).' if records else ''}"
        )
    return ArrayFrame(native=values, names=_array_names(values.shape[1], names))


def _array_names(n_columns: int, names: Sequence[str] | None) -> list[str]:
    """Names of an array's columns: those given, or "column 0" and so on."""
    if names is None:
        return [f"column {c}" for c in range(n_columns)]
    listed = [str(name) for name in names]
    twice = [name for name in listed if listed.count(name) > 1]
    if len(listed) != n_columns or twice:
        got = f"{twice[0]!r} more than once" if twice else f"{len(listed)} names"
        raise ValueError(
            f"`names` must give each of the {n_columns} columns a different name; got {got}."
        )
    return listed


def _frame_names(
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
    double = next((name for name in found if found.count(name) > 1), None)
    if double is not None:
        raise ValueError(f"`background` must have different column names; {double!r} occurs twice.")
    return found


def _advice(table: Any) -> str:
    """How to turn an object of another type into a table."""
    if isinstance(table, (str, os.PathLike)):
        return " Read the file first, for example with pandas.read_csv."
    if isinstance(table, dict):
        return " Pass pandas.DataFrame(background)."
    if hasattr(table, "__array__"):
        return " Pass numpy.asarray(background)."
    return " Call its collect() first." if hasattr(table, "collect") else ""


def _floats(series: Any) -> FloatArray:
    """The values of a series of numbers, missing ones as NaN."""
    return np.asarray(series.to_numpy()).astype(np.float64)


def _objects(series: Any) -> NDArray[Any]:
    """The values of a series as an array of objects."""
    return np.array([*series.to_list(), None], dtype=object)[:-1]


def _series_words(series: Any) -> NDArray[np.uint64]:
    """A number of 64 bits for each value of a series; it depends on no other value."""
    import narwhals as nw

    dtype = series.dtype
    if dtype.is_float() or dtype.is_temporal():
        return _words(np.asarray(series.to_numpy()))
    if not dtype.is_integer() and dtype != nw.Boolean:
        return _words(_objects(series))
    if not series.null_count():
        return _words(np.asarray(series.to_numpy()))
    words = _words(np.asarray(series.fill_null(0 if dtype.is_integer() else False).to_numpy()))
    return np.where(np.asarray(series.is_null().to_numpy()), np.uint64(_word(None)), words)


def _words(column: NDArray[Any]) -> NDArray[np.uint64]:
    """A number of 64 bits for each value: the number itself, or a digest of the value."""
    kind = column.dtype.kind
    if kind == "f" and column.dtype.itemsize <= 8:
        return column.astype(np.float64).view(np.uint64)
    if kind in "bui":
        return column.astype(np.uint64)
    if kind in "mM":
        return column.view(np.uint64)
    return np.array([_word(value) for value in column.tolist()], dtype=np.uint64)


@lru_cache(maxsize=1 << 14, typed=True)
def _word(value: Any) -> int:
    """A digest of a value, by its type and its text."""
    text = f"{type(value).__name__} {value!r}"
    digest = hashlib.blake2b(text.encode("utf8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")
