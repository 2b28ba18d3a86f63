"""The tables of all studies: Markdown on the terminal and on pages, and CSV files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd

from eblime._files import write_whole

__all__ = ["frame_table", "head", "row", "table", "write_csv"]


def head(names: Sequence[str], *, right: int | None = 1) -> str:
    """The first two lines of a table; columns from `right` on are aligned to the right."""
    first = len(names) if right is None else right
    return f"{row(names)}\n{row(['---' if k < first else '---:' for k in range(len(names))])}"


def row(cells: Iterable[object]) -> str:
    """One line of a table."""
    return f"| {' | '.join(map(str, cells))} |"


def table(names: Sequence[str], rows: Iterable[Iterable[object]], *, right: int | None = 1) -> str:
    """A whole table; by default all columns but the first are aligned to the right."""
    return "\n".join([head(names, right=right), *map(row, rows)])


def frame_table(frame: pd.DataFrame, form: str = "{:.3g}") -> str:
    """A pandas frame as a table; numbers with decimals in the given form, missing ones empty."""
    named = frame.index.names != [None]
    flat = frame.reset_index() if named else frame
    cells = flat.astype(object).to_numpy()
    rows = [
        [("" if pd.isna(x) else form.format(x)) if isinstance(x, float) else x for x in line]
        for line in cells
    ]
    return table([str(name) for name in flat.columns], rows)


def write_csv(frame: pd.DataFrame, path: Path, *, digits: int | None = None) -> None:
    """Write a frame completely or not at all, rounded to some decimals."""
    rounded = frame if digits is None else frame.round(digits)
    write_whole(path.resolve(), rounded.to_csv(index=False).encode())
