"""Tables that are NumPy arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eblime._types import FloatArray, IntArray
from eblime.domains.tabular.cells import Kind, plain, read_objects

__all__ = ["ArrayFrame", "array_names", "read_array"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ArrayFrame:
    """A NumPy array, one column per feature."""

    values: NDArray[Any]  # (n, d)
    names: Sequence[str]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.values)

    def column(self, position: int) -> tuple[NDArray[Any], Kind]:
        """Numbers as floats; a column of objects holds numbers, times or categories."""
        values = self.values[:, position]
        if values.dtype.kind in "uif":
            return values.astype(np.float64), "number"
        return read_objects(values.astype(object))

    def append_row(self, row: Sequence[Any]) -> ArrayFrame:
        """One more row; an integer array becomes float if the row has fractions."""
        dtype = self.values.dtype
        last = np.empty((1, len(row)), dtype=object)
        last[0] = row
        if dtype.kind != "O":
            numbers = last.astype(np.float64)  # None becomes NaN
            with np.errstate(invalid="ignore"):
                fits = dtype.kind in "buif" and np.array_equal(numbers.astype(dtype), numbers)
            last = numbers.astype(dtype if fits or dtype.kind == "f" else np.float64)
        return ArrayFrame(values=np.concatenate([self.values, last]), names=self.names)

    def row(self, position: int) -> list[Any]:
        """The values of a row."""
        return [plain(value) for value in self.values[position]]

    def append(self, other: Any) -> ArrayFrame:
        """The rows of another array at the end."""
        if not isinstance(other, ArrayFrame):
            raise ValueError("`perturb` must return an array, because the background is an array.")
        return ArrayFrame(values=np.concatenate([self.values, other.values]), names=self.names)

    def gather(self, rows: IntArray, new_values: Mapping[int, FloatArray]) -> NDArray[Any]:
        """An array of the same dtype."""
        d = self.values.shape[1]
        flat = np.ascontiguousarray(self.values).ravel()
        found = flat.take(rows * d + np.arange(d))
        if new_values and found.dtype.kind in "bui":
            found = found.astype(np.float64)
        for position, numbers in new_values.items():
            found[:, position] = numbers
        return np.asarray(found)


def read_array(table: Any, names: Sequence[str] | None) -> ArrayFrame:
    """Check an array, or lists of rows, and name its columns."""
    values = np.asarray(_unmasked(table))
    if values.dtype.kind in "US":  # a mix of numbers and strings, all turned into strings
        values = np.asarray(table, dtype=object)
    if values.ndim != 2 or 0 in values.shape or values.dtype.kind not in "buifO":
        raise ValueError(
            "`background` must be a table of at least one row and one column; got an array "
            f"of shape {values.shape} and dtype {values.dtype}.{_advice(values)}"
        )
    return ArrayFrame(values=values, names=array_names(values.shape[1], names))


def array_names(n_columns: int, names: Sequence[str] | None) -> list[str]:
    """Names of an array's columns: those given, or "column 0" and so on."""
    if names is None:
        return [f"column {c}" for c in range(n_columns)]
    listed = [str(name) for name in names]
    twice = [name for name in listed if listed.count(name) > 1]
    if len(listed) != n_columns or twice:
        got = f"{twice[0]!r} more than once" if twice else f"{len(listed)} names"
        raise ValueError(
            f"`names` must give each of the {n_columns} columns a different name; got {got}."
        )
    return listed


def _advice(values: NDArray[Any]) -> str:
    """What to do with a list of dictionaries or an array of records."""
    records = values.ndim == 1 and values.size > 0 and isinstance(values[0], (Mapping, np.void))
    return " Pass pandas.DataFrame(background)." if records else ""


def _unmasked(table: Any) -> Any:
    """A masked array with NaN for the masked values; other tables unchanged."""
    if isinstance(table, np.ma.MaskedArray):
        return np.ma.filled(table.astype(np.float64), np.nan)
    return table
