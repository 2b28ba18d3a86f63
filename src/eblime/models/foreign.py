"""Recognising objects of other packages without importing those packages."""

from __future__ import annotations

from typing import Any

__all__ = ["descends"]


def descends(thing: Any, package: str, name: str) -> bool:
    """Whether an object is an instance of a class of a package, or of a subclass.

    Examples
    --------
    >>> from fractions import Fraction
    >>> descends(Fraction(1, 2), "numbers", "Rational"), descends(0.5, "numbers", "Rational")
    (True, False)
    """
    return any(
        kind.__name__ == name and kind.__module__.split(".")[0] == package
        for kind in type(thing).__mro__
    )
