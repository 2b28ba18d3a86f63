"""What a run is about: a folder of files, a table, lines of text, a sequence, or a stream."""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from eblime.batch.files import find_files
from eblime.batch.parquet import open_parquet
from eblime.batch.place import Place
from eblime.batch.spool import content, is_frame, spool

__all__ = ["Inputs", "Stream", "as_inputs", "generator_of"]

_CHUNK = 4096 * 12  # rows of a .csv file that are read at once


def generator_of(seed: int, number: int) -> np.random.Generator:
    """The generator of an input: order, workers and restarts cannot change it."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number,)))


class Inputs(Protocol):
    """Inputs by number."""

    @property
    def fingerprint(self) -> str:
        """Changes where the inputs do."""
        ...

    def __len__(self) -> int: ...

    def name(self, number: int) -> str:
        """What people call an input."""
        ...

    def get(self, number: int) -> Any:
        """An input."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Listed:
    """Rows of a frame or an array, or any sequence."""

    values: Any

    @property
    def fingerprint(self) -> str:
        """Their contents."""
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
        """Its number, or its label in a frame."""
        return str(self.values.index[number]) if hasattr(self.values, "iloc") else str(number)

    def get(self, number: int) -> Any:
        """A row, or an entry."""
        if hasattr(self.values, "iloc"):
            return self.values.iloc[number]
        if hasattr(self.values, "tocsr"):
            return self.values.tocsr()[number]
        return self.values[number]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stream:
    """Inputs that come one after another, as (name or None, input), or as frames."""

    entries: Iterable[tuple[str | None, Any]]

    def laid_down(self, folder: Place) -> Inputs:
        """The inputs by number, in the folder of the run."""
        return spool(self.entries, folder)


def as_inputs(given: Any) -> Inputs | Stream:
    """Understand inputs: folder, file, frame, array, list, anything iterable, Ray Dataset."""
    if isinstance(given, (str, os.PathLike, Place)):
        return _from_place(Place.of(given))
    if hasattr(given, "fingerprint") and hasattr(given, "get"):
        return given  # type: ignore[no-any-return]
    if type(given).__module__.startswith("ray.data"):
        return Stream(entries=_of_ray(given))
    if hasattr(given, "shape") or isinstance(given, Sequence):
        found = Listed(values=given)
        if len(found) == 0:
            raise ValueError("`inputs` must not be empty.")
        return found
    if hasattr(given, "__iter__"):
        return Stream(entries=((None, entry) for entry in given))
    raise TypeError(
        "`inputs` must be a folder, a file, a frame, an array, a list, something to iterate over, "
        f"or a Ray Dataset; got {type(given).__name__}."
    )


def _from_place(place: Place) -> Inputs | Stream:
    """Inputs that lie in files."""
    kind = place.kind()
    if kind == "nothing":
        raise FileNotFoundError(f"There is no folder or file {str(place)!r}.")
    if kind == "folder":
        tables = [name for name in place.files() if name.endswith(".parquet")]
        if tables:
            return _filled(open_parquet([place / name for name in tables]), place)
        return find_files(place)
    if place.suffix == ".parquet":
        return _filled(open_parquet([place]), place)
    if place.suffix == ".jsonl":
        return Stream(entries=_json_lines(place))
    if place.suffix in (".csv", ".tsv"):
        return Stream(entries=_csv(place))
    raise ValueError(
        f"`inputs` must be a folder, or a .csv, .tsv, .parquet or .jsonl file; got {str(place)!r}."
    )


def _filled(found: Inputs, place: Place) -> Inputs:
    """Refuse a table without rows."""
    if len(found) == 0:
        raise ValueError(f"{place} must have at least one row.")
    return found


def _csv(place: Place) -> Iterator[tuple[None, Any]]:
    """The rows of a table in frames; read twice, so that a column is of one kind throughout."""
    kinds: dict[str, set[str]] = {}
    for frame in _csv_frames(place, None):
        for name, kind in frame.dtypes.items():
            kinds.setdefault(name, set()).add(str(kind))
    settled = {name: kind for name, found in kinds.items() if (kind := _kind(found))}
    for frame in _csv_frames(place, settled):
        yield None, frame


def _csv_frames(place: Place, kinds: dict[str, str] | None) -> Iterator[Any]:
    """Some rows of a table at a time."""
    import pandas as pd

    with place.stream() as stream:
        try:
            separator = "\t" if place.suffix == ".tsv" else ","
            reading = pd.read_csv(
                stream,
                sep=separator,
                dtype=kinds,
                chunksize=_CHUNK,
                float_precision="round_trip",  # the same floats from every kind of file
            )
            with reading as frames:
                yield from frames
        except (ValueError, UnicodeDecodeError) as error:
            raise ValueError(f"{str(place)!r} cannot be read as a table: {error}") from error


def _kind(found: set[str]) -> str | None:
    """The kind to read a column as, whose pieces look so; None where pandas sees it by itself."""
    if found <= {"int64", "float64"}:
        return "float64" if len(found) > 1 else found.pop()
    numbers = found & {"int64", "float64"}
    return "object" if numbers and len(found) > 1 else None


def _json_lines(place: Place) -> Iterator[tuple[None, Any]]:
    """Texts, or rows: a JSON string, or an object, whose "text" counts where it has one, a line."""
    with io.TextIOWrapper(place.stream(), encoding="utf8") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                found = json.loads(line)
            except ValueError as error:
                raise ValueError(f"{place}, line {number}, must be JSON: {error}.") from error
            if not isinstance(found, (str, dict)):
                raise ValueError(f"{place}, line {number}, must be a string or an object.")
            entry = found.get("text", found) if isinstance(found, dict) else found
            if not isinstance(entry, (str, dict)):
                raise ValueError(f'{place}, line {number}, must have a string as its "text".')
            yield None, entry


def _of_ray(dataset: Any) -> Iterator[tuple[str | None, Any]]:
    """The rows of a Ray Dataset in their order: a text or an image by its column, else the row."""
    options = dataset.context.execution_options  # a dataset has its own
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
