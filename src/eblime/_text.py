"""Names from users and files as safe text: readable, without control characters."""

from __future__ import annotations

import csv
import textwrap
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

_NAMED = 5  # outputs that are named
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # first characters of a spreadsheet formula

# characters that change the reading direction
_DIRECTION_MARKS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def printable(text: object) -> str:
    r"""The text on one line, with control characters as escapes.

    Examples
    --------
    >>> printable("red\x1b[31m\n") == r"red\x1b[31m\n"
    True
    """
    plain = str(text)
    return plain if plain.isascii() and plain.isprintable() else "".join(map(_escape, plain))


def count_noun(n: int, noun: str) -> str:
    """A number and its noun, which has an s unless the number is one.

    Examples
    --------
    >>> count_noun(1, "feature"), count_noun(2, "feature")
    ('1 feature', '2 features')
    """
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def name_outputs(counts: Mapping[str, int], *, predicted: bool) -> str:
    """The output that is explained, or how often each is; `predicted` says that it was the highest.

    Examples
    --------
    >>> name_outputs({"cat": 12, "dog": 8}, predicted=True)
    'the predicted class of each input: 12 x cat, 8 x dog'
    """
    if len(counts) == 1:
        return str(*counts)
    ordered = sorted(counts.items(), key=lambda pair: -pair[1])
    words = [f"{n} x {label}" for label, n in ordered[:_NAMED]]
    words += [f"{len(ordered) - _NAMED} more"] if len(ordered) > _NAMED else []
    return "the predicted class of each input: " * predicted + ", ".join(words)


def paragraph(text: str) -> str:
    """A sentence on lines of at most 80 characters, below a table."""
    return textwrap.fill(text, 80, break_long_words=False, break_on_hyphens=False)


def csv_text(table: Any) -> str:
    """A pandas frame as CSV; strings that look like formulas are prefixed with an apostrophe.

    Numbers are left as they are.
    """
    safe = table.copy()
    for name in table.columns:
        if table[name].dtype.kind not in "biufcmM":
            safe[name] = [_quote(value) for value in table[name]]
    # strings in quotes, so that a line break inside one does not start a new cell
    return str(safe.to_csv(index=False, quoting=csv.QUOTE_NONNUMERIC))


def _quote(value: object) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def width(text: str) -> int:
    """Columns that a text needs on a terminal: two for wide characters, none for accents."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def _escape(c: str) -> str:
    if c in _DIRECTION_MARKS or unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp"):
        return c.encode("unicode_escape", "backslashreplace").decode("ascii")
    return c


def one_of(words: Sequence[str]) -> str:
    """The words as a choice: `a, b or c`."""
    return " or ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
