"""Single values of a table: what they are, and how they are written.

Numbers and dates are written with as few digits as keep a label true.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from numbers import Real
from typing import Any, Literal, NamedTuple

import numpy as np

from eblime._types import FloatArray

_TIMES: Any = (date, np.datetime64)  # a datetime is a date, also one of pandas
_MAX_EXACT = 12  # characters of a number that is not rounded


class Cells(NamedTuple):
    """The values of a column and what they are."""

    values: np.ndarray  # (n,) floats for numbers and times, objects for categories
    kind: Literal["number", "time", "category"]


def is_missing(value: object) -> bool:
    """Whether a value is None, NaN, NaT or pandas' NA."""
    if value is None:
        return True
    try:
        return bool(value != value)  # only a missing value differs from itself
    except (TypeError, ValueError):
        return type(value).__name__ == "NAType"


def kinds_of(value: object) -> tuple[str, ...]:
    """What a value is, in words; nothing for other kinds, such as periods and intervals."""
    if isinstance(value, (bool, np.bool_)):
        return "True or False", "a number"
    if isinstance(value, (Real, Decimal)):
        return ("a number",)
    if isinstance(value, str):
        return ("a string",)
    return ("a date",) if isinstance(value, _TIMES) else ()


def as_number(value: Any) -> float:
    """A number or a time as a float: times in microseconds, missing values as NaN."""
    if is_missing(value):
        return float("nan")
    if isinstance(value, _TIMES):
        local = value.replace(tzinfo=None) if getattr(value, "tzinfo", None) else value
        return float(np.datetime64(local, "us").astype(np.int64))
    return float(value)


def microseconds(stamps: np.ndarray) -> FloatArray:
    """Times as microseconds since 1970, missing ones as NaN."""
    known = stamps.astype("datetime64[us]")
    return np.where(np.isnat(known), np.nan, known.astype(np.int64).astype(np.float64))


def python_value(value: object) -> Any:
    """A NumPy scalar as the Python value that compares and prints like it; others unchanged."""
    if isinstance(value, np.datetime64) and isinstance(value.item(), int):  # in nanoseconds
        value = value.astype("datetime64[us]")
    return value.item() if isinstance(value, np.generic) else value


def read_objects(values: np.ndarray) -> Cells:
    """A column of objects: floats if it holds only numbers or only times, otherwise categories.

    Missing values may be among them.
    """
    known = [value for value in values if not is_missing(value)]
    if known and all(isinstance(value, _TIMES) for value in known):
        return Cells(np.array([as_number(value) for value in values]), "time")
    other = (str, bytes, bool, np.bool_, list, tuple, set, dict, np.ndarray)
    if any(isinstance(value, other) for value in known):
        return Cells(values, "category")
    try:
        floats = np.array([np.nan if is_missing(value) else value for value in values], dtype=float)
    except (TypeError, ValueError):
        return Cells(values, "category")
    return Cells(floats, "number")


def exact_text(number: float) -> str:
    """Write a number with all its digits; very large and very small ones have an exponent."""
    return str(number).removesuffix(".0")


def time_text(number: float) -> str:
    """A time in microseconds as a date, with the parts of the day that it has."""
    text = str(np.datetime64(int(number), "us")).replace("T", " ").removesuffix(".000000")
    return text.removesuffix(" 00:00:00").removesuffix(":00")


def short_text(number: float) -> str:
    """Write a number with all its digits, or with 6 if it has very many.

    Examples
    --------
    >>> short_text(12345.67), short_text(-0.5773502691896258), short_text(34.0)
    ('12345.67', '-0.57735', '34')
    """
    exact = exact_text(number)
    if len(exact) <= _MAX_EXACT:
        return exact
    return f"{number:.6g}" if abs(number) < 1e6 else f"{number:.0f}"
