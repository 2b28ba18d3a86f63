"""Checks of values read from a file, declared field by field.

A `Check` says what one value must be. `check_fields` applies checks to the entries of a dictionary,
`check_object` to the attributes of an object, with rules between them. Explanation files, scenes of
domains, manifests of runs and stored settings of the command line all use these.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

LARGEST = 1e150  # squares stay finite
LONGEST_TEXT = 1 << 20  # characters
MOST_FEATURES = 20_000
_DEEPEST = 8  # nesting of plain values
_MOST_BITS = 4096  # of a plain whole number, such as a seed
_MISSING = object()
_NO_RULES: Mapping[str, Callable[[object], bool]] = {}
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """What a value must be, and a function that says whether it is."""

    must: str  # completes "must be ..."
    holds: Callable[[Any], bool]
    axes: tuple[str, ...] = ()  # names of its lengths; equal names in an object are equal lengths


def check_fields(fields: Mapping[str, Any], checks: Mapping[str, Check], owner: str = "`") -> None:
    """Refuse fields that are missing or do not pass their checks, naming the first.

    `owner` begins the name of a field in messages: "file is damaged: `", or "`Explanation.".
    """
    lengths: dict[str, int] = {}
    for name, check in checks.items():
        found = fields.get(name, _MISSING)
        if found is _MISSING or not check.holds(found):
            got = "nothing" if found is _MISSING else reprlib.repr(found)
            raise ValueError(f"{owner}{name}` must be {check.must}; got {got}.")
        axes = () if found is None else check.axes
        shape = getattr(found, "shape", None) or ((len(found),) if axes else ())
        for axis, length in zip(axes, shape, strict=False):
            if lengths.setdefault(axis, length) != length:
                raise ValueError(
                    f"{owner}{name}` must have length {lengths[axis]} to match the other fields; "
                    f"got {length}."
                )


def check_object(
    value: T, checks: Mapping[str, Check], rules: Mapping[str, Callable[[T], bool]] = _NO_RULES
) -> None:
    """Refuse an object whose attributes do not pass their checks or break a rule.

    A rule is named by the words that complete "must have ...".
    """
    kind = type(value).__name__
    check_fields({name: getattr(value, name) for name in checks}, checks, f"`{kind}.")
    for words, holds in rules.items():
        if not holds(value):
            raise ValueError(f"`{kind}` must have {words}.")


def number(low: float = -LARGEST, high: float = LARGEST, *, nan: bool = False) -> Check:
    """A real number from `low` to `high`; `nan` allows NaN as well."""
    return Check(
        must=f"a number from {low:g} to {high:g}",
        holds=lambda v: (
            isinstance(v, (int, float))
            and not isinstance(v, bool)
            and (low <= v <= high or (nan and v != v))
        ),
    )


def whole(low: int, high: int | None = None) -> Check:
    """A whole number from `low` to `high`."""
    return Check(
        must=f"a whole number >= {low}" + ("" if high is None else f" and <= {high}"),
        holds=lambda v: type(v) is int and low <= v and (high is None or v <= high),
    )


def flag() -> Check:
    """True or False."""
    return one_of(True, False)


def text(longest: int = LONGEST_TEXT) -> Check:
    """A string of at most `longest` characters."""
    return Check(
        must=f"a string of at most {longest} characters",
        holds=lambda value: isinstance(value, str) and len(value) <= longest,
    )


def one_of(*values: object) -> Check:
    """One of the given values, of the same type."""
    return Check(
        must=f"one of {values}" if len(values) > 1 else repr(values[0]),
        holds=lambda value: any(type(value) is type(known) and value == known for known in values),
    )


def either(*checks: Check) -> Check:
    """What one of the checks asks for."""
    return Check(
        must=" or ".join(check.must for check in checks),
        holds=lambda value: any(check.holds(value) for check in checks),
        axes=next((check.axes for check in checks if check.axes), ()),
    )


def optional(check: Check) -> Check:
    """None, or what the check asks for."""
    return either(one_of(None), check)


def instance(*kinds: type) -> Check:
    """An object of one of these classes."""
    names = " or ".join(kind.__name__ for kind in kinds)
    return Check(must=f"a {names}", holds=lambda value: isinstance(value, kinds))


def list_of(check: Check, axis: str, *, most: int) -> Check:
    """A list of at most `most` values that all pass a check."""
    return Check(
        must=f"a list of at most {most} values, each {check.must}",
        holds=lambda v: isinstance(v, list) and len(v) <= most and all(map(check.holds, v)),
        axes=(axis,),
    )


def floats(*axes: str, low: float = -LARGEST) -> Check:
    """A float64 array with the named axes, every entry from `low` to `LARGEST`."""
    return Check(
        must=f"a float64 array of {len(axes)} axes with entries from {low:g} to {LARGEST:g}",
        holds=lambda v: _is_array(v, "f", (len(axes),), low) and v.dtype == np.float64,
        axes=axes,
    )


def array_of(kinds: str, *dimensions: int) -> Check:
    """A non-empty array of NumPy's dtype kinds and one of these numbers of dimensions."""
    return Check(
        must=f"a non-empty finite array of {' or '.join(map(str, dimensions))} axes",
        holds=lambda v: _is_array(v, kinds, dimensions) and v.size > 0,
    )


def _is_array(value: object, kinds: str, axes: tuple[int, ...], low: float = -LARGEST) -> bool:
    """Whether a value is such an array, with numbers from `low` to `LARGEST` and no NaN."""
    if not isinstance(value, np.ndarray) or value.dtype.kind not in kinds:
        return False
    if value.ndim not in axes:
        return False
    return not value.size or bool(low <= float(value.min()) and float(value.max()) <= LARGEST)


def plain() -> Check:
    """A dictionary of plain values that JSON has: text, finite numbers, lists and dictionaries."""
    return Check(
        must=f"a dictionary of plain finite values, nested at most {_DEEPEST} deep",
        holds=lambda value: isinstance(value, dict) and _is_plain(value, _DEEPEST),
    )


def _is_plain(value: object, deepest: int) -> bool:
    if isinstance(value, (dict, list)):
        parts = [*value, *value.values()] if isinstance(value, dict) else value
        return deepest > 0 and all(_is_plain(part, deepest - 1) for part in parts)
    if isinstance(value, str):
        return len(value) <= LONGEST_TEXT
    if isinstance(value, float):
        return abs(value) < np.inf
    return value is None or (isinstance(value, int) and value.bit_length() <= _MOST_BITS)


NAMES = list_of(text(), "p", most=MOST_FEATURES)  # of the features
