"""Tables of every library: arrays, sparse matrices, and data frames, which narwhals reads.

Every value that the model sees is taken from the user's own table, so names, dtypes and missing
values stay what they were. Frames are copies: a table that is changed later changes nothing here.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any, NamedTuple, NoReturn, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from eblime._types import FloatArray, IntArray
from eblime.domains.repeats import Words
from eblime.domains.tabular.cells import Cells, is_missing, microseconds, python_value, read_objects

__all__ = [
    "ArrayFrame",
    "ColumnFrame",
    "Frame",
    "FrameRow",
    "SparseFrame",
    "as_frame",
    "cell_words",
    "row_keys",
    "table_kind",
]

_PIECE = 1024  # rows that are taken at once


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

    def read_row(self, row: Sequence[Any]) -> tuple[NDArray[Any], list[Any]]:
        """A row as `gather` takes it, (d,), and its values as the model sees them.

        It is of floats if the array has whole numbers and the row has fractions.
        """
        dtype = self.native.dtype
        last = np.empty(len(row), dtype=object)
        last[:] = row
        if dtype.kind != "O":
            numbers = last.astype(np.float64)  # None becomes NaN
            with np.errstate(invalid="ignore"):
                fits = dtype.kind == "f" or np.array_equal(numbers.astype(dtype), numbers)
            last = numbers.astype(dtype) if fits else numbers
        return last, [python_value(value) for value in last.tolist()]

    def keeps_kind(self, last: NDArray[Any]) -> bool:
        """Whether a row that was read does not change the dtype."""
        return bool(self.native.dtype == last.dtype)

    def append_row(self, row: Sequence[Any]) -> ArrayFrame:
        """The array with one more row."""
        return self._with_rows(self.read_row(row)[0][None])

    def append(self, other: Any) -> ArrayFrame:
        """The rows of another array at the end."""
        if not isinstance(other, ArrayFrame):
            raise ValueError("`perturb` must return an array, because the background is an array.")
        return self._with_rows(other.native)

    def gather(self, rows: IntArray, new_values: Mapping[int, FloatArray], last: Any = None) -> Any:
        """An array of the same dtype whose value [i, c] is that of row `rows[i, c]` in column c.

        `last`, from `read_row`, is the row after those of the array. `new_values` replaces whole
        columns by new numbers; fractions turn integers into floats.
        """
        skip = len(new_values) == len(self.names)
        found = _take(self.native, rows[:0] if skip else rows, last)
        if skip:
            found = np.empty(rows.shape, dtype=found.dtype)
        if found.dtype.kind in "bui" and any((new % 1 != 0).any() for new in new_values.values()):
            found = found.astype(np.float64)
        for position, numbers in new_values.items():
            found[:, position] = numbers
        return self.finish(found)

    def take(self, rows: IntArray) -> ArrayFrame:
        """Some of the rows, by number."""
        return replace(self, native=self.native[rows])

    def words_of(self, last: NDArray[Any]) -> Words:
        """The words of a row that was read, (d,)."""
        return np.asarray(cell_words(last[None])[0])

    def _with_rows(self, rows: NDArray[Any]) -> ArrayFrame:
        """The array with more rows at its end."""
        both = np.concatenate([self.native, rows])
        return ArrayFrame(native=both, names=self.names, finish=self.finish)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ColumnFrame:
    """A data frame of pandas, polars, or another library that narwhals supports.

    pandas has ways of its own that are faster.
    """

    frame: Any  # a narwhals DataFrame
    names: Sequence[str]
    blocks: list[Block] = field(default_factory=list)  # of pandas: made when first needed

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

    def read_row(self, row: Sequence[Any]) -> tuple[FrameRow, list[Any]]:
        """A row as `gather` takes it, and its values as the model sees them.

        Columns keep their dtypes if the values fit them.
        """
        if not self.frame.implementation.is_pandas():
            whole = self.append_row(row)
            ends = [python_value(series[-1:].to_list()[0]) for series in whole._columns]
            return FrameRow(ends, dict(enumerate(whole._columns))), ends
        values, joined, native = [], {}, self.native
        for c, (name, dtype, value) in enumerate(zip(self.names, native.dtypes, row, strict=True)):
            plain = _plain_value(dtype, value)
            if plain is None:
                below = _one_of_pandas(name, dtype, value)
                joined[c] = _concat_pandas(native.iloc[:, c].to_frame("x"), below.to_frame("x"))[
                    "x"
                ]
                plain = python_value(below.to_list()[0])
            values.append(plain)
        return FrameRow(values, joined), values

    def keeps_kind(self, last: FrameRow) -> bool:
        """Whether a row that was read does not change the dtype of a column."""
        if self.frame.implementation.is_pandas():
            dtypes = self.native.dtypes
            return all(series.dtype == dtypes.iloc[c] for c, series in last.joined.items())
        pairs = zip(last.joined.values(), self._columns, strict=True)
        return all(joined.dtype == column.dtype for joined, column in pairs)

    def append_row(self, row: Sequence[Any]) -> ColumnFrame:
        """The frame with one more row."""
        if self.frame.implementation.is_pandas():
            return self._with_rows(list(map(_one_of_pandas, self.names, self.native.dtypes, row)))
        return self._with_rows(list(map(_one_value, self.names, self.frame.iter_columns(), row)))

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

    def gather(
        self, rows: IntArray, new_values: Mapping[int, FloatArray], last: FrameRow | None = None
    ) -> Any:
        """A frame of the same library, with the same columns and dtypes; see `ArrayFrame`."""
        values, joined = (None, {}) if last is None else last
        done = {c: self._new_numbers(c, new) for c, new in new_values.items()}
        for positions, table in self._blocks():
            if all(c in done or c in joined for c in positions):
                continue
            own = None
            if values is not None:
                own = np.array([0 if c in joined else values[c] for c in positions], table.dtype)
            every = len(positions) == len(self.names)
            taken = _take(table, rows if every else rows[:, positions], own)
            if every and not (done or joined):
                return self._label(taken)
            done = {c: taken[:, k] for k, c in enumerate(positions)} | done
        for c in range(len(self.names)):
            if c not in new_values and (c in joined or c not in done):
                series = joined[c] if c in joined else self.frame[:, c]
                done[c] = _take_from_series(series, rows[:, c])
        return self._assemble([done[c] for c in range(len(self.names))])

    def take(self, rows: IntArray) -> ColumnFrame:
        """Some of the rows, by number."""
        return ColumnFrame(frame=self.frame[rows], names=self.names)

    def words_of(self, last: FrameRow) -> Words:
        """The words of a row that was read, (d,)."""
        itself = np.full((1, len(self.names)), self.n_rows)
        return np.asarray(cell_words(self.gather(itself, {}, last))[0])

    def _blocks(self) -> list[Block]:
        """The columns of pandas that are arrays of NumPy, by dtype."""
        if not self.blocks and self.frame.implementation.is_pandas():
            native = self.native
            plain: dict[Any, list[int]] = {}
            for c, dtype in enumerate(native.dtypes):
                if _is_plain(dtype):
                    plain.setdefault(dtype, []).append(c)
            self.blocks[:] = [
                (places, np.array(native.iloc[:, places].to_numpy(), order="C"))
                for places in plain.values()
            ]
        return self.blocks

    @property
    def _columns(self) -> list[Any]:
        """The columns as narwhals series."""
        return list(self.frame.iter_columns())

    def _new_numbers(self, position: int, numbers: FloatArray) -> Any:
        """New numbers in the dtype of a column if they fit it; missing ones are null."""
        import narwhals as nw

        for positions, table in self._blocks():
            if position in positions and table.dtype == np.float64:
                return numbers
        column, known = self.frame[:, position], cast(Any, numbers)
        if np.isnan(numbers).any():
            known = [None if number != number else number for number in numbers.tolist()]
        made = nw.new_series(column.name, known, nw.Float64, backend=column.implementation)
        return _fit(self.names[position], column, made)

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
        natives = [one.to_native() if isinstance(one, nw.Series) else one for one in columns]
        return self._label(dict(enumerate(natives)))

    def _label(self, columns: Any) -> Any:
        """Columns of pandas, or an array of them, with the user's own labels."""
        import pandas as pd

        made = pd.DataFrame(columns, copy=False)
        made.columns = self.native.columns
        return made


class FrameRow(NamedTuple):
    """A row that was read for a frame."""

    values: Sequence[Any]  # as the model sees them
    joined: Mapping[int, Any]  # columns that end with the row's value, where no array holds it


Block = tuple[list[int], NDArray[Any]]  # positions of columns, and the columns as an array
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
    except nw.exceptions.DuplicateError:
        arrow = nw.dependencies.is_pyarrow_table(table)
        _frame_names(table.column_names if arrow else table.columns, table.shape, None)
        raise
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
    words = cell_words(table)
    keys: list[bytes] = words.view(f"V{8 * words.shape[1]}").ravel().tolist()
    return keys


def cell_words(table: Any) -> Words:
    """A number of 64 bits for each value of a table, (n, d): the number itself, or a digest.

    Two values of a column have the same word if and only if the model sees the same.
    """
    if isinstance(table, np.ndarray):
        if table.dtype == np.float64:
            return np.ascontiguousarray(table).view(np.uint64)
        columns = [_words(column) for column in table.T]
    else:
        import narwhals as nw

        frame = nw.from_native(table, eager_only=True)
        if all(dtype == nw.Float64 for dtype in frame.schema.values()):  # much faster
            return cell_words(np.asarray(frame.to_numpy(), dtype=np.float64))
        columns = [_series_words(series) for series in frame.iter_columns()]
    return np.ascontiguousarray(np.column_stack(columns))


def table_kind(table: Any) -> tuple[str, ...]:
    """What rows of a table have in common: its type, and names and dtypes of the columns.

    Models may read the number of a category, so all categories are in the dtype.
    """
    kind = f"{type(table).__module__}.{type(table).__qualname__}"
    if isinstance(table, np.ndarray) or sparse.issparse(table):
        return kind, str(table.dtype), str(table.shape[1])
    dtypes = getattr(table, "dtypes", None)
    if dtypes is not None:  # pandas and polars
        categorical = [dtype for dtype in dtypes if hasattr(dtype, "ordered")]  # of pandas
        categories = [repr((one.categories.tolist(), one.ordered)) for one in categorical]
        return kind, *map(str, table.columns), *map(str, dtypes), *categories
    return kind, *table.schema.names, *map(str, table.schema.types)


def _take(table: NDArray[Any], rows: IntArray, last: NDArray[Any] | None) -> NDArray[Any]:
    """The values `table[rows[i, c], c]` of an array; `last` is the row after its own."""
    n, d = table.shape
    flat, places = table.ravel(), np.arange(d)
    found = np.empty(rows.shape, dtype=table.dtype)
    index = np.empty((min(len(rows), _PIECE), d), dtype=np.intp)
    for start in range(0, len(rows), _PIECE):  # small arrays stay in the processor's cache
        some = rows[start : start + _PIECE]
        np.multiply(some, d, out=index[: len(some)], dtype=np.intp)
        index += places
        flat.take(index[: len(some)], out=found[start : start + _PIECE], mode="clip")
    if last is None:
        return found
    found = found.astype(np.result_type(table, last), copy=False)
    own = np.flatnonzero(rows == n)
    found.ravel()[own] = last[own % d]
    return found


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


def _is_plain(dtype: Any) -> bool:
    """Whether a dtype of pandas is one of NumPy's, of numbers or of True and False."""
    return isinstance(dtype, np.dtype) and dtype.kind in "buif"


def _plain_value(dtype: Any, value: Any) -> Any:
    """A value as a column of NumPy's dtype holds it; None if it does not, or not without pandas."""
    if not _is_plain(dtype):
        return None
    kind, own = dtype.kind, python_value(value)
    if kind == "f":
        if is_missing(own):
            return math.nan
        return float(dtype.type(own)) if type(own) in (float, int) else None
    if kind == "b" or type(own) is not int:
        return own if kind == "b" and type(own) is bool else None
    limits = np.iinfo(dtype)
    return own if limits.min <= own <= limits.max else None


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


def _take_from_series(series: Any, rows: IntArray) -> Any:
    """Values of a series of narwhals or pandas by number; those of pandas without an index."""
    import narwhals as nw

    if isinstance(series, nw.Series):
        if not series.implementation.is_pandas():
            return series[rows]
        series = series.to_native()
    import pandas as pd

    # pandas must not infer a dtype
    return pd.Series(series.array.take(rows), dtype=series.dtype, copy=False)


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
    double = dict.fromkeys(repr(name) for name in found if found.count(name) > 1)
    if double:
        raise ValueError(
            f"`background` must have different column names; got {', '.join(double)} more than "
            "once. Rename or drop them."
        )
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
