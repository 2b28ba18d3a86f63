"""Inputs that are files of their own: photos, and texts that end in .txt."""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass
from typing import Any

from eblime.batch.place import READ_WHOLE, Place
from eblime.domains.image import PHOTO_ENDINGS

__all__ = ["Files", "find_files"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """The files of a folder, in the order of their names."""

    folder: Place
    sizes: dict[str, int]  # by name
    names: tuple[str, ...]

    @property
    def fingerprint(self) -> str:
        """Names and sizes, and contents where the folder is here and not too large."""
        found = hashlib.sha256()
        whole = self.folder.folder is not None and sum(self.sizes.values()) <= READ_WHOLE
        for name in self.names:
            found.update(f"{name}\0{self.sizes[name]}\n".encode("utf8", "surrogateescape"))
            if whole:
                try:
                    found.update((self.folder / name).digest().encode())
                except OSError:  # its turn will come, and tell
                    continue
        return found.hexdigest()[:16]

    def __len__(self) -> int:
        return len(self.names)

    def name(self, number: int) -> str:
        """Its file name."""
        return self.names[number]

    def get(self, number: int) -> Any:
        """A text, or a photo: its path here, else the picture."""
        place = self.folder / self.names[number]
        if place.suffix == ".txt":
            return place.read().decode("utf8")
        return place.folder or _picture(place.read())


def find_files(folder: Place, endings: tuple[str, ...] = (*PHOTO_ENDINGS, ".txt")) -> Files:
    """The files with such endings in a folder and the folders in it."""
    found = {
        name: size
        for name, size in folder.files(recursive=True).items()
        if name.lower().endswith(endings)
    }
    if not found:
        raise ValueError(f"The folder {str(folder)!r} has no file that ends in {_or(endings)}.")
    return Files(folder=folder, sizes=found, names=tuple(found))


def _picture(content: bytes) -> Any:
    """A picture from the bytes of a file."""
    from PIL import Image

    with Image.open(io.BytesIO(content)) as opened:
        opened.load()
    return opened


def _or(words: tuple[str, ...]) -> str:
    """Words as a choice."""
    return ", ".join(words[:-1]) + f" or {words[-1]}" if len(words) > 1 else words[0]
