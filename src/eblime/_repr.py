"""Representations of objects: short ones, and ones that are the same in every process."""

from __future__ import annotations

import re
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

_LONGEST = 60  # characters of one setting


def stable_repr(value: object) -> str:
    """The representation without memory addresses, on one line.

    Examples
    --------
    >>> stable_repr(settings_repr)
    '<function settings_repr>'
    """
    return " ".join(re.sub(r" at 0x[0-9A-Fa-f]+", "", repr(value)).split())


def settings_repr(explainer: Any) -> str:
    """One line: the model's name, and the settings that differ from the default."""
    parts = [f"model={_model_name(explainer.model)}", *_changed_settings(explainer, skip="model")]
    return f"{type(explainer).__name__}({', '.join(parts)})"


def short_repr(value: Any) -> str:
    """A dataclass with the settings that differ from the default; others by `stable_repr`."""
    if not is_dataclass(value) or isinstance(value, type):
        return stable_repr(value)
    return f"{type(value).__name__}({', '.join(_changed_settings(value))})"


def _changed_settings(record: Any, skip: str = "") -> list[str]:
    """The settings that differ from the default, as `name=value`."""
    parts = []
    for entry in sorted(fields(record), key=lambda entry: bool(entry.kw_only)):
        value = getattr(record, entry.name) if entry.init else None
        default = value is entry.default or (
            isinstance(value, (bool, int, float, str)) and value == entry.default
        )
        if entry.init and entry.name != skip and (entry.default is MISSING or not default):
            parts.append(f"{entry.name}={brief_repr(value)}")
    return parts


def _model_name(model: Any) -> str:
    """The name of a function, or of the class of a model, without the adapter around it."""
    for name in ("language", "module", "network", "pipeline", "predict"):
        if type(model).__module__.startswith("eblime."):
            model = getattr(model, name, model)
    model = getattr(model, "__self__", model)  # a bound method: its object
    return str(getattr(model, "__name__", type(model).__name__))


def brief_repr(value: Any) -> str:
    """A setting in a few characters."""
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple):
        return f"<{type(value).__name__} {' x '.join(map(str, shape))}>"
    name = getattr(value, "__name__", None)
    if callable(value) and name is not None:
        return str(name)
    text = stable_repr(value)
    if len(text) <= _LONGEST:
        return text
    if isinstance(value, (list, tuple, dict)):
        return f"<{type(value).__name__} of {len(value)}>"
    return f"{text[: _LONGEST - 1]}…"
