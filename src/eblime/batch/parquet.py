"""Rows of Parquet files by number: only the row group of the wanted row is read."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from eblime.batch.location import READ_WHOLE, Location, arrow

__all__ = ["ParquetRows", "open_parquet"]

_BLOCK = 1024  # rows converted to a frame at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetRows:
    """The rows of several files, one after the other."""

    files: tuple[str, ...]
    groups: tuple[tuple[int, int], ...]  # number of the file, and of the row group in it
    starts: tuple[int, ...]  # first row of each group, then the number of rows
    fingerprint: str

    def __len__(self) -> int:
        return self.starts[-1]

    def name(self, number: int) -> str:
        """The row label, if the frame had labels when it was written; else the number."""
        import pandas as pd

        frame, row = self._block(number)
        return str(number if isinstance(frame.index, pd.RangeIndex) else frame.index[row])

    def get(self, number: int) -> Any:
        """A row as a pandas series."""
        frame, row = self._block(number)
        return frame.iloc[row]

    def _block(self, number: int) -> tuple[Any, int]:
        """A frame that contains the row, and the position of the row in it."""
        position = bisect_right(self.starts, number) - 1
        file, group = self.groups[position]
        row = number - self.starts[position]
        return _frame(self.files[file], group, row // _BLOCK, self.fingerprint), row % _BLOCK


def open_parquet(files: Sequence[Location]) -> ParquetRows:
    """Read the footers of Parquet files; rows are read when they are needed.

    The fingerprint of small local files depends on their contents, that of others on their footers.
    """
    groups: list[tuple[int, int]] = []
    starts = [0]
    digest = hashlib.sha256()
    schema = None
    size = sum(
        file.local_path.stat().st_size if file.local_path else READ_WHOLE + 1 for file in files
    )
    for number, file in enumerate(files):
        footer = _footer(file)
        names = footer.schema.to_arrow_schema().names
        if schema is not None and names != schema:
            raise ValueError(f"{file} must have the columns of {files[0]}; got {names}.")
        schema = names
        if size <= READ_WHOLE:
            digest.update(file.digest().encode())
        for position in range(footer.num_row_groups):
            group = footer.row_group(position)
            groups.append((number, position))
            starts.append(starts[-1] + group.num_rows)
            # offsets, sizes, and the smallest and largest value of every column
            digest.update(repr(group.to_dict()).encode())
    return ParquetRows(
        files=tuple(map(str, files)),
        groups=tuple(groups),
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


@lru_cache(maxsize=2)
def _group(file: str, group: int, fingerprint: str) -> Any:
    """One row group as an Arrow table; the fingerprint keeps caches of other files apart."""
    _, pq = arrow()
    system, path = Location(file).open()
    return pq.ParquetFile(path, filesystem=system).read_row_group(group)


@lru_cache(maxsize=4)
def _frame(file: str, group: int, block: int, fingerprint: str) -> Any:
    """Some rows of a group as a frame."""
    return _group(file, group, fingerprint).slice(block * _BLOCK, _BLOCK).to_pandas()
