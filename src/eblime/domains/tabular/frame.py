"""`Frame`: what the library needs of a table, whichever package it comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, Protocol

from numpy.typing import NDArray

from eblime._types import FloatArray, IntArray
from eblime.domains.tabular.cells import Kind

__all__ = ["Frame", "refuse_column", "refuse_value"]


class Frame(Protocol):
    """A table of n rows that returns batches of its own kind.

    Every value that the model sees is taken from the user's own table, so names, dtypes and missing
    values stay what they were.
    """

    @property
    def names(self) -> Sequence[str]:
        """Names of the columns."""
        ...

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        ...

    def column(self, position: int) -> tuple[NDArray[Any], Kind]:
        """Values and kind of a column: floats for numbers and times, objects for categories."""
        ...

    def append_row(self, row: Sequence[Any]) -> Frame:
        """The same table with one more row at its end."""
        ...

    def row(self, position: int) -> list[Any]:
        """The values of a row, as the model sees them."""
        ...

    def append(self, other: Any) -> Frame:
        """The same table with the rows of another one of the same kind at its end."""
        ...

    def gather(self, rows: IntArray, new_values: Mapping[int, FloatArray]) -> Any:
        """A table whose value [i, c] is that of row `rows[i, c]` in column c.

        `new_values` replaces whole columns by new numbers.
        """
        ...


def refuse_column(name: str, dtype: Any) -> NoReturn:
    """Refuse a column whose dtype has no meaningful bins."""
    raise TypeError(
        f"Column {name!r} must hold numbers, dates, strings, booleans or categories; got {dtype}. "
        "Convert it to numbers first."
    )


def refuse_value(name: str, dtype: Any, value: Any) -> NoReturn:
    """Refuse a value of the row that the dtype of its column cannot hold."""
    raise ValueError(
        f"Column {name!r} of the row must have a value that its dtype {dtype} can hold; got "
        f"{value!r:.60}."
    )
