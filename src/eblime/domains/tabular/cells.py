"""Single values of a table: missing values, numbers, times and categories."""

from __future__ import annotations

from datetime import date
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["Kind", "as_number", "is_missing", "is_time", "numbers_or_categories", "plain"]

Kind = Literal["number", "time", "category"]  # of a column


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, NaT or pandas' NA."""
    if value is None:
        return True
    try:
        return bool(value != value)  # only a missing value differs from itself
    except (TypeError, ValueError):
        return type(value).__name__ == "NAType"


def is_time(value: Any) -> bool:
    """Whether a value is a date or a date with a time, of Python, NumPy or pandas."""
    return isinstance(value, (date, np.datetime64))  # a datetime is a date


def as_number(value: Any) -> float:
    """A number or a time as a float: times in nanoseconds, missing values as NaN."""
    if is_missing(value):
        return float("nan")
    if is_time(value):
        local = value.replace(tzinfo=None) if getattr(value, "tzinfo", None) else value
        return float(np.datetime64(local, "ns").astype(np.int64))
    return float(value)


def plain(value: Any) -> Any:
    """A NumPy scalar as the Python value that compares and prints like it; others unchanged."""
    return value.item() if isinstance(value, np.generic) else value


def numbers_or_categories(values: NDArray[Any]) -> tuple[NDArray[Any], Kind]:
    """A column of objects: floats if all values are numbers or missing, otherwise categories."""
    other = (str, bool, np.bool_, list, tuple, set, dict, np.ndarray)
    if any(isinstance(value, other) for value in values):
        return values, "category"
    try:
        floats = np.array([np.nan if is_missing(value) else value for value in values], dtype=float)
    except (TypeError, ValueError):
        return values, "category"
    return floats, "number"
