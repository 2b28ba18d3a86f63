"""Inputs of a run: a folder of files, a table, lines of text, a sequence, or a stream.

pandas, SciPy and Pillow objects are distinguished by their attributes, so that no optional package
is imported only to look at an input.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Any, Protocol, runtime_checkable

import numpy as np

from eblime._digest import UnknownContentError, digest_of
from eblime._repr import stable_repr
from eblime.batch.folder import (
    DamagedFileError,
    open_parquet,
    part_files,
    read_checked,
    read_manifest,
    write_checked,
)
from eblime.batch.location import Location, arrow
from eblime.domains.image.photo import PHOTO_ENDINGS
from eblime.domains.image.scene import as_pixels
from eblime.engine.calls import copy_of

__all__ = [
    *("ENDINGS", "Inputs", "Stream", "as_inputs", "content", "find_files", "has_rows", "is_frame"),
    *("is_large", "is_sparse", "store_inputs"),
]

Names = Sequence[str | None]  # of the inputs of a chunk
_READ_WHOLE = 1 << 30  # bytes of inputs that are read in full to detect changes
_COUNT = 4096  # inputs of a stream that are stored in a chunk, at most
_BYTES = 32 << 20  # of inputs in a chunk, at most
_NAME = "__name__"
ENDINGS = (*PHOTO_ENDINGS, ".txt")  # of files that are inputs, unless an explainer has others
_CHUNK = 12 * _COUNT  # rows of a .csv file that are read at a time
_BLOCK = 1024  # rows of a Parquet file that are converted to a frame at a time
_BUFFER = 1 << 18  # bytes of a column of a Parquet file that are read at a time


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
class Stream:
    """Inputs that can be read only once and in order: pairs (name or None, input or frame)."""

    entries: Iterable[tuple[str | None, Any]]


def as_inputs(
    given: Any, apart_from: Location | None = None, endings: tuple[str, ...] = ENDINGS
) -> Inputs | Stream:
    """Inputs from a folder, a file, a frame, an array, a list, any iterable or a Ray Dataset.

    They must not be in the run folder, `apart_from`, whose own files would be taken for inputs.
    Of a folder, the files with these endings are read.
    """
    if isinstance(given, (str, os.PathLike, Location)):
        location = Location.of(given)
        if os.path.realpath(str(location)) == os.path.realpath(str(apart_from)):
            raise ValueError(f"`out` must not be the folder of the inputs, {str(location)!r}.")
        return _from_files(location, endings)
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


def _from_files(location: Location, endings: tuple[str, ...]) -> Inputs | Stream:
    """Inputs that are stored in files."""
    kind = location.kind()
    if kind == "nothing":
        raise FileNotFoundError(f"`inputs`: no folder or file {str(location)!r} exists.")
    tables = [location] if location.suffix == ".parquet" and kind == "file" else []
    if kind == "folder":
        tables = [location / name for name in location.files() if name.endswith(".parquet")]
    if tables:
        found = _open_parquet(tables)
        if len(found) == 0:
            raise ValueError(f"{location} must have at least one row.")
        return found
    if kind == "folder":
        return find_files(location, endings)
    if location.suffix == ".jsonl":
        return Stream(entries=_json_lines(location))
    if location.suffix in (".csv", ".tsv"):
        return Stream(entries=_csv(location))
    raise ValueError(
        "`inputs` must be a folder, or a .csv, .tsv, .parquet or .jsonl file; got "
        f"{str(location)!r}."
    )


# Single inputs


def has_rows(value: Any) -> bool:
    """Whether a value is a pandas frame or series, whose entries have a position."""
    return hasattr(value, "iloc")


def is_frame(value: Any) -> bool:
    """Whether a value is a pandas frame."""
    return has_rows(value) and hasattr(value, "columns")


def is_row(value: Any) -> bool:
    """Whether a value is a pandas series, such as one row of a frame."""
    return hasattr(value, "to_dict") and not is_frame(value)


def is_sparse(value: Any) -> bool:
    """Whether a value is a sparse matrix or array of SciPy."""
    return hasattr(value, "tocsr")


def is_picture(value: Any) -> bool:
    """Whether a value is a Pillow image."""
    return hasattr(value, "mode") and hasattr(value, "tobytes")


def is_large(value: Any) -> bool:
    """Whether a value is a file, a picture or an array of two or more axes, rather than a row."""
    array = getattr(value, "ndim", 0) >= 2 and not is_sparse(value)
    return array or isinstance(value, os.PathLike) or is_picture(value)


def content(value: Any) -> bytes:
    """The content of a value as bytes, which are the same in every process."""
    if isinstance(value, os.PathLike):
        path = Path(value)
        return path.read_bytes() if path.is_file() else os.fsencode(path)
    if is_picture(value):
        return f"{value.mode} {value.size}".encode() + bytes(value.tobytes())
    try:
        return digest_of(value, code=True).encode()
    except UnknownContentError:  # such as an open file
        return stable_repr(value).encode()


def _digest(values: Iterable[Any], first: bytes = b"") -> str:
    """A digest of the contents of values."""
    found = hashlib.sha256(first)
    for value in values:
        found.update(content(value))
    return found.hexdigest()[:16]


# Sequences


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Listed:
    """The rows of a frame or an array, or the items of any sequence."""

    values: Any  # a sparse matrix in CSR format, whose rows can be read

    @property
    def fingerprint(self) -> str:
        """A digest of the contents."""
        values = self.values
        at_once = is_frame(values) or is_sparse(values) or isinstance(values, np.ndarray)
        whole = [self.values] if at_once else map(self.get, range(len(self)))
        return _digest(whole, str(len(self)).encode())

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


# Files: photos, .txt files, or files with other endings


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """The files of a folder, sorted by name."""

    folder: Location
    names: Any  # a pyarrow array: millions of names are sent to every worker
    fingerprint: str  # of names and sizes, and of contents unless they are large or remote
    read: Callable[..., Any] | None = None  # (path or open file, name=) -> input

    def __len__(self) -> int:
        return len(self.names)

    def name(self, number: int) -> str:
        """The file name, relative to the folder."""
        return os.fsdecode(self.names[number].as_py())

    def get(self, number: int) -> Any:
        """The content of a .txt file; else what `read` makes of the path, or of an open file."""
        file = self.folder / self.name(number)
        if file.suffix == ".txt":
            return file.read().decode("utf8")
        source = file.local_path or io.BytesIO(file.read())
        return source if self.read is None else self.read(source, name=str(file))


def find_files(folder: Location, endings: tuple[str, ...] = ENDINGS) -> Files:
    """The files with these endings in a folder and its subfolders."""
    sizes = {
        name: size
        for name, size in folder.files(recursive=True).items()
        if name.lower().endswith(endings)
    }
    if not sizes:
        either = " or ".join(filter(None, [", ".join(endings[:-1]), endings[-1]]))
        raise ValueError(f"The folder {str(folder)!r} has no file that ends in {either}.")
    pa, _ = arrow()
    found = hashlib.sha256()
    whole = folder.local_path is not None and sum(sizes.values()) <= _READ_WHOLE
    for name, size in sizes.items():
        found.update(os.fsencode(f"{name}\0{size}\n"))
        if whole:
            try:
                found.update((folder / name).sha256().digest())
            except OSError:  # reported when the file is explained
                continue
    return Files(
        folder=folder,
        names=pa.array([os.fsencode(name) for name in sizes], type=pa.large_binary()),
        fingerprint=found.hexdigest()[:16],
    )


# Parquet files: those of the user, or those that hold a stream in the run folder


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunks:
    """Inputs in files, of which only the chunk of the wanted input is read."""

    # (*chunk, row, fingerprint) -> names or None, inputs, and the position of the row among them
    read: Callable[..., tuple[Any, Any, int]]
    chunks: tuple[tuple[Any, ...], ...]
    starts: tuple[int, ...]  # first input of each chunk, then the number of inputs
    fingerprint: str

    def __len__(self) -> int:
        return self.starts[-1]

    def name(self, number: int) -> str:
        """The name of an input; its number if it has none."""
        names, _, row = self._find(number)
        name = None if names is None else names[row]
        return str(number if name is None else name)

    def get(self, number: int) -> Any:
        """An input; a row of a table as a pandas series."""
        _, values, row = self._find(number)
        return values.iloc[row] if is_frame(values) else values[row]

    def _find(self, number: int) -> tuple[Any, Any, int]:
        """Names and inputs of a chunk, or of some of it, and the position of an input in them."""
        chunk = bisect_right(self.starts, number) - 1
        row = number - self.starts[chunk]
        return self.read(*self.chunks[chunk], row, self.fingerprint)


def _open_parquet(files: Sequence[Location]) -> Chunks:
    """Read the footers of Parquet files; rows are read when they are needed.

    The fingerprint is that of the contents of small local files, and of the footers of others.
    """
    chunks: list[tuple[str, int]] = []
    starts = [0]
    digest = hashlib.sha256()
    schema = None
    local = [file.local_path for file in files if file.local_path is not None]
    small = len(local) == len(files) and sum(p.stat().st_size for p in local) <= _READ_WHOLE
    for file in files:
        footer = _footer(file)
        names = footer.schema.to_arrow_schema().names
        if schema is not None and names != schema:
            raise ValueError(f"{file} must have the columns of {files[0]}; got {names}.")
        schema = names
        if small:
            digest.update(file.sha256().digest())
        for position in range(footer.num_row_groups):
            group = footer.row_group(position)
            chunks.append((str(file), position))
            starts.append(starts[-1] + group.num_rows)
            # offsets, sizes, and the smallest and largest value of every column
            digest.update(repr(group.to_dict()).encode())
    return Chunks(
        read=_rows,
        chunks=tuple(chunks),
        starts=tuple(starts),
        fingerprint=digest.hexdigest()[:16],
    )


def _footer(file: Location) -> Any:
    """The metadata of a Parquet file."""
    _, pq = arrow()
    system, path = file.open()
    try:
        return pq.read_metadata(path, filesystem=system)
    except (OSError, ValueError) as error:  # pyarrow's own error is a ValueError
        raise ValueError(f"{file} cannot be read as a Parquet file: {error}") from error


class _Group:
    """A row group, of which one block of rows is in memory at a time.

    Blocks that are asked for in order are read once. For an earlier block it starts again.
    """

    def __init__(self, file: str, group: int) -> None:
        self._file, self._group = file, group
        self._lock = Lock()
        self._blocks: Iterator[Any] = iter(())
        self._next = sys.maxsize  # number of the block that comes next

    def block(self, number: int) -> Any:
        """A block as an Arrow table."""
        with self._lock:
            if number < self._next:
                self._blocks, self._next = self._read(), 0
            skipped, self._next = number - self._next, sys.maxsize  # in case of an error
            block = next(islice(self._blocks, skipped, None), None)
            if block is None:
                raise ValueError(f"{self._file} has fewer rows than at the start of the run.")
            self._next = number + 1
            return block

    def _read(self) -> Iterator[Any]:
        """All blocks in order; not even the encoded row group is in memory as a whole."""
        pa, pq = arrow()
        system, path = Location(self._file).open()
        options = {"pre_buffer": False, "buffer_size": _BUFFER}
        held: list[Any] = []  # a batch may be shorter than asked for
        with pq.ParquetFile(path, filesystem=system, **options) as file:
            for batch in file.iter_batches(_BLOCK, row_groups=[self._group], use_threads=False):
                held.append(batch)
                while sum(map(len, held)) >= _BLOCK:
                    table = pa.Table.from_batches(held)
                    yield table.slice(0, _BLOCK)
                    held = table.slice(_BLOCK).to_batches()
        if held:
            yield pa.Table.from_batches(held)


@lru_cache(maxsize=2)
def _group(file: str, group: int, fingerprint: str) -> _Group:
    """A row group; the fingerprint keeps caches of other files apart."""
    return _Group(file, group)


@lru_cache(maxsize=4)
def _block(file: str, group: int, block: int, fingerprint: str) -> tuple[Any, Any]:
    """Row labels, if the frame had any when it was written, and some rows of a group."""
    import pandas as pd

    frame = _group(file, group, fingerprint).block(block).to_pandas()
    return None if isinstance(frame.index, pd.RangeIndex) else frame.index, frame


def _rows(file: str, group: int, row: int, fingerprint: str) -> tuple[Any, Any, int]:
    """Labels and rows of the block that a row is in, and its position among them."""
    return *_block(file, group, row // _BLOCK, fingerprint), row % _BLOCK


# Streams from files and Ray


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


# Streams that are stored in the run folder


def store_inputs(stream: Iterable[tuple[str | None, Any]], folder: Location) -> Chunks:
    """Store inputs in the run folder, or check that the run was created with the same inputs.

    They come with a name or None: texts, paths, arrays, pictures, rows, or whole frames. Workers
    then read them by number, and an interrupted run still has them. Only one chunk is in memory at
    a time. No pickle is written: each kind of input has its own columns. The name of a chunk has
    the digest of its inputs and that of its bytes: a damaged one is stored again from the stream.
    """
    home = folder / "inputs"
    before = _intact_chunks(home)
    chunks: list[str] = []
    written: list[str] = []
    starts = [0]
    digest = hashlib.sha256()
    for names, values in _chunks(stream):
        stem = f"{len(chunks):06d}-{_digest([values] if is_frame(values) else values)}"
        if stem not in before:
            before[stem] = write_checked(home, stem, _as_bytes(names, values, starts[-1]))
            written.append(before[stem])
        chunks.append(before[stem])
        starts.append(starts[-1] + len(values))
        digest.update(stem.encode())
    if starts[-1] == 0:
        raise ValueError("`inputs` must not be empty; the iterator was empty.")
    stored = Chunks(
        read=_stored_rows,
        chunks=tuple((str(home / name),) for name in chunks),
        starts=tuple(starts),
        fingerprint=digest.hexdigest()[:16],
    )
    known = read_manifest(folder)["settings"] if part_files(folder) else {}
    same = not known or (known["count"], known["inputs"]) == (len(stored), stored.fingerprint)
    for name in {*home.files()} - {*chunks} if same else written:
        (home / name).remove()
    if not same:
        raise ValueError(
            f"{folder} was created with other inputs: {known['count']} with fingerprint "
            f"{known['inputs']}; this call has {len(stored)} with fingerprint {stored.fingerprint}."
        )
    return stored


def _intact_chunks(home: Location) -> dict[str, str]:
    """The undamaged chunks: from number and digest of the inputs to the file."""
    found = {}
    for name in home.files():
        with suppress(DamagedFileError):
            read_checked(home / name)
            found[name.rpartition("-")[0]] = name
    return found


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
def _chunk(address: str, fingerprint: str) -> tuple[Names, Any]:
    """The names and inputs of a chunk."""
    table = open_parquet(read_checked(Location(address))).read(use_threads=False)
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


def _stored_rows(address: str, row: int, fingerprint: str) -> tuple[Names, Any, int]:
    """Names and inputs of a chunk, and the position of an input among them."""
    return *_chunk(address, fingerprint), row
