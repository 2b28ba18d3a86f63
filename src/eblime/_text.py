"""Names from outside as text that people can read and that no terminal or page takes for orders."""

from __future__ import annotations

import csv
import unicodedata
from typing import Any

__all__ = ["csv_text", "printable", "width"]

_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # how a cell begins that a spreadsheet would run

_TURNS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")  # override direction


def printable(text: object) -> str:
    r"""The text on one line: control characters and the like as escapes, all else as it is.

    Examples
    --------
    >>> printable("red\x1b[31m\n") == r"red\x1b[31m\n"
    True
    """
    return "".join(map(_shown, str(text)))


def csv_text(table: Any) -> str:
    """A pandas frame as CSV, in which strings that a spreadsheet takes for formulas begin with '.

    Numbers are left as they are.
    """
    safe = table.copy()
    for name in table.columns:
        if table[name].dtype.kind not in "biufcmM":
            safe[name] = [_quoted(value) for value in table[name]]
    # strings in quotes: a line break in one does not begin a new cell
    return str(safe.to_csv(index=False, quoting=csv.QUOTE_NONNUMERIC))


def _quoted(value: Any) -> Any:
    """A cell that is no formula."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def width(text: str) -> int:
    """Columns that a text takes on a terminal: two for wide characters, none for accents."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def _shown(c: str) -> str:
    """One character, escaped where it is an order rather than a sign."""
    if c in _TURNS or unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp"):
        return c.encode("unicode_escape", "backslashreplace").decode("ascii")
    return c
