"""Explanations as files: one zip of JSON and plain arrays, no pickle, written atomically.

Layout, schema 1: `explanation.json` holds nested objects, `{"type": name, "fields": {...}}` for a
result class, `{"array": k}` for the array in `k.npy`, `{"ref": k}` for an object that came before;
everything else is plain JSON. Only the classes listed here are ever made.
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
from eblime.core.empirical import Empirical, PointMass
from eblime.core.evidence import Evidence
from eblime.core.lam import FixedLambda, GridLambda
from eblime.core.local import LocalMixture
from eblime.core.mixture import Draws, Mixture
from eblime.core.panels import PanelLambda
from eblime.core.posterior import Posterior
from eblime.core.scalar import Intercept, NoiseVariance
from eblime.core.student import StudentMixture
from eblime.domains.image import ImageScene
from eblime.domains.tabular import TableScene
from eblime.domains.text import TextScene
from eblime.explanation import Explanation

__all__ = ["SCHEMA", "NewerSchemaError", "load", "packed", "save", "unpacked"]

SCHEMA = 1
_NAME = "explanation.json"
_CLASSES = {
    kind.__name__: kind
    for kind in (
        Draws,
        Empirical,
        Evidence,
        Explanation,
        FixedLambda,
        GridLambda,
        ImageScene,
        Intercept,
        LocalMixture,
        Mixture,
        NoiseVariance,
        PanelLambda,
        PointMass,
        Posterior,
        StudentMixture,
        TableScene,
        TextScene,
    )
}


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


def load(path: str | os.PathLike[str]) -> Explanation:
    """Read an explanation that `Explanation.save` wrote."""
    source = Path(path)
    return unpacked(source.read_bytes(), source)


def unpacked(content: bytes, source: object) -> Explanation:
    """The explanation of such content; errors speak of its source."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            tree = json.loads(archive.read(_NAME))
            _check_schema(tree, source)
            count = sum(name.endswith(".npy") for name in archive.namelist())
            arrays = [_read_array(archive.read(f"{k}.npy")) for k in range(count)]
        found = _Reader(arrays).decode(tree["explanation"])
    except NewerSchemaError:
        raise
    except Exception as error:  # whatever damage makes of zip, JSON and arrays
        raise ValueError(
            f"{source} is not a whole eblime explanation: it may be cut short or damaged ({error})."
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
    """Turns JSON back into result objects."""

    def __init__(self, arrays: list[NDArray[Any]]) -> None:
        self._arrays = arrays
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
        made = _CLASSES[value["type"]](**fields)
        self._made[value["number"]] = made
        return made


def _check_schema(tree: Any, source: object) -> None:
    """Refuse what a later eblime wrote."""
    schema = tree["schema"]
    if schema > SCHEMA:
        raise NewerSchemaError(
            f"{source} has schema {schema}; this eblime reads up to schema {SCHEMA}. "
            "Update it: pip install -U eblime."
        )


def _array_bytes(array: NDArray[Any]) -> bytes:
    """An array in NumPy's own format."""
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def _read_array(data: bytes) -> NDArray[Any]:
    """An array from NumPy's own format; pickled objects are refused."""
    return np.asarray(np.load(io.BytesIO(data), allow_pickle=False))
