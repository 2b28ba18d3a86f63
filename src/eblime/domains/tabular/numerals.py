"""Readable numbers and dates, with as few digits as keep a label true."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

__all__ = ["edge_text", "exact_text", "short_text", "value_text"]

_FEW = 4  # digits to start with, if the number has as many
_ALL = 17  # digits that distinguish any two floats
_LONG = 12  # characters of a number that is not rounded
_LARGE, _SMALL = 1e15, 1e-4  # beyond these, exponents are easier to read
_TIME_UNITS = ("m", "s", "ms", "us")


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
    if number == 0 or _SMALL <= abs(number) < _LARGE:
        return np.format_float_positional(number, trim="-")
    return repr(float(number)).removesuffix(".0")


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
        yield str(day), _microseconds(day)
    for unit in _TIME_UNITS:
        rounded = stamp.astype(f"datetime64[{unit}]")
        yield str(rounded).replace("T", " "), _microseconds(rounded)


def _microseconds(stamp: np.datetime64) -> float:
    """Microseconds since 1970."""
    return float(stamp.astype("datetime64[us]").astype(np.int64))
