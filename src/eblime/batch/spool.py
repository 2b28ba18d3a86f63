"""Inputs that come one after another are stored in the folder of the run, a chunk at a time.

From there every worker takes them by number, and a run that was interrupted has them still. Memory
holds one chunk, however many inputs come. No pickle is written: texts, paths, arrays and rows of
tables have columns of their own. A chunk has a checksum, and `index.json` has the digest of what
was stored in it: a damaged chunk is stored again from the same inputs.
"""

from __future__ import annotations

import hashlib
import json
import os
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from eblime.batch.folder import part_names, read_manifest
from eblime.batch.place import Place, arrow
from eblime.batch.seal import DamagedFileError, checked, sealed
from eblime.domains.image.scene import as_pixels

__all__ = ["Spooled", "content", "is_frame", "spool"]

_COUNT = 4096  # inputs in a chunk, at most
_BYTES = 32 << 20
_INDEX = "inputs/index.json"
_NAME = "__name__"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spooled:
    """Inputs that lie in the folder of the run."""

    folder: Place
    starts: tuple[int, ...]  # first input of each chunk, and at the end their number
    fingerprint: str

    def __len__(self) -> int:
        return self.starts[-1]

    def name(self, number: int) -> str:
        """Its name where it came with one, else its number."""
        names, _, place = self._find(number)
        return str(number if names is None else names[place])

    def get(self, number: int) -> Any:
        """An input."""
        _, values, place = self._find(number)
        return values.iloc[place] if is_frame(values) else values[place]

    def _find(self, number: int) -> tuple[Any, Any, int]:
        chunk = bisect_right(self.starts, number) - 1
        names, values = _chunk(str(self.folder), chunk, self.fingerprint)
        return names, values, number - self.starts[chunk]


def spool(stream: Iterable[tuple[str | None, Any]], folder: Place) -> Spooled:
    """Store inputs, or check that they are those that the run was created with.

    Parameters
    ----------
    stream
        Names, or None, and inputs: texts, paths, arrays, pictures or rows; or whole frames.
    folder
        Of the run.
    """
    begun = bool(part_names(folder))
    known = _known_chunks(folder) if begun else []
    chunks: list[str] = []
    starts = [0]
    for names, values in _chunks(stream):
        number, digest = len(chunks), _digest(values)
        same = known[number : number + 1] == [digest]
        if not begun or (same and not _intact(folder, number)):
            (folder / _file(number)).write(sealed(_encoded(names, values, starts[-1])))
        chunks.append(digest)
        starts.append(starts[-1] + len(values))
    if starts[-1] == 0:
        raise ValueError("`inputs` must not be empty; the iterator was empty.")
    fingerprint = hashlib.sha256("".join(chunks).encode()).hexdigest()[:16]
    if begun:
        _check_same(folder, starts[-1], fingerprint)
    if known != chunks:
        (folder / _INDEX).write(json.dumps({"chunks": chunks}).encode())
        _check_intact(folder, len(chunks))
    return Spooled(folder=folder, starts=tuple(starts), fingerprint=fingerprint)


def _known_chunks(folder: Place) -> list[str]:
    """The digest of each chunk that was stored; none if the index is missing or damaged."""
    try:
        found = json.loads((folder / _INDEX).read())
        return [str(digest) for digest in found["chunks"]]
    except (FileNotFoundError, ValueError, KeyError, TypeError, RecursionError):
        return []


def _check_same(folder: Place, count: int, fingerprint: str) -> None:
    """Refuse inputs that are not those of the run."""
    settings = read_manifest(folder)["settings"]
    if (settings["count"], settings["inputs"]) != (count, fingerprint):
        raise ValueError(
            f"{folder} was created with other inputs: {settings['count']} with fingerprint "
            f"{settings['inputs']}; this call has {count} with fingerprint {fingerprint}."
        )


def _check_intact(folder: Place, count: int) -> None:
    """Refuse to go on with damaged chunks; with the index written they are replaced next time."""
    damaged = [number for number in range(count) if not _intact(folder, number)]
    if damaged:
        raise DamagedFileError(f"{folder / _file(damaged[0])} is damaged; call again to mend it.")


def _intact(folder: Place, number: int) -> bool:
    """Whether a chunk is there and matches its checksum."""
    try:
        checked(folder / _file(number))
    except (FileNotFoundError, DamagedFileError):
        return False
    return True


def _digest(values: Any) -> str:
    """The digest of the inputs of a chunk."""
    found = hashlib.sha256()
    for entry in [values] if is_frame(values) else values:
        found.update(content(entry))
    return found.hexdigest()


def _file(number: int) -> str:
    """The file of a chunk, in the folder of the run."""
    return f"inputs/{number:06d}.parquet"


def is_frame(values: Any) -> bool:
    """Whether that is a pandas frame."""
    return hasattr(values, "iloc") and hasattr(values, "columns")


def content(entry: Any) -> bytes:
    """What an input holds, as bytes that are the same in every process."""
    if is_frame(entry):
        from pandas.util import hash_pandas_object

        names = ",".join(map(str, entry.columns)).encode()
        return names + bytes(hash_pandas_object(entry.astype(str)).to_numpy().tobytes())
    if hasattr(entry, "toarray"):
        entry = entry.toarray()
    if isinstance(entry, np.ndarray) and entry.dtype.kind == "O":  # whose bytes are addresses
        return str(entry.shape).encode() + json.dumps(entry.tolist(), default=str).encode()
    if hasattr(entry, "tobytes"):  # arrays and pictures
        return str(getattr(entry, "shape", "")).encode() + bytes(entry.tobytes())
    if isinstance(entry, os.PathLike):
        path = Path(entry)
        return path.read_bytes() if path.is_file() else str(path).encode()
    if hasattr(entry, "to_dict"):  # a pandas series
        entry = entry.to_dict()
    return json.dumps(entry, default=str, sort_keys=True).encode()


def _chunks(stream: Iterable[tuple[str | None, Any]]) -> Iterator[tuple[list[Any] | None, Any]]:
    """Inputs in chunks of bounded size: frames as they come, cut; others gathered."""
    names: list[str | None] = []
    values: list[Any] = []
    size = 0
    for name, value in stream:
        if is_frame(value):
            if values:
                yield _told(names), values
                names, values, size = [], [], 0
            for first in range(0, len(value), _COUNT):
                yield None, value.iloc[first : first + _COUNT]
            continue
        names.append(name)
        values.append(value)
        size += _size(value)
        if len(values) >= _COUNT or size >= _BYTES:
            yield _told(names), values
            names, values, size = [], [], 0
    if values:
        yield _told(names), values


def _told(names: list[str | None]) -> list[str | None] | None:
    return names if any(name is not None for name in names) else None


def _size(value: Any) -> int:
    """About how many bytes an input holds."""
    if hasattr(value, "size") and hasattr(value, "mode"):  # a picture
        return int(np.prod(value.size)) * 4
    return int(getattr(value, "nbytes", 0)) or (len(value) if isinstance(value, str) else 200)


def _encoded(names: list[Any] | None, values: Any, first: int) -> bytes:
    """A chunk as a Parquet file."""
    pa, pq = arrow()
    try:
        table = _table(pa, values)
    except (TypeError, ValueError, OverflowError) as error:  # pyarrow's own are of these kinds
        raise TypeError(
            f"`inputs` from number {first} to {first + len(values) - 1} must be all texts, all "
            "paths, all arrays or pictures, or all rows of one table, to be laid down in the run; "
            f"give a list instead ({type(error).__name__}: {error})."
        ) from error
    if names is not None:
        table = table.append_column(_NAME, pa.array(names, type=pa.string()))
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return bytes(sink.getvalue().to_pybytes())


def _table(pa: Any, values: Any) -> Any:
    """Inputs as columns; those that are no rows have columns that no table has."""
    if is_frame(values):
        return pa.Table.from_pandas(values, preserve_index=False)
    if all(isinstance(value, str) for value in values):
        coded = [value.encode("utf8", "surrogatepass") for value in values]
        return pa.table({"__text__": pa.array(coded, type=pa.binary())})
    if all(isinstance(value, os.PathLike) for value in values):
        return pa.table({"__path__": [os.fspath(value) for value in values]})
    if all(isinstance(value, Mapping) or hasattr(value, "to_dict") for value in values):
        import pandas as pd

        return pa.Table.from_pandas(pd.DataFrame([dict(value) for value in values]))
    arrays = [as_pixels(value) if hasattr(value, "mode") else np.asarray(value) for value in values]
    if any(array.dtype.kind not in "buif" for array in arrays):
        raise TypeError("arrays of numbers, or of one kind")
    return pa.table(
        {
            "__array__": [array.tobytes() for array in arrays],
            "dtype": [array.dtype.str for array in arrays],
            "shape": [list(array.shape) for array in arrays],
        }
    )


@lru_cache(maxsize=2)
def _chunk(folder: str, number: int, fingerprint: str) -> tuple[Any, Any]:
    """The names and inputs of a chunk; remembered for inputs of that fingerprint alone."""
    pa, pq = arrow()
    table = pq.read_table(pa.BufferReader(checked(Place(folder) / _file(number))))
    names = None
    if _NAME in table.column_names:
        names = table.column(_NAME).to_pylist()
        table = table.drop_columns([_NAME])
    if "__text__" in table.column_names:
        coded = table.column("__text__").to_pylist()
        return names, [value.decode("utf8", "surrogatepass") for value in coded]
    if "__path__" in table.column_names:
        return names, [Path(path) for path in table.column("__path__").to_pylist()]
    if "__array__" in table.column_names:
        return names, [
            np.frombuffer(row["__array__"], dtype=row["dtype"]).reshape(row["shape"])
            for row in table.to_pylist()
        ]
    return names, table.to_pandas()
