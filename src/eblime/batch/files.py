"""Inputs that are one file each: photos, .txt files, or files with other endings."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from eblime.batch.location import READ_WHOLE, Location, arrow
from eblime.domains.image.photo import PHOTO_ENDINGS

__all__ = ["Files", "find_files"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """The files of a folder, sorted by name."""

    folder: Location
    names: Any  # a pyarrow array: millions of names are sent to every worker
    fingerprint: str  # of names and sizes, and of contents unless they are large or remote

    def __len__(self) -> int:
        return len(self.names)

    def name(self, number: int) -> str:
        """The file name, relative to the folder."""
        return os.fsdecode(self.names[number].as_py())

    def get(self, number: int) -> Any:
        """The content of a .txt file; else the path, or an open file for a remote file."""
        file = self.folder / self.name(number)
        if file.suffix == ".txt":
            return file.read().decode("utf8")
        return file.local_path or io.BytesIO(file.read())


def find_files(folder: Location, endings: tuple[str, ...] = (*PHOTO_ENDINGS, ".txt")) -> Files:
    """The files with these endings in a folder and its subfolders."""
    found = {
        name: size
        for name, size in folder.files(recursive=True).items()
        if name.lower().endswith(endings)
    }
    if not found:
        raise ValueError(f"The folder {str(folder)!r} has no file that ends in {_either(endings)}.")
    pa, _ = arrow()
    return Files(
        folder=folder,
        names=pa.array([os.fsencode(name) for name in found], type=pa.large_binary()),
        fingerprint=_fingerprint(folder, found),
    )


def _fingerprint(folder: Location, sizes: Mapping[str, int]) -> str:
    """A digest of names and sizes, and of contents unless they are large or remote."""
    found = hashlib.sha256()
    whole = folder.local_path is not None and sum(sizes.values()) <= READ_WHOLE
    for name, size in sizes.items():
        found.update(os.fsencode(f"{name}\0{size}\n"))
        if whole:
            try:
                found.update((folder / name).digest().encode())
            except OSError:  # reported when the file is explained
                continue
    return found.hexdigest()[:16]


def _either(words: tuple[str, ...]) -> str:
    """Words as "a, b or c"."""
    return ", ".join(words[:-1]) + f" or {words[-1]}" if len(words) > 1 else words[0]
