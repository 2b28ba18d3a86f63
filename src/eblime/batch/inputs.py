"""Inputs of a run: a folder of files, a table, lines of text, a sequence, or a stream."""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from eblime.batch.entries import content, has_rows, is_frame, is_sparse
from eblime.batch.files import find_files
from eblime.batch.location import Location
from eblime.batch.parquet import open_parquet
from eblime.batch.stream_inputs import store_inputs

__all__ = ["Inputs", "Stream", "as_inputs", "generator_of"]

_CHUNK = 4096 * 12  # rows of a .csv file that are read at a time


def generator_of(seed: int, number: int) -> np.random.Generator:
    """The random generator of an input; it depends on the seed and the number alone."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number,)))


@runtime_checkable
class Inputs(Protocol):
    """Inputs that can be read by number."""

    @property
    def fingerprint(self) -> str:
        """A string that changes when the inputs change."""
        ...

    def __len__(self) -> int: ...

    def name(self, number: int) -> str:
        """The name of an input, for people."""
        ...

    def get(self, number: int) -> Any:
        """An input."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Listed:
    """The rows of a frame or an array, or the items of any sequence."""

    values: Any  # a sparse matrix in CSR format, whose rows can be read

    @property
    def fingerprint(self) -> str:
        """A digest of the contents."""
        found = hashlib.sha256(str(len(self)).encode())
        if is_frame(self.values):
            found.update(content(self.values))
            return found.hexdigest()[:16]
        for number in range(len(self)):
            found.update(content(self.get(number)))
        return found.hexdigest()[:16]

    def __len__(self) -> int:
        return int(self.values.shape[0]) if hasattr(self.values, "shape") else len(self.values)

    def name(self, number: int) -> str:
        """The row label of a frame; else the number."""
        return str(self.values.index[number] if has_rows(self.values) else number)

    def get(self, number: int) -> Any:
        """A row, or an item."""
        if has_rows(self.values):
            return self.values.iloc[number]
        if hasattr(self.values, "column_names"):  # an Arrow table, in which [number] is a column
            return self.values.slice(number, 1)
        return self.values[number]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stream:
    """Inputs that can be read only once and in order: pairs (name or None, input or frame)."""

    entries: Iterable[tuple[str | None, Any]]

    def stored_in(self, folder: Location) -> Inputs:
        """Store the inputs in the run folder, where they can be read by number."""
        return store_inputs(self.entries, folder)


def as_inputs(given: Any, apart_from: Location | None = None) -> Inputs | Stream:
    """Inputs from a folder, a file, a frame, an array, a list, any iterable or a Ray Dataset.

    They must not be in the run folder, `apart_from`, whose own files would be taken for inputs.
    """
    if isinstance(given, (str, os.PathLike, Location)):
        location = Location.of(given)
        if apart_from is not None and location.is_same(apart_from):
            raise ValueError(f"`out` must not be the folder of the inputs, {str(location)!r}.")
        return _from_files(location)
    if isinstance(given, Inputs):
        return given
    if type(given).__module__.startswith("ray.data"):
        return Stream(entries=_ray_rows(given))
    if hasattr(given, "shape") or isinstance(given, Sequence):
        found = Listed(values=given.tocsr() if is_sparse(given) else given)
        if len(found) == 0:
            raise ValueError("`inputs` must not be empty.")
        return found
    if isinstance(given, Iterable) and not isinstance(given, Mapping):
        return Stream(entries=((None, entry) for entry in given))
    raise TypeError(
        "`inputs` must be a folder, a file, a frame, an array, a list, another iterable or a "
        f"Ray Dataset; got {type(given).__name__}."
    )


def _from_files(location: Location) -> Inputs | Stream:
    """Inputs that are stored in files."""
    kind = location.kind()
    if kind == "nothing":
        raise FileNotFoundError(f"`inputs`: no folder or file {str(location)!r} exists.")
    if kind == "folder":
        tables = [name for name in location.files() if name.endswith(".parquet")]
        if tables:
            return _not_empty(open_parquet([location / name for name in tables]), location)
        return find_files(location)
    if location.suffix == ".parquet":
        return _not_empty(open_parquet([location]), location)
    if location.suffix == ".jsonl":
        return Stream(entries=_json_lines(location))
    if location.suffix in (".csv", ".tsv"):
        return Stream(entries=_csv(location))
    raise ValueError(
        "`inputs` must be a folder, or a .csv, .tsv, .parquet or .jsonl file; got "
        f"{str(location)!r}."
    )


def _not_empty(found: Inputs, location: Location) -> Inputs:
    """Refuse a table without rows."""
    if len(found) == 0:
        raise ValueError(f"{location} must have at least one row.")
    return found


def _csv(location: Location) -> Iterator[tuple[None, Any]]:
    """The rows of a table in frames; the file is read twice, so that each column has one dtype."""
    seen: dict[str, set[str]] = {}
    for frame in _csv_frames(location, None):
        for name, dtype in frame.dtypes.items():
            seen.setdefault(name, set()).add(str(dtype))
    dtypes = {name: dtype for name, found in seen.items() if (dtype := _common_dtype(found))}
    for frame in _csv_frames(location, dtypes):
        yield None, frame


def _csv_frames(location: Location, dtypes: dict[str, str] | None) -> Iterator[Any]:
    """Some rows of a table at a time."""
    from eblime._pandas import read_csv

    with location.stream() as stream:
        try:
            with read_csv(stream, location.suffix, dtype=dtypes, chunksize=_CHUNK) as frames:
                yield from frames
        except (ValueError, UnicodeDecodeError) as error:
            raise ValueError(f"{str(location)!r} cannot be read as a table: {error}") from error


def _common_dtype(found: set[str]) -> str | None:
    """The dtype of a column from the dtypes of its pieces; None lets pandas decide."""
    if found <= {"int64", "float64"}:
        return "float64" if len(found) > 1 else found.pop()
    numbers = found & {"int64", "float64"}
    return "object" if numbers and len(found) > 1 else None


def _json_lines(location: Location) -> Iterator[tuple[None, Any]]:
    """One text or row per line: a JSON string, an object with a "text", or another object."""
    with io.TextIOWrapper(location.stream(), encoding="utf8") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                found = json.loads(line)
            except ValueError as error:
                raise ValueError(f"{location}, line {number}, must be JSON: {error}.") from error
            if not isinstance(found, (str, dict)):
                raise ValueError(f"{location}, line {number}, must be a string or an object.")
            entry = found.get("text", found) if isinstance(found, dict) else found
            if not isinstance(entry, (str, dict)):
                raise ValueError(f'{location}, line {number}, must have a string as its "text".')
            yield None, entry


def _ray_rows(dataset: Any) -> Iterator[tuple[str | None, Any]]:
    """The rows of a Ray Dataset in order; of a row with a column "image" or "text", that column."""
    options = dataset.context.execution_options  # they belong to this dataset
    before, options.preserve_order = options.preserve_order, True
    try:
        for row in dataset.iter_rows():
            name = None if row.get("path") is None else str(row["path"])
            for column in ("image", "text"):
                if column in row:
                    yield name, row[column]
                    break
            else:
                yield None, next(iter(row.values())) if len(row) == 1 else row
    finally:
        options.preserve_order = before
