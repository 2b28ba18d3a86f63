"""A stream of inputs, stored in the run folder one chunk at a time.

Workers then read inputs by number, and an interrupted run still has them. Only one chunk is in
memory at a time. No pickle is written: texts, paths, arrays and rows of tables each have their own
columns. The name of a chunk has the digest of its inputs and that of its bytes: a damaged chunk is
stored again from the same stream.
"""

from __future__ import annotations

import hashlib
import os
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from eblime.batch.folder import (
    DamagedFileError,
    parquet_table,
    part_files,
    read_checked,
    read_manifest,
    write_checked,
)
from eblime.batch.inputs import content, is_frame, is_picture, is_row
from eblime.batch.location import Location, arrow
from eblime.domains.image.scene import as_pixels
from eblime.engine.calls import copy_of

__all__ = ["StoredInputs", "store_inputs"]

Names = Sequence[str | None]  # of the inputs of a chunk
_COUNT = 4096  # inputs in a chunk, at most
_BYTES = 32 << 20  # of inputs in a chunk, at most
_NAME = "__name__"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredInputs:
    """Inputs in the run folder."""

    folder: Location  # `inputs/` in the run folder
    chunks: tuple[str, ...]  # their files
    starts: tuple[int, ...]  # first input of each chunk, then the number of inputs
    fingerprint: str

    def __len__(self) -> int:
        return self.starts[-1]

    def name(self, number: int) -> str:
        """The name of an input; its number if it has none."""
        names, _, row = self._find(number)
        name = names[row]
        return str(number) if name is None else name

    def get(self, number: int) -> Any:
        """An input."""
        _, values, row = self._find(number)
        return values.iloc[row] if is_frame(values) else values[row]

    def _find(self, number: int) -> tuple[Names, Any, int]:
        """The names and inputs of a chunk, and the position of an input in it."""
        chunk = bisect_right(self.starts, number) - 1
        names, values = _chunk(str(self.folder / self.chunks[chunk]))
        return names, values, number - self.starts[chunk]


def store_inputs(stream: Iterable[tuple[str | None, Any]], folder: Location) -> StoredInputs:
    """Store inputs in the run folder, or check that the run was created with the same inputs.

    They come with a name or None: texts, paths, arrays, pictures, rows, or whole frames.
    """
    home = folder / "inputs"
    before = _intact_chunks(home)
    chunks: list[str] = []
    written: list[str] = []
    starts = [0]
    digest = hashlib.sha256()
    for names, values in _chunks(stream):
        stem = f"{len(chunks):06d}-{_digest(values)}"
        if stem not in before:
            before[stem] = write_checked(home, stem, _as_bytes(names, values, starts[-1]))
            written.append(before[stem])
        chunks.append(before[stem])
        starts.append(starts[-1] + len(values))
        digest.update(stem.encode())
    if starts[-1] == 0:
        raise ValueError("`inputs` must not be empty; the iterator was empty.")
    stored = StoredInputs(
        folder=home,
        chunks=tuple(chunks),
        starts=tuple(starts),
        fingerprint=digest.hexdigest()[:16],
    )
    other = _difference(folder, stored)
    for name in written if other else {*home.files()} - {*chunks}:
        (home / name).remove()
    if other:
        raise ValueError(other)
    return stored


def _intact_chunks(home: Location) -> dict[str, str]:
    """The undamaged chunks: from number and digest of the inputs to the file."""
    found = {}
    for name in home.files():
        with suppress(DamagedFileError):
            read_checked(home / name)
            found[name.rpartition("-")[0]] = name
    return found


def _difference(folder: Location, stored: StoredInputs) -> str:
    """How inputs differ from those of a run that has begun; empty if they are the same."""
    if not part_files(folder):
        return ""
    settings = read_manifest(folder)["settings"]
    if (settings["count"], settings["inputs"]) == (len(stored), stored.fingerprint):
        return ""
    return (
        f"{folder} was created with other inputs: {settings['count']} with fingerprint "
        f"{settings['inputs']}; this call has {len(stored)} with fingerprint {stored.fingerprint}."
    )


def _digest(values: Any) -> str:
    """The digest of the inputs of a chunk."""
    found = hashlib.sha256()
    for entry in [values] if is_frame(values) else values:
        found.update(content(entry))
    return found.hexdigest()[:16]


def _chunks(stream: Iterable[tuple[str | None, Any]]) -> Iterator[tuple[Names, Any]]:
    """Inputs in chunks of limited size: a frame is sliced, other inputs are collected."""
    names: list[str | None] = []
    values: list[Any] = []
    size = 0
    for name, value in stream:
        if values and (is_frame(value) or len(values) >= _COUNT or size >= _BYTES):
            yield names, values
            names, values, size = [], [], 0
        if is_frame(value):
            for first in range(0, len(value), _COUNT):
                some = value.iloc[first : first + _COUNT]
                yield [None] * len(some), some
            continue
        names.append(name)
        values.append(copy_of(value))  # the iterable may refill one array or dictionary
        size += _bytes_held(value)
    if values:
        yield names, values


def _bytes_held(value: Any) -> int:
    """About how many bytes a value takes in memory."""
    if is_picture(value):
        return int(np.prod(value.size)) * 4
    return int(getattr(value, "nbytes", 0)) or (len(value) if isinstance(value, str) else 200)


def _as_bytes(names: Names, values: Any, first: int) -> bytes:
    """A chunk as a Parquet file."""
    pa, pq = arrow()
    try:
        table = _table(pa, values)
    except (TypeError, ValueError, OverflowError) as error:  # pyarrow's errors are among these
        raise TypeError(
            f"`inputs` from number {first} to {first + len(values) - 1} must be all texts, all "
            "paths, all arrays or pictures, or all rows of one table, to be stored in the run "
            f"folder; pass a list instead ({type(error).__name__}: {error})."
        ) from error
    table = table.append_column(_NAME, pa.array(names, type=pa.string()))
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return bytes(sink.getvalue().to_pybytes())


def _table(pa: Any, values: Any) -> Any:
    """Inputs as columns; inputs that are not rows of a table have reserved column names."""
    if is_frame(values):
        return pa.Table.from_pandas(values, preserve_index=False)
    if all(isinstance(value, str) for value in values):
        coded = [value.encode("utf8", "surrogatepass") for value in values]
        return pa.table({"__text__": pa.array(coded, type=pa.binary())})
    if all(isinstance(value, os.PathLike) for value in values):
        coded = [os.fsencode(value) for value in values]
        return pa.table({"__path__": pa.array(coded, type=pa.binary())})
    if all(isinstance(value, Mapping) or is_row(value) for value in values):
        import pandas as pd

        return pa.Table.from_pandas(pd.DataFrame([dict(value) for value in values]))
    arrays = [as_pixels(value) if is_picture(value) else np.asarray(value) for value in values]
    if any(array.dtype.kind not in "buif" for array in arrays):
        raise TypeError("arrays must hold numbers")
    return pa.table(
        {
            "__array__": [array.tobytes() for array in arrays],
            "dtype": [array.dtype.str for array in arrays],
            "shape": [list(array.shape) for array in arrays],
        }
    )


@lru_cache(maxsize=2)
def _chunk(address: str) -> tuple[Names, Any]:
    """The names and inputs of a chunk."""
    table = parquet_table(read_checked(Location(address)))
    names = table.column(_NAME).to_pylist()
    table = table.drop_columns([_NAME])
    if "__text__" in table.column_names:
        coded = table.column("__text__").to_pylist()
        return names, [value.decode("utf8", "surrogatepass") for value in coded]
    if "__path__" in table.column_names:
        return names, [Path(os.fsdecode(path)) for path in table.column("__path__").to_pylist()]
    if "__array__" in table.column_names:
        return names, [
            np.frombuffer(row["__array__"], dtype=row["dtype"]).reshape(row["shape"])
            for row in table.to_pylist()
        ]
    return names, table.to_pandas()
