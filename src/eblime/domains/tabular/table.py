"""Tables of every library: arrays, sparse matrices, and data frames, which narwhals reads.

Every value that the model sees is taken from the user's own table, so names, dtypes and missing
values stay what they were. Tables are copies: one that is changed later changes nothing here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from eblime._checks import check_names
from eblime._types import BoolArray, FloatArray, IntArray
from eblime.domains.tabular import cells

if TYPE_CHECKING:
    import narwhals as nw

    Series = nw.Series[Any]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ArrayTable:
    """A NumPy array, one column per feature, or some columns of a sparse matrix."""

    native: np.ndarray  # (n, d)
    names: Sequence[str]
    places: IntArray | None = None  # of the columns in the sparse matrix; the others are zero
    width: int = 0  # number of columns of the sparse matrix

    def column(self, position: int) -> cells.Cells:
        """Numbers as floats; a column of objects holds numbers, times or categories."""
        values = self.native[:, position]
        if values.dtype.kind in "uif":
            return cells.Cells(values.astype(np.float64), "number")
        return cells.read_objects(values.astype(object))

    def append_row(self, row: Sequence[object]) -> ArrayTable:
        """The array with one more row; of floats if whole numbers get a row with fractions."""
        dtype = self.native.dtype
        last = np.empty(len(row), dtype=object)
        last[:] = row
        if dtype.kind != "O":
            numbers = last.astype(np.float64)  # None becomes NaN
            with np.errstate(invalid="ignore"):
                fits = dtype.kind == "f" or np.array_equal(numbers.astype(dtype), numbers)
            last = numbers.astype(dtype) if fits else numbers
        return replace(self, native=np.concatenate([self.native, last[None]]))

    def last_row(self) -> list[object]:
        """The values of the last row as the model sees them."""
        return [cells.python_value(value) for value in self.native[-1].tolist()]

    def mix(self, own: BoolArray, sizes: IntArray) -> object:
        """So many of the first rows for each row of `own`, (k, d), one below another.

        They have the values of the last row in the columns where `own` says so.
        """
        return self._finish(_mix(self.native, own, sizes))

    def take(self, rows: IntArray) -> ArrayTable:
        """Some of the rows, by number."""
        return replace(self, native=self.native[rows])

    def with_numbers(self, numbers: Mapping[int, FloatArray]) -> object:
        """The last row many times, with other numbers in some columns."""
        found = np.repeat(self.native[-1:], len(next(iter(numbers.values()))), axis=0)
        if found.dtype.kind in "bui" and any((new % 1 != 0).any() for new in numbers.values()):
            found = found.astype(np.float64)
        for position, new in numbers.items():
            found[:, position] = new
        return self._finish(found)

    def _finish(self, dense: np.ndarray) -> object:
        """Rows as the model gets them: of a sparse matrix with all columns."""
        if self.places is None:
            return dense
        n, k = dense.shape
        entries = dense.ravel(), np.tile(self.places, n), np.arange(0, n * k + 1, k)
        made = sparse.csr_matrix(entries, shape=(n, self.width))
        made.eliminate_zeros()
        return made


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FrameTable:
    """A data frame of pandas, polars, or another library that narwhals supports."""

    native: Any
    names: Sequence[str]

    def column(self, position: int) -> cells.Cells:
        """Numbers and times as floats; strings, booleans and categories as objects."""
        import narwhals as nw

        series = self._frame[:, position]
        dtype, native = series.dtype, series.to_native()
        if dtype in (nw.Duration, nw.Time) or str(getattr(native, "dtype", "")).startswith("comp"):
            raise TypeError(
                f"Column {self.names[position]!r} must hold numbers, dates, strings, booleans or "
                f"categories; got {dtype}. Convert it to numbers first."
            )
        if dtype.is_temporal():
            zone = getattr(dtype, "time_zone", None)
            local = series if zone is None else series.dt.replace_time_zone(None)
            return cells.Cells(cells.microseconds(np.asarray(local.to_numpy())), "time")
        if dtype.is_numeric():
            return cells.Cells(np.asarray(series.to_numpy()).astype(np.float64), "number")
        objects = np.array([*series.to_list(), None], dtype=object)[:-1]
        named = dtype in (nw.String, nw.Boolean, nw.Categorical, nw.Enum)
        return cells.Cells(objects, "category") if named else cells.read_objects(objects)

    def append_row(self, row: Sequence[object]) -> FrameTable:
        """The frame with one more row; columns keep their dtypes if the values fit them."""
        import narwhals as nw

        if self._is_pandas and all(dtype == np.float64 for dtype in self.native.dtypes):
            own = [cells.as_number(value) for value in row]
            both = self._label(np.concatenate([self.native.to_numpy(), [own]]))
            return FrameTable(native=both, names=self.names)
        columns = list(self._frame.iter_columns())
        last = list(map(_one_value, self.names, columns, row))
        pairs = [(column, _dtype(one)) for column, one in zip(columns, last, strict=True)]
        wider = [_cast(column, dtype) for column, dtype in pairs if _dtype(column) != dtype]
        above = self._frame.with_columns(*wider) if wider else self._frame
        below = nw.from_native(self._assemble(last), eager_only=True)
        both = nw.concat([above, below], how="vertical").to_native()
        return FrameTable(native=both, names=self.names)

    def last_row(self) -> list[object]:
        """The values of the last row as the model sees them."""
        if self._is_pandas:
            values = self.native.iloc[-1:].astype(object).to_numpy()[0].tolist()
        else:
            values = self._frame[-1:].rows()[0]
        return [cells.python_value(value) for value in values]

    def mix(self, own: BoolArray, sizes: IntArray) -> object:
        """A frame of the same library, with the same columns and dtypes; see `ArrayTable`."""
        dtypes = list(self.native.dtypes) if self._is_pandas else []
        kinds = {dtype.kind if isinstance(dtype, np.dtype) else "O" for dtype in dtypes}
        if len({*dtypes}) == 1 and kinds <= {*"buif"}:
            return self._label(_mix(self.native.to_numpy(), own, sizes))
        rows = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        own = np.repeat(own, sizes, axis=0)
        places = np.where(own.T, len(self._frame) - 1, rows)
        if not self._is_pandas:
            columns = zip(self._frame.iter_columns(), places, strict=True)
            return self._assemble([series[taken] for series, taken in columns])
        import pandas as pd

        found = {}
        for c, dtype in enumerate(dtypes):
            taken = self.native.iloc[:, c].array.take(places[c])
            found[c] = pd.Series(taken, dtype=dtype, copy=False)  # pandas must not infer a dtype
        return self._label(found)

    def take(self, rows: IntArray) -> FrameTable:
        """Some of the rows, by number."""
        return FrameTable(native=self._frame[rows].to_native(), names=self.names)

    def with_numbers(self, numbers: Mapping[int, FloatArray]) -> object:
        """The last row many times, with other numbers in some columns."""
        import narwhals as nw

        rows = np.full(len(next(iter(numbers.values()))), len(self._frame) - 1)
        columns = [series[rows] for series in self._frame.iter_columns()]
        for c, new in numbers.items():
            same = columns[c]
            columns[c] = nw.new_series(same.name, new, nw.Float64, backend=same.implementation)
        return self._assemble(columns)

    @property
    def _frame(self) -> nw.DataFrame[Any]:
        import narwhals as nw

        return nw.from_native(self.native, eager_only=True)

    @property
    def _is_pandas(self) -> bool:
        """Whether the frame is of pandas, which has ways of its own that are faster."""
        return bool(self._frame.implementation.is_pandas())

    def _assemble(self, columns: Sequence[Series]) -> Any:
        """Columns as a frame of the library, with the user's own labels."""
        import narwhals as nw

        if not self._is_pandas:
            return nw.from_dict(dict(zip(self._frame.columns, columns, strict=True))).to_native()
        natives = (column.to_native().reset_index(drop=True) for column in columns)
        return self._label(dict(enumerate(natives)))

    def _label(self, columns: Any) -> object:
        """Columns of pandas, or an array of them, with the user's own labels."""
        import pandas as pd

        made = pd.DataFrame(columns, copy=False)
        made.columns = self.native.columns
        return made


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SparseTable:
    """A sparse matrix; the features of a row are the columns in which it is not zero."""

    native: sparse.csr_matrix  # (n, d)
    names: Sequence[str]

    def take(self, rows: IntArray) -> SparseTable:
        """Some of the rows, by number."""
        return replace(self, native=self.native[rows])

    def select(self, columns: IntArray) -> ArrayTable:
        """Some columns as a dense table, whose batches are sparse and have all columns."""
        dense = np.ascontiguousarray(self.native[:, columns].toarray())
        names = [self.names[c] for c in columns]
        return ArrayTable(native=dense, names=names, places=columns, width=self.native.shape[1])


Table = ArrayTable | FrameTable


def as_table(table: Any, names: Sequence[str] | None = None) -> Table | SparseTable:
    """A copy of a table: a frame that narwhals supports, an array, or a sparse matrix.

    `names` are those of the columns, only for arrays and sparse matrices.
    """
    made: Any = FrameTable
    if sparse.issparse(table):
        table, made = table.tocsr().copy(), SparseTable
    elif isinstance(table, (np.ndarray, list, tuple)):
        table, made = _read_array(table), ArrayTable
    else:
        if names is not None:
            raise ValueError("`names` must be None for a data frame, which has column names.")
        table, names = _read_frame(table)
    if 0 in table.shape:
        raise ValueError(
            f"`background` must have at least one row and one column; got shape {table.shape}."
        )
    width = table.shape[1]
    names = [f"column {c}" for c in range(width)] if names is None else names
    found: Table | SparseTable = made(native=table, names=check_names("names", names, width))
    return found


def _read_frame(table: Any) -> tuple[object, list[str]]:
    """A copy of a data frame, and its column names."""
    import narwhals as nw

    try:
        frame = nw.from_native(table, eager_only=True)
    except nw.exceptions.DuplicateError as error:
        raise ValueError(f"`background` must have another name for each column. {error}") from error
    except TypeError as error:
        raise TypeError(
            "`background` must be a frame, an array or a sparse matrix, after the model; got "
            f"{type(table).__name__}. Read a file first, for example with pandas.read_csv; make a "
            "pandas.DataFrame of a dictionary; collect a lazy frame with its collect()."
        ) from error
    copied = frame if frame.implementation.is_pyarrow() else frame.clone()
    return copied.to_native(), frame.columns


def _mix(table: np.ndarray, own: BoolArray, sizes: IntArray) -> np.ndarray:
    """`ArrayTable.mix` of an array."""
    n, d = len(table) - 1, table.shape[1]
    found = np.where(own[:, None], table[-1], table[:-1]).reshape(-1, d)
    if (sizes[1:] == n).all():  # the row itself comes first, if it is asked
        return found[n - sizes[0] :]
    return found[(np.arange(n) < sizes[:, None]).ravel()]


def _dtype(series: Series) -> Any:
    """The library's own dtype, which may tell apart what narwhals does not, such as two strings."""
    native = series.to_native()
    return native.type if series.implementation.is_pyarrow() else native.dtype


def _cast(series: Series, dtype: object) -> Any:
    """A series in a dtype of its library."""
    import narwhals as nw

    if _dtype(series) == dtype:
        return series
    native = series.to_native()
    cast = native.astype(dtype) if series.implementation.is_pandas_like() else native.cast(dtype)
    return nw.from_native(cast, series_only=True).alias(series.name)


def _one_value(name: str, column: Series, value: object) -> Any:
    """A series of one value, in the dtype of a column or in one that can hold the value."""
    import narwhals as nw

    missing, dtype = cells.is_missing(value), _dtype(column)
    categories = getattr(dtype, "categories", None)  # of pandas
    if column.implementation.is_pandas_like():
        if missing and isinstance(dtype, np.dtype) and dtype.kind in "biu":
            dtype = np.dtype("O" if dtype.kind == "b" else "f8")
        elif categories is not None and not missing and value not in categories:
            dtype = type(dtype)([*categories, value], ordered=dtype.ordered)
    kept = None if missing and str(dtype) != "object" else value  # objects may tell None from NaN
    one = nw.new_series(column.name, [kept], backend=column.implementation)
    try:
        cast = _cast(one, dtype)
        if not column.dtype.is_integer() or cast.to_list() == one.to_list():
            return cast
    except Exception as error:  # each library has its own exception for a value that fails
        if not column.dtype.is_numeric() or one.dtype == nw.String:
            raise ValueError(
                f"Column {name!r} of the row must have a value that its dtype {dtype} can hold; "
                f"got {value!r:.60}."
            ) from error
    return one if one.dtype.is_numeric() else one.cast(nw.Float64)


def _read_array(table: object) -> np.ndarray:
    """A copy of an array, or of lists of rows."""
    if isinstance(table, np.ma.MaskedArray):
        table = np.ma.filled(table.astype(np.float64), np.nan)
    values = np.array(table, order="C")
    if values.dtype.kind in "US":  # a mix of numbers and strings, all turned into strings
        values = np.array(table, dtype=object, order="C")
    if values.ndim != 2 or values.dtype.kind not in "buifO":
        raise ValueError(
            "`background` must be a table of rows and columns; got an array of shape "
            f"{values.shape} and dtype {values.dtype}. Make a pandas.DataFrame of records."
        )
    return values
