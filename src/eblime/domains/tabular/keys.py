"""Keys of perturbed rows: two rows have the same key if and only if the model sees the same."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eblime._types import IntArray

__all__ = ["keys_in_pieces", "row_keys", "table_kind"]

_SHORT = 32  # bytes; longer keys are digests


def row_keys(table: Any) -> list[bytes]:
    """A key for each row of a table: its numbers as bytes, and digests of other values.

    Examples
    --------
    >>> first, second, third = row_keys(np.array([[1.0, 2.0], [1.0, 3.0], [1.0, 2.0]]))
    >>> first == third, first == second
    (True, False)
    """
    if hasattr(table, "tocsr"):
        return _sparse_keys(table.tocsr())
    words = np.column_stack([_words(column) for column in _columns(table)])
    return [_short(row.tobytes()) for row in np.ascontiguousarray(words)]


def keys_in_pieces(inputs: Callable[[IntArray], Any], rows: IntArray, room: int) -> list[bytes]:
    """Keys of perturbed rows by number; no more than `room` of them are made at once."""
    pieces = [rows[k : k + room] for k in range(0, len(rows), room)]
    return [key for some in pieces for key in row_keys(inputs(some))]


def table_kind(table: Any) -> tuple[str, ...]:
    """What rows of a table have in common: its type, and names and dtypes of the columns."""
    kind = f"{type(table).__module__}.{type(table).__qualname__}"
    if hasattr(table, "dtype"):
        return kind, str(table.dtype), str(table.shape[1])
    if hasattr(table, "dtypes"):  # pandas and polars
        return kind, *map(str, table.columns), *map(str, table.dtypes)
    schema = _narwhals(table).schema
    return kind, *schema.names(), *map(str, schema.dtypes())


def _columns(table: Any) -> list[NDArray[Any]]:
    """The columns of an array or a data frame."""
    if isinstance(table, np.ndarray):
        return list(table.T)
    if hasattr(table, "iloc"):
        return [np.asarray(series) for _, series in table.items()]
    return [np.asarray(series.to_numpy()) for series in _narwhals(table).iter_columns()]


def _narwhals(table: Any) -> Any:
    """A table of polars, pyarrow and others as a narwhals frame."""
    import narwhals as nw

    return nw.from_native(table, eager_only=True)


def _words(column: NDArray[Any]) -> NDArray[np.uint64]:
    """A number of 64 bits for each value: the number itself, or a digest of the value."""
    kind = column.dtype.kind
    if kind == "f" and column.dtype.itemsize <= 8:
        return column.astype(np.float64).view(np.uint64)
    if kind in "bui":
        return column.astype(np.uint64)
    if kind in "mM":
        return column.view(np.uint64)
    values = column.tolist()
    try:
        words = {(type(value), value): _word(value) for value in {*values}}
        return np.array([words[type(value), value] for value in values], dtype=np.uint64)
    except (KeyError, TypeError):  # equal values of different types, NaN, or not hashable
        return np.array([_word(value) for value in values], dtype=np.uint64)


def _word(value: Any) -> int:
    """A digest of a value, by its type and its text."""
    text = f"{type(value).__name__} {value!r}"
    digest = hashlib.blake2b(text.encode("utf8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def _sparse_keys(rows: Any) -> list[bytes]:
    """Keys of sparse rows: positions and numbers that are not zero."""
    return [
        _short(rows.indices[a:b].astype(np.int64).tobytes() + rows.data[a:b].tobytes())
        for a, b in zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
    ]


def _short(content: bytes) -> bytes:
    """The content itself, or a digest of it where it is long."""
    if len(content) <= _SHORT:
        return content
    return hashlib.blake2b(content, digest_size=16).digest()
