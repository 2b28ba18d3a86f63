"""`manifest.json`: the settings of a run and their checksum, verified when they are read."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from eblime._version import __version__

__all__ = ["SCHEMA", "decoded", "encoded", "with_checksum"]

SCHEMA = 2  # since 2 the manifest, parts and stored inputs have checksums
_SETTINGS: dict[str, tuple[type, ...]] = {
    "explainer": (dict,),
    "targets": (int, list),
    "seed": (int,),
    "prob": (float,),
    "keep": (bool,),
    "together": (bool,),
    "about": (dict, str, type(None)),
    "count": (int,),
    "inputs": (str,),
    "part_size": (int,),
}
_OPTIONAL: dict[str, tuple[type, ...]] = {  # of runs with a stop rule
    "until": (str,),
    "max_masks": (int, type(None)),
}


def encoded(settings: Mapping[str, Any]) -> bytes:
    """The manifest of a run with these settings."""
    packages = ("numpy", "scipy", "pyarrow")
    manifest = {
        "schema": SCHEMA,
        "settings": dict(settings),
        "versions": {
            "eblime": __version__,
            "python": platform.python_version(),
            **{name: version(name) for name in packages},
        },
    }
    return (json.dumps(with_checksum(manifest), indent=1) + "\n").encode()


def with_checksum(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """A manifest with a checksum of everything else in it."""
    rest = {name: value for name, value in manifest.items() if name != "sha256"}
    content = json.dumps(rest, sort_keys=True).encode()
    return {**rest, "sha256": hashlib.sha256(content).hexdigest()}


def decoded(content: bytes, name: str) -> dict[str, Any]:
    """The content of a manifest; errors mention its `name`.

    Raises
    ------
    ValueError
        If it is not JSON, was written by an incompatible version, does not match its checksum, or
        if a setting is missing or has the wrong type.
    """
    try:
        found = json.loads(content)
        intact = isinstance(found, dict) and found == with_checksum(found)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{name} is damaged: {error}.") from error
    if not isinstance(found, dict) or type(found.get("schema")) is not int:
        raise ValueError(f"{name} is damaged: it must be an object with a whole number `schema`.")
    if found["schema"] > SCHEMA:
        raise ValueError(
            f"{name} has schema {found['schema']}; this eblime reads {SCHEMA}. Update eblime."
        )
    if found["schema"] < SCHEMA:
        raise ValueError(
            f"{name} was written by an earlier version of eblime, without checksums. Repeat the "
            "run, or read its part-*.parquet files with pandas."
        )
    if not intact:
        raise ValueError(f"{name} is damaged: its contents do not match its checksum.")
    _check_settings(found.get("settings"), name)
    return found


def _check_settings(settings: Any, name: str) -> None:
    """Refuse settings that are missing, or have a wrong type or value."""
    if not isinstance(settings, dict):
        raise ValueError(f"{name} is damaged: `settings` must be an object.")
    optional = {setting: _OPTIONAL[setting] for setting in _OPTIONAL if setting in settings}
    for setting, kinds in {**_SETTINGS, **optional}.items():
        if setting not in settings or type(settings[setting]) not in kinds:
            types = " or ".join("null" if kind is type(None) else kind.__name__ for kind in kinds)
            got = repr(settings[setting]) if setting in settings else "nothing"
            raise ValueError(f"{name} is damaged: `{setting}` must be {types}; got {got:.80}.")
    for setting, least in (("seed", 0), ("count", 1), ("part_size", 1)):
        if settings[setting] < least:
            raise ValueError(
                f"{name} is damaged: `{setting}` must be >= {least}; got {settings[setting]}."
            )
    if not 0 < settings["prob"] < 1:  # written so that NaN is refused too
        raise ValueError(
            f"{name} is damaged: `prob` must be between 0 and 1; got {settings['prob']}."
        )
