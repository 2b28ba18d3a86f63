"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["head", "row", "table"]


def head(names: Sequence[str], *, right: int | None = None) -> str:
    """The first two lines of a table; columns from `right` on are aligned to the right."""
    first = len(names) if right is None else right
    return f"{row(names)}\n{row(['---' if k < first else '---:' for k in range(len(names))])}"


def row(cells: Iterable[object]) -> str:
    """One line of a table."""
    return f"| {' | '.join(map(str, cells))} |"


def table(names: Sequence[str], rows: Iterable[Iterable[object]], *, right: int | None = 1) -> str:
    """A whole table; by default all columns but the first are aligned to the right."""
    return "\n".join([head(names, right=right), *map(row, rows)])
