"""Tables of pandas; columns keep their dtypes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eblime._types import FloatArray, IntArray
from eblime.domains.tabular.cells import (
    Kind,
    as_number,
    is_missing,
    microseconds,
    plain,
    read_objects,
)
from eblime.domains.tabular.frame import refuse_column, refuse_value

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["PandasFrame"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PandasFrame:
    """A pandas frame."""

    frame: pd.DataFrame
    names: Sequence[str]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.frame)

    def column(self, position: int) -> tuple[NDArray[Any], Kind]:
        """Numbers and times as floats; strings, booleans and categories as objects."""
        from pandas.api import types

        series = self.frame.iloc[:, position]
        dtype = series.dtype
        if types.is_datetime64_any_dtype(dtype):
            return _times(series), "time"
        if types.is_timedelta64_dtype(dtype) or types.is_complex_dtype(dtype):
            refuse_column(self.names[position], dtype)
        categorical = types.is_bool_dtype(dtype) or dtype.name == "category"
        if types.is_numeric_dtype(dtype) and not categorical:
            return series.to_numpy(dtype=np.float64, na_value=np.nan), "number"
        objects = np.array([*series.tolist(), None], dtype=object)[:-1]
        return (objects, "category") if categorical else read_objects(objects)

    def append_row(self, row: Sequence[Any]) -> PandasFrame:
        """One more row, in the dtypes of the frame if its values fit them."""
        import pandas as pd

        base = self.frame
        parts: dict[int, Any] = {}
        for c, (value, dtype) in enumerate(zip(row, self.frame.dtypes, strict=True)):
            parts[c] = _one_value(self.names[c], value, dtype)
            if parts[c].dtype != dtype and isinstance(dtype, pd.CategoricalDtype):  # a new category
                base = base.astype({base.columns[c]: parts[c].dtype})
        both = pd.concat([base, self._with_labels(parts)], ignore_index=True)
        return PandasFrame(frame=both, names=self.names)

    def row(self, position: int) -> list[Any]:
        """The values of a row, in the dtypes of their columns."""
        return [plain(self.frame.iat[position, c]) for c in range(len(self.names))]

    def append(self, other: Any) -> PandasFrame:
        """The rows of another frame at the end, in this frame's column order and dtypes."""
        import pandas as pd

        if not isinstance(other, PandasFrame) or set(other.names) != set(self.names):
            raise ValueError("`perturb` must return a pandas frame with the background's columns.")
        below = other.frame[list(self.frame.columns)]
        with suppress(TypeError, ValueError):  # fractions stay fractions in an integer column
            below = below.astype(dict(self.frame.dtypes.items()))
        both = pd.concat([self.frame, below], ignore_index=True)
        return PandasFrame(frame=both, names=self.names)

    def gather(self, rows: IntArray, new_values: Mapping[int, FloatArray]) -> pd.DataFrame:
        """A frame of the same columns and dtypes."""
        import pandas as pd

        parts: dict[int, Any] = {}
        for c, (_, series) in enumerate(self.frame.items()):
            values, dtype = series.array, series.dtype
            if c in new_values:
                float_dtype = dtype if dtype.kind == "f" else np.float64
                parts[c] = pd.Series(new_values[c], dtype=float_dtype)
            elif isinstance(dtype, np.dtype) and dtype.kind in "buif":
                parts[c] = values.to_numpy().take(rows[:, c])
            else:  # with its dtype, so that pandas does not infer one from the values
                parts[c] = pd.Series(values.take(rows[:, c]), dtype=dtype, copy=False)
        return self._with_labels(parts)

    def _with_labels(self, parts: dict[int, Any]) -> pd.DataFrame:
        """Columns by position, as a frame with the user's own column labels."""
        import pandas as pd

        made = pd.DataFrame(parts, copy=False)
        made.columns = self.frame.columns
        return made


def _times(series: pd.Series[Any]) -> FloatArray:
    """A column of times as local time in microseconds."""
    import pandas as pd

    if isinstance(series.dtype, pd.ArrowDtype):  # its dates have no time zone to remove
        return np.array([as_number(value) for value in series.tolist()])
    local = series.dt.tz_localize(None) if series.dt.tz is not None else series
    return microseconds(local.to_numpy())


def _one_value(name: str, value: Any, dtype: Any) -> pd.Series[Any]:
    """A series of one value, in the column's dtype or in one that can hold the value."""
    import pandas as pd

    if is_missing(value):
        if isinstance(dtype, np.dtype) and dtype.kind in "iu":
            return pd.Series([np.nan])
        as_object = isinstance(dtype, np.dtype) and dtype.kind in "bO"
        return pd.Series([value if as_object else None], dtype=object if as_object else dtype)
    if isinstance(dtype, pd.CategoricalDtype) and value not in dtype.categories:
        wider = [*dtype.categories, value]
        return pd.Series([value], dtype=pd.CategoricalDtype(wider, ordered=dtype.ordered))
    try:
        one: pd.Series[Any] = pd.Series([value], dtype=dtype)
        return one
    except (TypeError, ValueError, OverflowError):
        if not pd.api.types.is_numeric_dtype(dtype) or isinstance(value, str):
            refuse_value(name, dtype, value)
        return pd.Series([value])  # a fraction in an integer column
