"""Inputs that are files of their own: photos, and texts that end in .txt."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from eblime.batch.place import READ_WHOLE, Place, arrow
from eblime.domains.image.photo import PHOTO_ENDINGS

__all__ = ["Files", "find_files"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """The files of a folder, in the order of their names."""

    folder: Place
    names: Any  # a pyarrow array: millions of names travel to every worker
    fingerprint: str  # of names and sizes; of contents too, where they are here and not too large

    def __len__(self) -> int:
        return len(self.names)

    def name(self, number: int) -> str:
        """Its file name."""
        return os.fsdecode(self.names[number].as_py())

    def get(self, number: int) -> Any:
        """A text, or a photo: its path here, else its content as an open file."""
        place = self.folder / self.name(number)
        if place.suffix == ".txt":
            return place.read().decode("utf8")
        return place.folder or io.BytesIO(place.read())


def find_files(folder: Place, endings: tuple[str, ...] = (*PHOTO_ENDINGS, ".txt")) -> Files:
    """The files with such endings in a folder and the folders in it."""
    found = {
        name: size
        for name, size in folder.files(recursive=True).items()
        if name.lower().endswith(endings)
    }
    if not found:
        raise ValueError(f"The folder {str(folder)!r} has no file that ends in {_or(endings)}.")
    pa, _ = arrow()
    return Files(
        folder=folder,
        names=pa.array([os.fsencode(name) for name in found], type=pa.large_binary()),
        fingerprint=_fingerprint(folder, found),
    )


def _fingerprint(folder: Place, sizes: Mapping[str, int]) -> str:
    """What tells these files from others."""
    found = hashlib.sha256()
    whole = folder.folder is not None and sum(sizes.values()) <= READ_WHOLE
    for name, size in sizes.items():
        found.update(os.fsencode(f"{name}\0{size}\n"))
        if whole:
            try:
                found.update((folder / name).digest().encode())
            except OSError:  # its turn will come, and tell
                continue
    return found.hexdigest()[:16]


def _or(words: tuple[str, ...]) -> str:
    """Words as a choice."""
    return ", ".join(words[:-1]) + f" or {words[-1]}" if len(words) > 1 else words[0]
