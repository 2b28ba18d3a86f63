"""What a run is about: a folder of images, a table, lines of text, or any sequence."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from eblime.domains.image import PHOTO_ENDINGS

__all__ = ["Inputs", "as_inputs"]


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
        """Names and contents; a file that cannot be read counts by its name."""
        found = hashlib.sha256()
        for name in self.names:
            found.update(name.encode("utf8", "surrogateescape"))
            try:
                found.update(hashlib.sha256((Path(self.folder) / name).read_bytes()).digest())
            except OSError:
                continue
        return found.hexdigest()[:16]

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
        """Their contents."""
        found = hashlib.sha256(str(len(self)).encode())
        if hasattr(self.values, "iloc"):
            from pandas.util import hash_pandas_object

            found.update(",".join(map(str, self.values.columns)).encode())
            found.update(hash_pandas_object(self.values.astype(str)).to_numpy().tobytes())
            return found.hexdigest()[:16]
        for number in range(len(self)):
            found.update(_content(self.get(number)))
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
            sorted(p.name for p in path.iterdir() if p.suffix.lower() in (*PHOTO_ENDINGS, ".txt"))
        )
        if not names:
            raise ValueError(f"The folder {str(path)!r} has no photo and no .txt file.")
        return Files(folder=str(path), names=names)
    if not path.is_file():
        raise FileNotFoundError(f"There is no folder or file {str(path)!r}.")
    suffix = path.suffix.lower()
    if suffix == ".jsonl":
        return as_inputs(_json_lines(path))
    if suffix in (".csv", ".parquet"):
        import pandas as pd

        return as_inputs(pd.read_csv(path) if suffix == ".csv" else pd.read_parquet(path))
    raise ValueError(
        f"`inputs` must be a folder, or a .csv, .parquet or .jsonl file; got {str(path)!r}."
    )


def _json_lines(path: Path) -> list[str]:
    """Texts, one JSON string or object with a "text" a line."""
    texts = []
    for number, line in enumerate(path.read_text(encoding="utf8").split("\n"), start=1):
        if not line.strip():
            continue
        try:
            found = json.loads(line)
            texts.append(found["text"] if isinstance(found, dict) else found)
        except (ValueError, KeyError) as error:
            raise ValueError(
                f'{path}, line {number}, must be a JSON string or an object with a "text".'
            ) from error
    return texts


def _content(entry: Any) -> bytes:
    """What an input holds, as bytes that are the same in every process."""
    if hasattr(entry, "toarray"):
        entry = entry.toarray()
    if hasattr(entry, "tobytes"):  # arrays and pictures
        return str(getattr(entry, "shape", "")).encode() + bytes(entry.tobytes())
    if isinstance(entry, Path):
        return entry.read_bytes() if entry.is_file() else str(entry).encode()
    return json.dumps(entry, default=str, sort_keys=True).encode()
