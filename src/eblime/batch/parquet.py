"""Rows of Parquet files by number: only the row group that is asked for is read."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from eblime.batch.place import READ_WHOLE, Place, arrow

__all__ = ["ParquetRows", "open_parquet"]

_BLOCK = 1024  # rows turned into a frame at once


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetRows:
    """The rows of some files, one below the other."""

    files: tuple[str, ...]
    groups: tuple[tuple[int, int], ...]  # file and place of each row group
    starts: tuple[int, ...]  # first row of each group, and at the end the number of rows
    fingerprint: str

    def __len__(self) -> int:
        return self.starts[-1]

    def name(self, number: int) -> str:
        """Its label, where the frame that was written had labels; else its number."""
        import pandas as pd

        frame, row = self._block(number)
        return str(number if isinstance(frame.index, pd.RangeIndex) else frame.index[row])

    def get(self, number: int) -> Any:
        """A row as a pandas series."""
        frame, row = self._block(number)
        return frame.iloc[row]

    def _block(self, number: int) -> tuple[Any, int]:
        """A frame with the row in it, and where."""
        group = bisect_right(self.starts, number) - 1
        file, place = self.groups[group]
        row = number - self.starts[group]
        return _frame(self.files[file], place, row // _BLOCK, self.fingerprint), row % _BLOCK


def open_parquet(files: Sequence[Place]) -> ParquetRows:
    """Look at the footers of Parquet files; their rows are read when they are asked for.

    Small files that are here are known by their contents, others by what their footers say.
    """
    _, pq = arrow()
    groups: list[tuple[int, int]] = []
    starts = [0]
    told = hashlib.sha256()
    schema = None
    size = sum(file.folder.stat().st_size if file.folder else READ_WHOLE + 1 for file in files)
    for number, file in enumerate(files):
        system, path = file.open()
        try:
            about = pq.read_metadata(path, filesystem=system)
        except (OSError, ValueError) as error:  # pyarrow's own error is a ValueError
            raise ValueError(f"{file} cannot be read as a Parquet file: {error}") from error
        names = about.schema.to_arrow_schema().names
        if schema is not None and names != schema:
            raise ValueError(f"{file} must have the columns of {files[0]}; got {names}.")
        schema = names
        if size <= READ_WHOLE:
            told.update(file.digest().encode())
        for place in range(about.num_row_groups):
            group = about.row_group(place)
            groups.append((number, place))
            starts.append(starts[-1] + group.num_rows)
            # offsets, sizes and the least and greatest value of every column
            told.update(repr(group.to_dict()).encode())
    return ParquetRows(
        files=tuple(map(str, files)),
        groups=tuple(groups),
        starts=tuple(starts),
        fingerprint=told.hexdigest()[:16],
    )


@lru_cache(maxsize=2)
def _group(file: str, place: int, fingerprint: str) -> Any:
    """One row group, as Arrow has it; remembered for files of that fingerprint alone."""
    _, pq = arrow()
    system, path = Place(file).open()
    return pq.ParquetFile(path, filesystem=system).read_row_group(place)


@lru_cache(maxsize=4)
def _frame(file: str, place: int, block: int, fingerprint: str) -> Any:
    """Some rows of a group as a frame."""
    return _group(file, place, fingerprint).slice(block * _BLOCK, _BLOCK).to_pandas()
