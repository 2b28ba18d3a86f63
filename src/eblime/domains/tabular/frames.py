"""Tables as users have them: frames of pandas or polars, arrays, sparse matrices.

A `Frame` knows its columns and gathers rows of its own kind back: every value that the model sees
was taken from the user's own table, so that names, dtypes and missing values stay what they were.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from eblime._types import FloatArray, IntArray

if TYPE_CHECKING:
    from eblime.domains.tabular.sparse_frame import SparseFrame

__all__ = [
    "ArrayFrame",
    "Frame",
    "Kind",
    "NativeFrame",
    "as_frame",
    "as_number",
    "is_missing",
    "objects_or_numbers",
    "refuse_kind",
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

    def joined(self, other: Any) -> Frame:
        """Another table of the same kind below this one."""
        ...


def as_frame(table: Any, names: Sequence[str] | None = None) -> Frame | SparseFrame:
    """Understand a table."""
    if hasattr(table, "tocsr"):
        from eblime.domains.tabular.sparse_frame import SparseFrame

        return SparseFrame(matrix=table.tocsr(), names=_array_names(table.shape, names))
    if isinstance(table, (np.ndarray, list, tuple)):
        values = np.asarray(_unmasked(table))
        if values.dtype.kind in "US":  # numbers among strings became strings
            values = np.asarray(table, dtype=object)
        if values.ndim != 2 or 0 in values.shape or values.dtype.kind not in "buifO":
            raise ValueError(
                "`background` must be a table of at least one row and one column; got an array "
                f"of shape {values.shape} and dtype {values.dtype}."
            )
        return ArrayFrame(values=values, names=_array_names(values.shape, names))
    columns = list(getattr(table, "columns", ()))
    if len(set(columns)) < len(columns):
        twice = next(name for name in columns if columns.count(name) > 1)
        raise ValueError(f"`background` must have different column names; {twice!r} comes twice.")
    if type(table).__module__.split(".")[0] == "pandas" and hasattr(table, "iloc"):
        from eblime.domains.tabular.pandas_frame import PandasFrame

        if 0 in table.shape or table.ndim != 2:
            raise ValueError(
                f"`background` must have at least one row and one column; got shape {table.shape}."
            )
        if names is not None:
            raise ValueError("`names` are for arrays; a data frame has its own.")
        return PandasFrame(frame=table, names=[str(name) for name in columns])
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
        local = value.replace(tzinfo=None) if getattr(value, "tzinfo", None) else value
        return float(np.datetime64(local, "ns").astype(np.int64))
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
        return objects_or_numbers(values.astype(object))

    def extended(self, row: Sequence[Any]) -> ArrayFrame:
        """One more row; whole numbers become floats where the row has fractions."""
        kind = self.values.dtype
        last = np.empty((1, len(row)), dtype=object)
        last[0] = row
        if kind.kind != "O":
            numbers = last.astype(np.float64)  # None becomes NaN
            with np.errstate(invalid="ignore"):
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

    def joined(self, other: Any) -> ArrayFrame:
        """Another array below this one."""
        if not isinstance(other, ArrayFrame):
            raise ValueError("`perturb` must return an array, as the background is one.")
        return ArrayFrame(values=np.concatenate([self.values, other.values]), names=self.names)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NativeFrame:
    """A frame of polars or another library that narwhals knows."""

    frame: Any  # a narwhals DataFrame
    names: Sequence[str]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.frame)

    def column(self, place: int) -> tuple[NDArray[Any], Kind]:
        """Numbers and times as floats; strings, booleans and categories as objects."""
        import narwhals as nw

        series = self.frame[:, place]
        if series.dtype in (nw.Duration, nw.Time, nw.Decimal):
            refuse_kind(self.names[place], series.dtype)
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

        made = {}
        for name, value in zip(self.frame.columns, row, strict=True):
            kind = self.frame[name].dtype
            known = None if is_missing(value) else value
            one = nw.new_series(name, [known], backend=self.frame.implementation)
            try:
                fits = not kind.is_integer() or known is None or known == int(known)
                made[name] = one.cast(kind) if fits else one
            except Exception as error:  # what the dtype does not hold, in the library's own words
                if isinstance(known, str):
                    raise ValueError(
                        f"Column {name!r} must have a value that its dtype {kind} holds in the "
                        f"row; got {known!r:.60}."
                    ) from error
                made[name] = one.cast(nw.Float64)
        wider = {
            name: self.frame[name].cast(one.dtype) if one.dtype.is_float() else self.frame[name]
            for name, one in made.items()
        }
        both = [nw.from_dict(wider), nw.from_dict(made)]
        return NativeFrame(frame=nw.concat(both, how="vertical"), names=self.names)

    def gather(self, places: IntArray, fresh: Mapping[int, FloatArray]) -> Any:
        """A frame of the same kind, columns and dtypes."""
        import narwhals as nw

        series = {
            name: self._fresh(name, fresh[c]) if c in fresh else self.frame[name][places[:, c]]
            for c, name in enumerate(self.frame.columns)
        }
        return nw.from_dict(series).to_native()

    def joined(self, other: Any) -> NativeFrame:
        """Another frame below this one."""
        import narwhals as nw

        if not isinstance(other, NativeFrame) or set(other.names) != set(self.names):
            raise ValueError("`perturb` must return a frame like the background, of its columns.")
        below = other.frame.select(list(self.frame.columns))
        cast = {name: below[name].cast(self.frame[name].dtype) for name in self.frame.columns}
        both = [self.frame, nw.from_dict(cast)]
        return NativeFrame(frame=nw.concat(both, how="vertical"), names=self.names)

    def _fresh(self, name: str, numbers: FloatArray) -> Any:
        """Numbers of our own in the column's precision; missing ones are null, as elsewhere."""
        import narwhals as nw

        kind = self.frame[name].dtype
        known = [None if number != number else number for number in numbers.tolist()]
        made = nw.new_series(name, known, nw.Float64, backend=self.frame.implementation)
        return made.cast(kind) if kind.is_float() else made


def objects_or_numbers(values: NDArray[Any]) -> tuple[NDArray[Any], Kind]:
    """A column of objects: numbers where all of them are, else categories."""
    other = (str, bool, np.bool_, list, tuple, set, dict, np.ndarray)
    if any(isinstance(value, other) for value in values):
        return values, "category"
    try:
        floats = np.array([np.nan if is_missing(value) else value for value in values], dtype=float)
    except (TypeError, ValueError):
        return values, "category"
    return floats, "number"


def refuse_kind(name: str, kind: Any) -> NoReturn:
    """Refuse a column of a kind that bins would make no sense of."""
    raise TypeError(
        f"Column {name!r} must hold numbers, dates, strings, booleans or categories; got {kind}. "
        "Turn it into numbers first."
    )


def _unmasked(table: Any) -> Any:
    """A masked array with NaN for what is masked."""
    if isinstance(table, np.ma.MaskedArray):
        return np.ma.filled(table.astype(np.float64), np.nan)
    return table


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
