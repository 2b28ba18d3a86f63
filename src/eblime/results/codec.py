"""Plain values and arrays to JSON and back; a file can only name known classes of settings."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eblime import kernels, registry

__all__ = [
    *("Arrays", "decode", "decode_method", "encode", "encode_fields", "encode_method", "rebuild"),
]

Arrays = dict[str, NDArray[Any]]

# Settings that older files do not name, with the values that those files were fitted with.
_UNNAMED: Mapping[str, Mapping[str, Any]] = {"EBLIME": {"local": False}}


def encode(value: Any, arrays: Arrays) -> Any:
    """A value as JSON; arrays are put into `arrays` and replaced by their name."""
    if isinstance(value, np.ndarray):
        name = f"array-{len(arrays)}"
        arrays[name] = value
        return {"array": name}
    if isinstance(value, Mapping):
        return {"mapping": [[encode(k, arrays), encode(v, arrays)] for k, v in value.items()]}
    if isinstance(value, (list, tuple)):
        return [encode(entry, arrays) for entry in value]
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {"dataclass": type(value).__name__, "fields": encode_fields(value, arrays)}
    raise TypeError(f"A {type(value).__name__} cannot be saved.")


def encode_fields(value: Any, arrays: Arrays) -> dict[str, Any]:
    """The fields of a dataclass."""
    return {
        field.name: encode(getattr(value, field.name), arrays)
        for field in dataclasses.fields(value)
        if field.init
    }


def decode(value: Any, arrays: Arrays, home: str | None = None) -> Any:
    """The value of JSON; settings that are dataclasses are kernels or of the module `home`."""
    if isinstance(value, list):
        return [decode(entry, arrays, home) for entry in value]
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return arrays[value["array"]]
    if "mapping" in value:
        return {decode(k, arrays, home): decode(v, arrays, home) for k, v in value["mapping"]}
    homes = (sys.modules[home], kernels) if home else ()
    kind = next((k for h in homes if (k := getattr(h, value["dataclass"], None))), None)
    if not (isinstance(kind, type) and dataclasses.is_dataclass(kind)):
        raise ValueError(f"`{value['dataclass']!s:.60}` is not a known class of settings.")
    return kind(**{name: decode(v, arrays, home) for name, v in value["fields"].items()})


def encode_method(method: Any, arrays: Arrays) -> dict[str, Any] | None:
    """A method by its class and settings; None if it cannot be rebuilt from them."""
    if not dataclasses.is_dataclass(method) or type(method) not in _known().values():
        return None
    found = dict(arrays)
    try:
        settings = encode_fields(method, found)
    except TypeError:
        return None
    arrays.update(found)
    return {"class": type(method).__name__, "settings": settings}


def decode_method(stored: Any, arrays: Arrays) -> Any | None:
    """The method of a file, or None where this installation does not have it."""
    if stored is None:
        return None
    kind = _known().get(stored["class"])
    if kind is None:
        return None
    settings = {name: decode(v, arrays, kind.__module__) for name, v in stored["settings"].items()}
    return rebuild(kind, settings)


def rebuild(kind: type, settings: Mapping[str, Any]) -> Any:
    """A method of a class, from the settings in a file of any age."""
    return kind(**{**_UNNAMED.get(kind.__name__, {}), **settings})


def _known() -> dict[str, type]:
    """Classes of all methods that the registry can import, by name."""
    found: dict[str, type] = {}
    for name in registry.names("methods"):
        try:
            kind = type(registry.find("methods", name)())
        except Exception:  # a package whose entry point is broken must not break files
            continue
        found.setdefault(kind.__name__, kind)
    return found
