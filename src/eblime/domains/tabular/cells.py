"""Single values of a table: what they are, and how they are written.

Numbers and dates are written with as few digits as keep a label true.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import date
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eblime._types import FloatArray

__all__ = [
    *("Cells", "as_number", "edge_text", "exact_text", "is_missing", "is_time", "microseconds"),
    *("python_value", "read_objects", "short_text", "value_text"),
]

_FEW = 4  # digits to start with, if the number has as many
_ALL = 17  # digits that distinguish any two floats
_LONG = 12  # characters of a number that is not rounded
_LARGE = 1e15  # beyond this, exponents are easier to read
_TIME_UNITS = ("m", "s", "ms", "us")


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


def edge_text(
    edge: float, low: float, high: float, *, whole: bool = False, times: bool = False
) -> str:
    """Write the edge of a bin, so that `low <= text < high` and the text is as short as possible.

    Parameters
    ----------
    edge
        The edge; a value `<= edge` is in the bin below it.
    low, high
        The values nearest to the edge: `low <= edge < high`.
    whole
        All values are whole numbers, or whole days for times; the text is too, if possible.
    times
        The numbers are microseconds since 1970.

    Examples
    --------
    >>> edge_text(1365.5, 1365, 1366), edge_text(1365.5, 1365, 1366, whole=True)
    ('1365.5', '1365')
    >>> edge_text(13.6775, 13.67, 13.68), edge_text(13.6775, 13.6, 13.7)
    ('13.678', '13.68')
    """
    candidates = _dates(edge, whole) if times else _decimals(edge, whole)
    for text, number in candidates:
        if low <= number < high:
            return text
    return exact_text(edge, times=times)


def exact_text(number: float, *, times: bool = False) -> str:
    """Write a number with all its digits; very large and very small ones have an exponent."""
    if times:
        found = [text for text, stamp in _dates(number, True) if stamp == number]
        return found[0] if found else str(np.datetime64(int(number), "us"))
    return str(number).removesuffix(".0")


def short_text(number: float) -> str:
    """Write a number with all its digits, or with 6 if it has very many.

    Examples
    --------
    >>> short_text(12345.67), short_text(-0.5773502691896258), short_text(34.0)
    ('12345.67', '-0.57735', '34')
    """
    exact = exact_text(number)
    return exact if len(exact) <= _LONG else _decimal(number, 6)


def value_text(number: float, *, within: float = math.inf) -> str:
    """Write that something equals a number, or nearly does: with 6 digits, if it has very many.

    It is rounded by less than `within`.

    Examples
    --------
    >>> value_text(34.5), value_text(-0.5773502691896258)
    ('= 34.5', '≈ -0.57735')
    """
    text, exact = short_text(number), exact_text(number)
    rounded = float(text) != number and abs(float(text) - number) < within
    return f"≈ {text}" if rounded else f"= {exact}"


def _decimals(number: float, whole: bool) -> Iterator[tuple[str, float]]:
    """Ways to write a number, shorter ones first, each with the number that it denotes."""
    if whole and abs(number) < _LARGE:
        yield str(math.floor(number)), float(math.floor(number))
    for digits in range(_FEW, _ALL + 1):
        text = _decimal(number, digits)
        yield text, float(text)


def _decimal(number: float, digits: int) -> str:
    """A number with a number of significant digits; digits before the point are never cut."""
    size = abs(number)
    if size >= _LARGE or size < 1:
        return f"{number:.{digits}g}"
    text = f"{number:.{max(0, digits - len(str(int(size))))}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _dates(number: float, whole: bool) -> Iterator[tuple[str, float]]:
    """Ways to write a time, shorter ones first, each rounded down."""
    stamp = np.datetime64(int(number), "us")
    day = stamp.astype("datetime64[D]")
    if whole or day == stamp:
        yield str(day), float(microseconds(np.asarray(day)))
    for unit in _TIME_UNITS:
        rounded = stamp.astype(f"datetime64[{unit}]")
        yield str(rounded).replace("T", " "), float(microseconds(np.asarray(rounded)))
