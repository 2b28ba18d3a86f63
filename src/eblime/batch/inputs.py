"""Inputs of a run: a folder of files, a table, lines of text, a sequence, or a stream.

pandas, SciPy and Pillow objects are distinguished by their attributes, so that no optional package
is imported only to look at an input.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from eblime._digest import UnknownContentError, digest_of
from eblime._repr import stable_repr
from eblime.batch.folder import read_checked, read_parquet, write_checked
from eblime.batch.location import Location, arrow
from eblime.domains.image.photo import PHOTO_ENDINGS
from eblime.domains.image.scene import as_pixels
from eblime.engine.calls import copy_of

Names = Sequence[str | None]  # of the inputs of a chunk
_READ_WHOLE = 1 << 30  # bytes of inputs that are read in full to detect changes
_COUNT = 4096  # inputs of a stream that are stored in a chunk, at most
_BYTES = 32 << 20  # of inputs in a chunk, at most
_NAME = "__name__"
ENDINGS = (*PHOTO_ENDINGS, ".txt")  # of files that are inputs, unless an explainer has others
_BLOCK = 1024  # rows of a Parquet file that are converted to a frame at a time
_BUFFER = 1 << 18  # bytes of a column of a Parquet file that are read at a time


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
    if isinstance(given, Stream) or hasattr(type(given), "fingerprint"):  # read by number
        known: Inputs | Stream = given
        return known
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
    if kind == "folder":
        tables = [location / name for name in location.files() if name.endswith(".parquet")]
        return _open_parquet(tables) if tables else find_files(location, endings)
    if location.suffix == ".parquet":
        return _open_parquet([location])
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


def _digest(value: Any) -> str:
    """A digest of an input, or of a whole table; that of a file is about its content."""
    if isinstance(value, os.PathLike):
        path = Path(value)
        value = path.read_bytes() if path.is_file() else os.fsencode(path)
    if is_picture(value):
        value = value.mode, value.size, value.tobytes()
    try:
        return digest_of(value, code=True)
    except UnknownContentError:  # such as an open file
        return stable_repr(value)


# Sequences


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Listed:
    """The rows of a frame or an array, or the items of any sequence."""

    values: Any  # a sparse matrix in CSR format, whose rows can be read

    @property
    def fingerprint(self) -> str:
        """A digest of the contents."""
        values = self.values
        if is_frame(values) or is_sparse(values) or isinstance(values, np.ndarray):
            return _digest(values)[:16]
        return digest_of([_digest(self.get(number)) for number in range(len(self))])[:16]

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
    if starts[-1] == 0:
        raise ValueError(f"{files[0]} must have at least one row.")
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
    """A row group, of which two blocks of rows are in memory at a time.

    Rows that are asked for in order are read once. For an earlier row it starts again.
    """

    def __init__(self, file: str, group: int) -> None:
        self._file, self._group = file, group
        self._lock = Lock()
        self._held: deque[tuple[int, Any]] = deque(maxlen=2)  # first row of each block, and a frame
        self._end = 0  # row that comes next

    def block(self, row: int) -> tuple[int, Any]:
        """The first row of the block that a row is in, and its frame."""
        with self._lock:
            if not self._held or row < self._held[0][0]:
                self._frames, self._end = self._read(), 0
            while row >= self._end:
                self._held.append((self._end, next(self._frames)))
                self._end += len(self._held[-1][1])
            first, frame = next(held for held in reversed(self._held) if held[0] <= row)
            return first, frame

    def _read(self) -> Iterator[Any]:
        """All blocks in order; not even the encoded row group is in memory as a whole."""
        _, pq = arrow()
        system, path = Location(self._file).open()
        options = {"pre_buffer": False, "buffer_size": _BUFFER}
        with pq.ParquetFile(path, filesystem=system, **options) as file:
            for batch in file.iter_batches(_BLOCK, row_groups=[self._group], use_threads=False):
                yield batch.to_pandas()


@lru_cache(maxsize=2)
def _group(file: str, group: int, fingerprint: str) -> _Group:
    """A row group; the fingerprint keeps caches of other files apart."""
    return _Group(file, group)


def _rows(file: str, group: int, row: int, fingerprint: str) -> tuple[Any, Any, int]:
    """Labels and rows of the block that a row is in, and its position among them."""
    import pandas as pd

    first, frame = _group(file, group, fingerprint).block(row)
    labels = None if isinstance(frame.index, pd.RangeIndex) else frame.index
    return labels, frame, row - first


Inputs = Listed | Files | Chunks  # that can be read by number


# Streams from files and Ray


def _csv(location: Location) -> Iterator[tuple[None, Any]]:
    """The rows of a table as one frame, so that each column has one dtype."""
    from eblime._pandas import read_csv

    with location.stream() as stream:
        try:
            yield None, read_csv(stream, location.suffix, low_memory=False)
        except (ValueError, UnicodeDecodeError) as error:
            raise ValueError(f"{str(location)!r} cannot be read as a table: {error}") from error


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
            entry = found.get("text", found) if isinstance(found, dict) else found
            if not isinstance(entry, str) and (entry is not found or not isinstance(entry, dict)):
                raise ValueError(
                    f"{location}, line {number}, must be a string, an object, or an object with a "
                    'string as its "text".'
                )
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
    """Store inputs in the run folder, one chunk at a time, so that workers read them by number.

    They come with a name or None: texts, paths, arrays, pictures, rows, or whole frames. No pickle
    is written. The name of a chunk has the digest of its bytes; the fingerprint is that of the
    inputs. Chunks of an earlier call are replaced.
    """
    home = folder / "inputs"
    chunks: list[str] = []
    starts = [0]
    digest = hashlib.sha256()
    for names, values in _chunks(stream):
        content = _as_bytes(names, values, starts[-1])
        chunks.append(write_checked(home, f"{len(chunks):06d}", content))
        starts.append(starts[-1] + len(values))
        for part in [values] if is_frame(values) else values:
            digest.update(_digest(part).encode())
    if starts[-1] == 0:
        raise ValueError("`inputs` must not be empty; the iterator was empty.")
    for name in home.files().keys() - {*chunks}:
        (home / name).remove()
    return Chunks(
        read=_stored_rows,
        chunks=tuple((str(home / name),) for name in chunks),
        starts=tuple(starts),
        fingerprint=digest.hexdigest()[:16],
    )


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
    """Inputs as columns; inputs that are not rows of a table are the bytes of one column."""
    if is_frame(values):
        return pa.Table.from_pandas(values, preserve_index=False)
    if all(isinstance(value, Mapping) or is_row(value) for value in values):
        import pandas as pd

        return pa.Table.from_pandas(pd.DataFrame([dict(value) for value in values]))
    for column, (kind, encode, _) in _KINDS.items():
        if all(isinstance(value, kind) for value in values):
            return pa.table({column: pa.array(map(encode, values), type=pa.binary())})
    raise TypeError("they are of several kinds")


def _array_as_bytes(value: Any) -> bytes:
    """An array or a picture in the format of .npy files."""
    array = as_pixels(value) if is_picture(value) else np.asarray(value)
    if array.dtype.kind not in "buif":
        raise TypeError("arrays must hold numbers")
    content = io.BytesIO()
    np.save(content, array, allow_pickle=False)
    return content.getvalue()


_KINDS: dict[str, tuple[type, Callable[[Any], bytes], Callable[[bytes], Any]]] = {
    "__text__": (
        str,
        partial(str.encode, encoding="utf8", errors="surrogatepass"),
        partial(bytes.decode, encoding="utf8", errors="surrogatepass"),
    ),
    "__path__": (os.PathLike, os.fsencode, lambda content: Path(os.fsdecode(content))),
    "__array__": (
        object,
        _array_as_bytes,
        lambda content: np.load(io.BytesIO(content), allow_pickle=False),
    ),
}


@lru_cache(maxsize=2)
def _chunk(address: str, fingerprint: str) -> tuple[Names, Any]:
    """The names and inputs of a chunk."""
    table = read_parquet(read_checked(Location(address)))
    names = table.column(_NAME).to_pylist()
    table = table.drop_columns([_NAME])
    for column, (_, _, decode) in _KINDS.items():
        if column in table.column_names:
            return names, [decode(content) for content in table.column(column).to_pylist()]
    return names, table.to_pandas()


def _stored_rows(address: str, row: int, fingerprint: str) -> tuple[Names, Any, int]:
    """Names and inputs of a chunk, and the position of an input among them."""
    return *_chunk(address, fingerprint), row
