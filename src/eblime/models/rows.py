"""Tables for networks, which take arrays of numbers."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["as_array"]


def as_array(batch: Any) -> Any:
    """A batch for a network: a data frame or an array of objects becomes floats, (n, columns).

    Missing values become NaN. A column that does not hold numbers is refused. Other batches, such
    as images and texts, are unchanged.

    Examples
    --------
    >>> import pandas as pd
    >>> as_array(pd.DataFrame({"age": [30, 41], "member": [True, False]}))
    array([[30.,  1.],
           [41.,  0.]])
    """
    if not _has_objects(batch):
        return batch
    return np.column_stack([_numbers(name, values) for name, values in _columns(batch)])


def _has_objects(batch: Any) -> bool:
    """Whether a batch is a data frame, or a table of objects; not an array of texts."""
    if isinstance(batch, np.ndarray):
        return batch.dtype == object and batch.ndim == 2
    return hasattr(batch, "columns")


def _columns(batch: Any) -> Iterator[tuple[Any, NDArray[Any]]]:
    """Names and values of the columns of an array or a data frame of any library."""
    if isinstance(batch, np.ndarray):
        yield from enumerate(batch.T)
    elif hasattr(batch, "iloc"):
        for c, name in enumerate(batch.columns):
            yield name, np.asarray(batch.iloc[:, c])
    else:
        import narwhals as nw

        for series in nw.from_native(batch, eager_only=True).iter_columns():
            yield series.name, np.asarray(series.to_numpy())


def _numbers(name: Any, values: NDArray[Any]) -> NDArray[np.float64]:
    """A column as floats."""
    if values.dtype.kind in "buif":
        return values.astype(np.float64)
    known = [np.nan if _is_missing(value) else value for value in values]
    other = [value for value in known if not isinstance(value, (Number, np.bool_))]
    if other:
        raise TypeError(
            f"A network takes numbers; column {name!r} holds {other[0]!r:.60}. Pass a function "
            "that encodes the column and calls the network."
        )
    return np.array(known, dtype=np.float64)


def _is_missing(value: Any) -> bool:
    """Whether a value is None, NaN or pandas' NA."""
    return value is None or type(value).__name__ == "NAType" or bool(value != value)
