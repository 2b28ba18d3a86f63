"""Inputs of a run: a folder of files, a table, lines of text, a sequence, or a stream.

A stream is an iterator, whose inputs are stored in the run folder. pandas, SciPy and Pillow objects
are distinguished by their attributes, so that no optional package is imported to look at an input.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from eblime._digest import UnknownContentError, digest_of
from eblime._pandas import read_csv
from eblime._repr import stable_repr
from eblime._text import one_of
from eblime.batch.folder import read_checked, read_parquet, write_checked
from eblime.batch.location import Location, arrow
from eblime.domains.image.photo import PHOTO_ENDINGS
from eblime.domains.image.scene import as_pixels
from eblime.domains.record import Item

_READ_WHOLE = 1 << 30  # bytes of inputs that are read in full to detect changes
_COUNT = 4096  # inputs of a stream that are stored in a chunk, at most
_BYTES = 32 << 20  # of inputs in a chunk, at most
_UNLIKE = (
    "`inputs` must be all texts, all paths, all arrays or pictures, or all rows of one table, to "
    "be stored in the run folder; pass a list instead"
)
ENDINGS = (*PHOTO_ENDINGS, ".txt")  # of files that are inputs, unless an explainer has others


def as_inputs(
    given: Any, apart_from: Location | None = None, endings: tuple[str, ...] = ENDINGS
) -> Inputs | Iterator[Any]:
    """Inputs from a folder, a file, a frame, an array, a list or any iterable.

    They must not be in the run folder, `apart_from`, whose own files would be taken for inputs.
    Of a folder, the files with these endings are read.
    """
    if isinstance(given, (str, os.PathLike, Location)):
        location = Location.of(given)
        if os.path.realpath(str(location)) == os.path.realpath(str(apart_from)):
            raise ValueError(f"`out` must not be the folder of the inputs, {str(location)!r}.")
        return _from_files(location, endings)
    if hasattr(type(given), "fingerprint"):  # can be read by number already
        known: Inputs = given
        return known
    if hasattr(given, "shape") or isinstance(given, Sequence):
        return _listed(given)
    if isinstance(given, Iterable) and not isinstance(given, Mapping):
        return iter(given)
    raise TypeError(
        "`inputs` must be a folder, a file, a frame, an array, a list or another iterable; got "
        f"{type(given).__name__}."
    )


def _listed(values: Any) -> Listed:
    for convert in ("to_pandas", "tocsr"):  # an Arrow table; a sparse matrix, to read its rows
        if hasattr(values, convert):
            values = getattr(values, convert)()
    found = Listed(values=values)
    if len(found) == 0:
        raise ValueError("`inputs` must not be empty.")
    return found


def _from_files(location: Location, endings: tuple[str, ...]) -> Inputs | Iterator[Any]:
    kind = location.kind()
    if kind == "nothing":
        raise FileNotFoundError(f"There is no folder or file {str(location)!r}.")
    if kind == "folder":
        tables = [location / name for name in location.files() if name.endswith(".parquet")]
        return _open_parquet(tables) if tables else find_files(location, endings)
    if location.suffix == ".parquet":
        return _open_parquet([location])
    if location.suffix == ".jsonl":
        return _json_lines(location)
    if location.suffix in (".csv", ".tsv"):
        return _listed(read_table(location))
    raise ValueError(
        "`inputs` must be a folder, or a .csv, .tsv, .parquet or .jsonl file; got "
        f"{str(location)!r}."
    )


def read_table(path: Path | Location) -> Any:
    """A pandas frame from a .csv, .tsv or .parquet file."""
    location = Location.of(path)
    if location.suffix not in (".csv", ".tsv", ".parquet"):
        raise ValueError(f"Tables must be .csv, .tsv or .parquet files; got {str(location)!r}.")
    with location.stream() as stream:
        try:
            if location.suffix == ".parquet":
                return arrow()[1].read_table(stream).to_pandas()
            table = read_csv(stream, location.suffix, low_memory=False)
            with location.stream() as again:  # pandas has renamed columns with the same name
                head = read_csv(again, location.suffix, header=None, nrows=1, dtype=str).iloc[0]
            for name in head[head.duplicated()].dropna():
                raise ValueError(f"columns must have different names; {name!r} is there twice")
        except ValueError as error:
            raise ValueError(f"{str(location)!r} cannot be read as a table: {error}") from error
    if len(table.columns) == 1 and ";" in str(table.columns[0]):
        raise ValueError(
            f"{str(location)!r} must be separated by commas, or by tabs with the ending .tsv; its "
            "first line has semicolons."
        )
    return table


def is_picture(value: object) -> bool:
    """Whether a value is a Pillow image."""
    return hasattr(value, "mode") and hasattr(value, "tobytes")


def _digest(value: Any) -> str:
    if isinstance(value, Item):
        with suppress(Exception):  # recorded as a failure when the input is explained
            return value.title + _digest(value.read())
        return value.title
    if isinstance(value, os.PathLike):
        path = Path(value)
        value = path.read_bytes() if path.is_file() else os.fsencode(path)
    if is_picture(value):
        value = value.mode, value.size, value.tobytes()
    try:
        return digest_of(value)
    except UnknownContentError:  # such as an open file
        return stable_repr(value)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Listed:
    """The rows of a frame or an array, or the items of a sequence, which may be `Item` records."""

    values: Any

    @property
    def fingerprint(self) -> str:
        """A digest of the contents."""
        values = self.values
        if hasattr(values, "iloc") or hasattr(values, "tocsr") or isinstance(values, np.ndarray):
            return _digest(values)[:16]
        return digest_of([_digest(values[number]) for number in range(len(self))])[:16]

    def __len__(self) -> int:
        return int(self.values.shape[0]) if hasattr(self.values, "shape") else len(self.values)

    def name(self, number: int) -> str:
        """The row label of a frame, the title of an item; else the number."""
        if hasattr(self.values, "iloc"):
            return str(self.values.index[number])
        value = self.values[number]
        return value.title if isinstance(value, Item) else str(number)

    def get(self, number: int) -> Any:
        """A row, or an item."""
        value = self.values.iloc[number] if hasattr(self.values, "iloc") else self.values[number]
        return value.read() if isinstance(value, Item) else value


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
        raise ValueError(f"The folder {str(folder)!r} has no file that ends in {one_of(endings)}.")
    pa, _ = arrow()
    found = hashlib.sha256()
    whole = folder.local_path is not None and sum(sizes.values()) <= _READ_WHOLE
    for name, size in sizes.items():
        found.update(os.fsencode(f"{name}\0{size}\n"))
        if whole:
            with suppress(OSError):  # reported when the file is explained
                found.update((folder / name).sha256())
    return Files(
        folder=folder,
        names=pa.array([os.fsencode(name) for name in sizes], type=pa.large_binary()),
        fingerprint=found.hexdigest()[:16],
    )


# Parquet files: those of the user, or those that hold a stream in the run folder


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunks:
    """Inputs in files, of which only the chunk of the wanted input is read."""

    chunks: tuple[tuple[Location, int | None], ...]  # and the row group of a file of the user
    starts: tuple[int, ...]  # first input of each chunk, then the number of inputs
    fingerprint: str

    def __len__(self) -> int:
        return self.starts[-1]

    def name(self, number: int) -> str:
        """The label of a row, if the file has labels; else the number."""
        values, row = self._find(number)
        numbered = isinstance(values, list) or type(values.index).__name__ == "RangeIndex"
        return str(number if numbered else values.index[row])

    def get(self, number: int) -> Any:
        """An input; a row of a table as a pandas series."""
        values, row = self._find(number)
        return values[row] if isinstance(values, list) else values.iloc[row]

    def _find(self, number: int) -> tuple[Any, int]:
        chunk = bisect_right(self.starts, number) - 1
        return _read_chunk(*self.chunks[chunk], self.fingerprint), number - self.starts[chunk]


@lru_cache(maxsize=2)
def _read_chunk(file: Location, group: int | None, fingerprint: str) -> Any:  # noqa: ARG001
    """The inputs of a chunk; the fingerprint keeps caches of other files apart."""
    if group is not None:
        system, path = file.open()
        with arrow()[1].ParquetFile(path, filesystem=system, pre_buffer=False) as opened:
            return opened.read_row_group(group, use_threads=False).to_pandas()
    table = read_parquet(read_checked(file))
    decode = _DECODE.get(table.column_names[0])
    if decode is None:
        return table.to_pandas()
    return [decode(content) for content in table.column(0).to_pylist()]


def _open_parquet(files: Sequence[Location]) -> Chunks:
    """Read the footers of Parquet files; rows are read when they are needed.

    The fingerprint is that of the contents of small local files, and of the footers of others,
    which have the smallest and largest value of every column.
    """
    chunks: list[tuple[Location, int]] = []
    starts, digest = [0], hashlib.sha256()
    for file in files:
        system, path = file.open()
        try:
            footer = arrow()[1].read_metadata(path, filesystem=system)
        except (OSError, ValueError) as error:  # pyarrow's own error is a ValueError
            raise ValueError(f"{file} cannot be read as a Parquet file: {error}") from error
        whole = file.local_path is not None and file.local_path.stat().st_size <= _READ_WHOLE
        digest.update(file.sha256() if whole else repr(footer.to_dict()).encode())
        for group in range(footer.num_row_groups):
            chunks.append((file, group))
            starts.append(starts[-1] + footer.row_group(group).num_rows)
    if starts[-1] == 0:
        raise ValueError(f"{files[0]} must have at least one row.")
    fingerprint = digest.hexdigest()[:16]
    return Chunks(chunks=tuple(chunks), starts=tuple(starts), fingerprint=fingerprint)


Inputs = Listed | Files | Chunks  # that can be read by number


# Streams, which are stored in the run folder


def _json_lines(location: Location) -> Iterator[Any]:
    """One text or row per line: a JSON string, an object with a "text", or another object."""
    with io.TextIOWrapper(location.stream(), encoding="utf8") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            found = None
            with suppress(ValueError):
                found = json.loads(line)
            entry = found.get("text", found) if isinstance(found, dict) else found
            if not isinstance(entry, (str, dict)):
                raise ValueError(
                    f"{location}, line {number}, must be JSON: a string, an object, or an object "
                    'with a string as its "text".'
                )
            yield entry


def store_inputs(stream: Iterator[Any], folder: Location) -> Chunks:
    """Store inputs in the run folder, one chunk at a time, so that workers read them by number.

    They are texts, paths, arrays, pictures or rows. No pickle is written. The name of a chunk has
    the digest of its bytes; the fingerprint is that of the inputs. Chunks of an earlier call are
    replaced.
    """
    from eblime._pandas import pd

    home, digest = folder / "inputs", hashlib.sha256()
    chunks: list[str] = []
    starts = [0]
    for rows in _chunks(stream, digest):
        try:
            table = arrow()[0].Table.from_pandas(pd.DataFrame(rows))
            chunks.append(write_checked(home, f"{len(chunks):06d}", table))
        except (TypeError, ValueError, OverflowError) as error:  # pyarrow's errors are among these
            raise TypeError(f"{_UNLIKE} ({type(error).__name__}: {error}).") from error
        starts.append(starts[-1] + len(rows))
    if starts[-1] == 0:
        raise ValueError("`inputs` must not be empty; the iterator was empty.")
    for name in home.files().keys() - {*chunks}:
        (home / name).remove()
    return Chunks(
        chunks=tuple((home / name, None) for name in chunks),
        starts=tuple(starts),
        fingerprint=digest.hexdigest()[:16],
    )


def _chunks(stream: Iterator[Any], digest: Any) -> Iterator[list[dict[Any, Any]]]:
    """Chunks of limited size, as rows of tables; adds the inputs to the digest."""
    rows: list[dict[Any, Any]] = []
    size = 0
    for value in stream:
        digest.update(_digest(value).encode())
        row = _encode(value)
        if rows and (row.keys() ^ rows[0].keys() or len(rows) >= _COUNT or size >= _BYTES):
            yield rows
            rows, size = [], 0
        rows.append(row)
        size += sum(len(cell) for cell in row.values() if isinstance(cell, bytes))
    if rows:
        yield rows


def _encode(value: Any) -> dict[Any, Any]:
    """The row of a table that an input is stored in.

    It is a copy: an iterable may fill one array or dictionary again.
    """
    if isinstance(value, str):
        return {"__text__": value.encode("utf8", "surrogatepass")}
    if isinstance(value, os.PathLike):
        return {"__path__": os.fsencode(value)}
    if isinstance(value, Mapping) or hasattr(value, "to_dict"):
        return dict(value)
    array = as_pixels(value) if is_picture(value) else np.asarray(value)
    if array.dtype.kind not in "buif":
        raise TypeError(f"{_UNLIKE} ({type(value).__name__} cannot be stored).")
    content = io.BytesIO()
    np.save(content, array, allow_pickle=False)
    return {"__array__": content.getvalue()}


_DECODE: dict[str, Callable[[bytes], Any]] = {
    "__text__": partial(bytes.decode, encoding="utf8", errors="surrogatepass"),
    "__path__": lambda content: Path(os.fsdecode(content)),
    "__array__": lambda content: np.load(io.BytesIO(content), allow_pickle=False),
}
