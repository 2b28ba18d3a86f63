"""Tables of polars, and of other libraries that narwhals supports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eblime._types import FloatArray, IntArray
from eblime.domains.tabular.cells import Kind, is_missing, microseconds
from eblime.domains.tabular.frame import refuse_column, refuse_value

__all__ = ["NarwhalsFrame"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NarwhalsFrame:
    """A data frame, handled by narwhals."""

    frame: Any  # a narwhals DataFrame
    names: Sequence[str]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.frame)

    def column(self, position: int) -> tuple[NDArray[Any], Kind]:
        """Numbers and times as floats; strings, booleans and categories as objects."""
        import narwhals as nw

        series = self.frame[:, position]
        if series.dtype in (nw.Duration, nw.Time, nw.Decimal):
            refuse_column(self.names[position], series.dtype)
        if series.dtype.is_temporal():
            zone = getattr(series.dtype, "time_zone", None)
            local = series if zone is None else series.dt.replace_time_zone(None)
            return microseconds(np.asarray(local.to_numpy())), "time"
        if series.dtype.is_numeric():
            values = [np.nan if is_missing(v) else v for v in series.to_list()]
            return np.array(values, dtype=np.float64), "number"
        return np.array([*series.to_list(), None], dtype=object)[:-1], "category"

    def append_row(self, row: Sequence[Any]) -> NarwhalsFrame:
        """One more row, in the dtypes of the frame if its values fit them."""
        import narwhals as nw

        last = {
            name: self._one_value(name, value)
            for name, value in zip(self.frame.columns, row, strict=True)
        }
        wider = {
            name: self.frame[name].cast(one.dtype) if one.dtype.is_float() else self.frame[name]
            for name, one in last.items()
        }
        both = [nw.from_dict(wider), nw.from_dict(last)]
        return NarwhalsFrame(frame=nw.concat(both, how="vertical"), names=self.names)

    def row(self, position: int) -> list[Any]:
        """The values of a row, in the dtypes of their columns."""
        one = self.frame[position : position + 1]
        return [one[name].to_list()[0] for name in one.columns]

    def append(self, other: Any) -> NarwhalsFrame:
        """The rows of another frame at the end, in this frame's column order and dtypes."""
        import narwhals as nw

        if not isinstance(other, NarwhalsFrame) or set(other.names) != set(self.names):
            raise ValueError(
                "`perturb` must return a frame of the background's kind with the same columns."
            )
        below = other.frame.select(list(self.frame.columns))
        cast = {name: _cast(below[name], self.frame[name]) for name in self.frame.columns}
        both = [self.frame, nw.from_dict(cast)]
        return NarwhalsFrame(frame=nw.concat(both, how="vertical"), names=self.names)

    def gather(self, rows: IntArray, new_values: Mapping[int, FloatArray]) -> Any:
        """A frame of the same library, with the same columns and dtypes."""
        import narwhals as nw

        series = {
            name: self._new_series(name, new_values[c])
            if c in new_values
            else self.frame[rows[:, c], name]
            for c, name in enumerate(self.frame.columns)
        }
        return nw.from_dict(series).to_native()

    def _one_value(self, name: str, value: Any) -> Any:
        """A series of one value, in the column's dtype or, for a number, in a wider one."""
        import narwhals as nw

        dtype = self.frame[name].dtype
        known = None if is_missing(value) else value
        one = nw.new_series(name, [known], backend=self.frame.implementation)
        try:
            fits = not dtype.is_integer() or known is None or known == int(known)
            return _cast(one, self.frame[name]) if fits else one
        except Exception:  # each library has its own exception for a value that fails
            if not dtype.is_numeric() or isinstance(known, str):
                refuse_value(name, dtype, known)
            return one.cast(nw.Float64)

    def _new_series(self, name: str, numbers: FloatArray) -> Any:
        """New numbers in the column's precision; missing ones are null."""
        import narwhals as nw

        dtype = self.frame[name].dtype
        known = [None if number != number else number for number in numbers.tolist()]
        made = nw.new_series(name, known, nw.Float64, backend=self.frame.implementation)
        return made.cast(dtype) if dtype.is_float() else made


def _cast(series: Any, column: Any) -> Any:
    """A series in the dtype of a column.

    narwhals has one dtype for strings and one for dictionaries where arrow has several.
    """
    import narwhals as nw

    if not column.implementation.is_pyarrow():
        return series.cast(column.dtype)
    cast = series.to_native().cast(column.to_native().type)
    return nw.from_native(cast, series_only=True).alias(column.name)
