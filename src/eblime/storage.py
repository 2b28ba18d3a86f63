"""Explanations as files: one zip of JSON and plain arrays, no pickle, written atomically.

Layout, schema 1: `explanation.json` holds nested objects, `{"type": name, "fields": {...}}` for a
result class, `{"array": k}` for the array in `k.npy`, `{"ref": k}` for an object that came before;
everything else is plain JSON. Only the classes listed here are ever made, and `file_layouts` says
what their fields must be: an object that does not fit is refused.
"""

from __future__ import annotations

import dataclasses
import io
import json
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eblime._files import write_whole
from eblime._text import printable
from eblime.explanation import Explanation
from eblime.file_archive import check_members, parse_array, read_member, read_regular
from eblime.file_checks import check_object
from eblime.file_layouts import LAYOUTS

__all__ = ["MAX_BYTES", "SCHEMA", "NewerSchemaError", "load", "packed", "save", "unpacked"]

SCHEMA = 1
_NAME = "explanation.json"
_CLASSES: dict[str, Any] = {kind.__name__: kind for kind in LAYOUTS}
MAX_BYTES = 1 << 30  # of a file, and of what it unpacks to
_MOST_JSON = 1 << 26  # bytes of the part that is JSON
_LONGEST_REASON = 300  # characters: an error may quote the file


class NewerSchemaError(ValueError):
    """A file was written by a later eblime."""


def save(explanation: Explanation, path: str | os.PathLike[str]) -> Path:
    """Write an explanation to one file; the file appears whole or not at all."""
    target = Path(path)
    write_whole(target, packed(explanation))
    return target


def packed(explanation: Explanation) -> bytes:
    """An explanation as the content of a file."""
    writer = _Writer()
    tree = {"schema": SCHEMA, "explanation": writer.encode(explanation)}
    text = json.dumps(tree, allow_nan=True)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(_NAME, text)
        for k, array in enumerate(writer.arrays):
            archive.writestr(f"{k}.npy", _array_bytes(array))
    return buffer.getvalue()


def load(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> Explanation:
    """Read an explanation that `Explanation.save` wrote.

    The file may come from anybody: no code in it is run, sizes are checked before anything is
    unpacked, and an object whose fields do not fit together is refused.

    Parameters
    ----------
    path
        A regular file.
    max_bytes
        How large the file may be, also once it is unpacked; 1 GiB by default.
    """
    return unpacked(read_regular(path, max_bytes), Path(path), max_bytes=max_bytes)


def unpacked(content: bytes, source: object, *, max_bytes: int = MAX_BYTES) -> Explanation:
    """Read an explanation from the content of a file; error messages name the source."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            check_members(archive, len(content), max_bytes)
            tree = json.loads(read_member(archive, _NAME, _MOST_JSON))
            _check_schema(tree, source)
            count = sum(name.endswith(".npy") for name in archive.namelist())
            arrays = [parse_array(read_member(archive, f"{k}.npy")) for k in range(count)]
        found = _Reader(arrays).decode(tree["explanation"])
    except NewerSchemaError:
        raise
    except Exception as error:  # zip, JSON and arrays fail in many ways on damaged content
        reason = printable(str(error)[:_LONGEST_REASON]) or type(error).__name__
        raise ValueError(
            f"{source} is not a whole eblime explanation: it may be cut short or damaged "
            f"({reason})."
        ) from error
    if not isinstance(found, Explanation):
        raise ValueError(f"{source} holds a {type(found).__name__}, not an explanation.")
    return found


class _Writer:
    """Turns result objects into JSON, arrays put aside, shared objects written once."""

    def __init__(self) -> None:
        self.arrays: list[NDArray[Any]] = []
        self._seen: dict[int, int] = {}
        self._kept: list[object] = []  # so that no identity is used twice

    def encode(self, value: Any) -> Any:
        if isinstance(value, np.ndarray):
            self.arrays.append(value)
            return {"array": len(self.arrays) - 1}
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return self._object(value)
        if isinstance(value, Mapping):
            return {"mapping": [[self.encode(k), self.encode(v)] for k, v in value.items()]}
        if isinstance(value, (list, tuple)):
            return {"list": [self.encode(entry) for entry in value]}
        if isinstance(value, np.generic):
            return value.item()
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        raise TypeError(f"A {type(value).__name__} cannot be saved; only results can.")

    def _object(self, value: Any) -> Any:
        if id(value) in self._seen:
            return {"ref": self._seen[id(value)]}
        kind = type(value).__name__
        if _CLASSES.get(kind) is not type(value):
            raise TypeError(f"A {kind} cannot be saved; only eblime's own results can.")
        self._seen[id(value)] = len(self._seen)
        self._kept.append(value)
        number = self._seen[id(value)]
        fields = {
            field.name: self.encode(getattr(value, field.name))
            for field in dataclasses.fields(value)
        }
        return {"type": kind, "number": number, "fields": fields}


class _Reader:
    """Turns JSON back into result objects, each checked as soon as it is made."""

    def __init__(self, arrays: list[NDArray[Any]]) -> None:
        self._arrays = dict(enumerate(arrays))
        self._made: dict[int, Any] = {}

    def decode(self, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        if "array" in value:
            return self._arrays[value["array"]]
        if "list" in value:
            return [self.decode(entry) for entry in value["list"]]
        if "mapping" in value:
            return {self.decode(k): self.decode(v) for k, v in value["mapping"]}
        if "ref" in value:
            return self._made[value["ref"]]
        fields = {name: self.decode(entry) for name, entry in value["fields"].items()}
        kind = _CLASSES[value["type"]]
        made = kind(**fields)
        check_object(made, LAYOUTS[kind])
        self._made[value["number"]] = made
        return made


def _check_schema(tree: Any, source: object) -> None:
    """Refuse a file that a later eblime wrote, and a schema that no eblime wrote."""
    schema = tree["schema"]
    if type(schema) is not int or schema < 1:
        raise ValueError(f"`schema` must be a whole number >= 1; got {schema!r:.40}")
    if schema > SCHEMA:
        raise NewerSchemaError(
            f"{source} has schema {schema!r:.40}; this eblime reads up to schema {SCHEMA}. "
            "Update it: pip install -U eblime."
        )


def _array_bytes(array: NDArray[Any]) -> bytes:
    """An array in NumPy's own format."""
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()
