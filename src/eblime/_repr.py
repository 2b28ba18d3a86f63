"""Objects as text and as records: short, and the same in every process."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from eblime._text import printable

_LONGEST = 60  # characters of one setting
_LONGEST_TEXT = 120  # characters of a text in a record


def describe(value: object, depth: int = 3) -> Any:
    """A setting as plain values that JSON has: itself, or a record with a name and settings.

    A dataclass has its fields as settings; a function and any other object have only a name. So
    have all objects that are nested deeper.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else str(value)
    if isinstance(value, str):
        words = " ".join(value.split())
        return words if len(words) <= _LONGEST_TEXT else f"{words[: _LONGEST_TEXT - 1]}…"
    name: object = getattr(value, "__name__", type(value).__name__)
    settings: Mapping[object, object] | None = None
    if is_dataclass(value) and not isinstance(value, type):
        settings = {entry.name: getattr(value, entry.name) for entry in fields(value) if entry.init}
    elif isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], Mapping):
        name, settings = value
    elif isinstance(value, Mapping):
        settings = value
    elif depth and isinstance(value, (list, tuple)) and len(value) <= _LONGEST:
        return [describe(entry, depth - 1) for entry in value]
    if settings is None or not depth:
        return {"name": str(name)}
    known = {str(key): describe(entry, depth - 1) for key, entry in settings.items()}
    return {"name": str(name), "settings": known}


def name_of(record: object) -> str:
    """The name in what `describe` returned, which may come from any file."""
    found = record.get("name") if isinstance(record, Mapping) else record
    return "a function" if found == "<lambda>" else printable(str(found)[:_LONGEST])


def stable_repr(value: object) -> str:
    """The representation without memory addresses, on one line."""
    return " ".join(re.sub(r" at 0x[0-9A-Fa-f]+", "", repr(value)).split())


def short_repr(value: object) -> str:
    """A dataclass with the settings that differ from the default; others by `stable_repr`."""
    if not is_dataclass(value) or isinstance(value, type):
        return stable_repr(value)
    parts = []
    for entry in sorted(fields(value), key=lambda entry: bool(entry.kw_only)):
        found = getattr(value, entry.name) if entry.init else entry.default
        same = found is entry.default or (
            isinstance(found, (bool, int, float, str)) and found == entry.default
        )
        if not same:
            is_model = entry.name == "model" and not isinstance(found, str)
            shown = _model_name(found) if is_model else _brief_repr(found)
            parts.append(f"{entry.name}={getattr(found, '__name__', shown)}")
    return f"{type(value).__name__}({', '.join(parts)})"


def _model_name(model: object) -> str:
    """The name of a function, or of the class of a model, without the adapter around it."""
    for name in ("language", "module", "network", "pipeline", "predict"):
        if type(model).__module__.startswith("eblime."):
            model = getattr(model, name, model)
    model = getattr(model, "__self__", model)  # a bound method: its object
    return str(getattr(model, "__name__", type(model).__name__))


def _brief_repr(value: object) -> str:
    """A setting in a few characters."""
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple):
        return f"<{type(value).__name__} {' x '.join(map(str, shape))}>"
    text = stable_repr(value)
    if len(text) <= _LONGEST:
        return text
    if isinstance(value, (list, tuple, dict)):
        return f"<{type(value).__name__} of {len(value)}>"
    return f"{text[: _LONGEST - 1]}…"
