"""Single values of a table: missing values, numbers, times and categories."""

from __future__ import annotations

from datetime import date
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eblime._types import FloatArray

__all__ = [
    "Cells",
    "as_number",
    "is_missing",
    "is_time",
    "microseconds",
    "python_value",
    "read_objects",
]


class Cells(NamedTuple):
    """The values of a column and what they are."""

    values: NDArray[Any]  # (n,) floats for numbers and times, objects for categories
    kind: Literal["number", "time", "category"]
    limits: tuple[float, float] | None = None  # of whole numbers: the ends of their dtype


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
    """A number or a time as a float: times in microseconds, missing values as NaN."""
    if is_missing(value):
        return float("nan")
    if is_time(value):
        local = value.replace(tzinfo=None) if getattr(value, "tzinfo", None) else value
        return float(np.datetime64(local, "us").astype(np.int64))
    return float(value)


def microseconds(stamps: NDArray[Any]) -> FloatArray:
    """Times as microseconds since 1970, missing ones as NaN."""
    known = stamps.astype("datetime64[us]")
    return np.where(np.isnat(known), np.nan, known.astype(np.int64).astype(np.float64))


def python_value(value: Any) -> Any:
    """A NumPy scalar as the Python value that compares and prints like it; others unchanged."""
    if isinstance(value, np.datetime64) and isinstance(value.item(), int):  # in nanoseconds
        value = value.astype("datetime64[us]")
    return value.item() if isinstance(value, np.generic) else value


def read_objects(values: NDArray[Any]) -> Cells:
    """A column of objects: floats if it holds only numbers or only times, otherwise categories.

    Missing values may be among them.
    """
    known = [value for value in values if not is_missing(value)]
    if known and all(is_time(value) for value in known):
        return Cells(np.array([as_number(value) for value in values]), "time")
    other = (str, bytes, bool, np.bool_, list, tuple, set, dict, np.ndarray)
    if any(isinstance(value, other) for value in known):
        return Cells(values, "category")
    try:
        floats = np.array([np.nan if is_missing(value) else value for value in values], dtype=float)
    except (TypeError, ValueError):
        return Cells(values, "category")
    return Cells(floats, "number")
