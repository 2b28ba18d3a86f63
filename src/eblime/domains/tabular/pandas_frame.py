"""Frames of pandas, in pandas' own terms: dtypes decide, and come back as they were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eblime._types import FloatArray, IntArray
from eblime.domains.tabular.frames import Kind, is_missing, objects_or_numbers, refuse_kind

__all__ = ["PandasFrame"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PandasFrame:
    """A pandas frame."""

    frame: Any
    names: Sequence[str]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.frame)

    def column(self, place: int) -> tuple[NDArray[Any], Kind]:
        """Numbers and times as floats; strings, booleans and categories as objects."""
        from pandas.api import types

        series = self.frame.iloc[:, place]
        kind = series.dtype
        if types.is_datetime64_any_dtype(kind):
            local = series.dt.tz_localize(None) if series.dt.tz is not None else series
            stamps = local.to_numpy(dtype="datetime64[ns]")
            numbers = stamps.astype(np.int64).astype(np.float64)
            return np.where(np.isnat(stamps), np.nan, numbers), "time"
        if types.is_timedelta64_dtype(kind):
            refuse_kind(self.names[place], kind)
        if types.is_bool_dtype(kind) or (isinstance(kind.name, str) and kind.name == "category"):
            return np.array([*series.tolist(), None], dtype=object)[:-1], "category"
        if types.is_numeric_dtype(kind):
            return series.to_numpy(dtype=np.float64, na_value=np.nan), "number"
        return objects_or_numbers(np.array([*series.tolist(), None], dtype=object)[:-1])

    def extended(self, row: Sequence[Any]) -> PandasFrame:
        """One more row, column by column in the dtypes that it has, wherever its values fit."""
        import pandas as pd

        base, parts = self.frame, {}
        for c, (value, kind) in enumerate(zip(row, self.frame.dtypes, strict=True)):
            parts[c] = _one(value, kind)
            if parts[c].dtype != kind and isinstance(kind, pd.CategoricalDtype):  # another category
                name = self.frame.columns[c]
                base = base.assign(**{name: base[name].astype(parts[c].dtype)})
        both = pd.concat([base, self._named(parts)], ignore_index=True)
        return PandasFrame(frame=both, names=self.names)

    def gather(self, places: IntArray, fresh: Mapping[int, FloatArray]) -> Any:
        """A frame of the same columns and dtypes."""
        import pandas as pd

        parts: dict[int, Any] = {}
        for c, kind in enumerate(self.frame.dtypes):
            values = self.frame.iloc[:, c].array
            if c in fresh:
                parts[c] = pd.Series(fresh[c], dtype=kind if kind.kind == "f" else np.float64)
            elif isinstance(kind, np.dtype) and kind.kind in "buif":
                parts[c] = values.to_numpy().take(places[:, c])
            else:  # a series of its own, so that no dtype is guessed from the values
                parts[c] = pd.Series(values.take(places[:, c]), dtype=kind, copy=False)
        return self._named(parts)

    def joined(self, other: Any) -> PandasFrame:
        """Another frame below this one, in this one's columns and dtypes."""
        import pandas as pd

        if not isinstance(other, PandasFrame) or set(other.names) != set(self.names):
            raise ValueError("`perturb` must return a pandas frame of the background's columns.")
        below = other.frame[list(self.frame.columns)]
        with suppress(TypeError, ValueError):  # fractions among whole numbers stay as they are
            below = below.astype(dict(self.frame.dtypes.items()))
        stacked = pd.concat([self.frame, below], ignore_index=True)
        return PandasFrame(frame=stacked, names=self.names)

    def _named(self, parts: Mapping[int, Any]) -> Any:
        """Columns by place as a frame of the user's own column labels."""
        import pandas as pd

        made = pd.DataFrame(parts, copy=False)
        made.columns = self.frame.columns
        return made


def _one(value: Any, kind: Any) -> Any:
    """A series of one value in a column's dtype, or in one that holds the value too."""
    import pandas as pd

    if is_missing(value):
        if isinstance(kind, np.dtype) and kind.kind in "iu":
            return pd.Series([np.nan])
        plain = isinstance(kind, np.dtype) and kind.kind in "bO"
        return pd.Series([value if plain else None], dtype=object if plain else kind)
    if isinstance(kind, pd.CategoricalDtype) and value not in kind.categories:
        wider = [*kind.categories, value]
        return pd.Series([value], dtype=pd.CategoricalDtype(wider, ordered=kind.ordered))
    try:
        return pd.Series([value], dtype=kind)
    except (TypeError, ValueError, OverflowError):  # a fraction among whole numbers
        return pd.Series([value])
