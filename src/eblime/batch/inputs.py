"""What a run is about: a folder of images, a table, lines of text, or any sequence."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

__all__ = ["Inputs", "as_inputs"]

_PHOTOS = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp")


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """The photos or .txt files of a folder, in the order of their names."""

    folder: str
    names: tuple[str, ...]

    @property
    def fingerprint(self) -> str:
        """Names and sizes."""
        told = [(name, (Path(self.folder) / name).stat().st_size) for name in self.names]
        return _digest(told)

    def __len__(self) -> int:
        return len(self.names)

    def name(self, number: int) -> str:
        """Its file name."""
        return self.names[number]

    def get(self, number: int) -> Any:
        """A text, or the path of a photo, which the explainer reads."""
        path = Path(self.folder) / self.names[number]
        if path.suffix.lower() == ".txt":
            return path.read_bytes().decode("utf8")
        return path


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Listed:
    """Rows of a frame or an array, or any sequence."""

    values: Any

    @property
    def fingerprint(self) -> str:
        """Their number, and the first and last of them."""
        ends = [repr(self.get(k))[:2000] for k in {0, len(self) - 1}] if len(self) else []
        return _digest([len(self), *ends])

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


def as_inputs(given: Any) -> Inputs:
    """Understand inputs: a folder, a .csv, .parquet or .jsonl file, a frame, an array, a list."""
    if isinstance(given, (str, Path)):
        return _from_path(Path(given))
    if hasattr(given, "fingerprint") and hasattr(given, "get"):
        return given  # type: ignore[no-any-return]
    if hasattr(given, "shape") or isinstance(given, Sequence):
        found: Inputs = Listed(values=given)
    elif hasattr(given, "__iter__"):
        found = Listed(values=list(given))
    else:
        raise TypeError(
            "`inputs` must be a folder, a file, a frame, an array or a list; "
            f"got {type(given).__name__}."
        )
    if len(found) == 0:
        raise ValueError("`inputs` must not be empty.")
    return found


def _from_path(path: Path) -> Inputs:
    """Inputs that lie in files."""
    if path.is_dir():
        names = tuple(
            sorted(p.name for p in path.iterdir() if p.suffix.lower() in (*_PHOTOS, ".txt"))
        )
        if not names:
            raise ValueError(f"The folder {str(path)!r} has no photo and no .txt file.")
        return Files(folder=str(path), names=names)
    if not path.is_file():
        raise FileNotFoundError(f"There is no folder or file {str(path)!r}.")
    suffix = path.suffix.lower()
    if suffix == ".jsonl":
        lines = path.read_text(encoding="utf8").splitlines()
        texts = [json.loads(line) for line in lines if line.strip()]
        return as_inputs([t["text"] if isinstance(t, dict) else t for t in texts])
    if suffix in (".csv", ".parquet"):
        import pandas as pd

        return as_inputs(pd.read_csv(path) if suffix == ".csv" else pd.read_parquet(path))
    raise ValueError(
        f"`inputs` must be a folder, or a .csv, .parquet or .jsonl file; got {str(path)!r}."
    )


def _digest(told: Any) -> str:
    """A short name for anything that JSON can hold."""
    text = json.dumps(told, default=lambda v: v.tolist() if isinstance(v, np.ndarray) else str(v))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
