"""The settings that `eblime batch` stored in a manifest, checked before anything is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eblime import registry
from eblime.cli.domain_commands import command_of
from eblime.cli.recipe import batch_options, file_options
from eblime.domains.record import Command, Option

__all__ = ["stored_settings"]

Types = tuple[type, ...]
_NONE = type(None)
_SHARED: dict[str, Types] = {
    "inputs": (str,),
    "model": (str,),
    "model_sha256": (str, _NONE),
    "imported_from": (str, _NONE),
    "labels": (str, _NONE),
    "target": (str, _NONE),
    "method": (str,),
    "masks": (int,),
    "seed": (int,),
    "prob": (float, int),
    "part_size": (int, _NONE),
    "keep": (bool,),
}
_NEWER: dict[str, Types] = {  # may be missing
    "index": (str, _NONE),
    "design": (str, _NONE),
    "kernel": (str, _NONE),
    "until": (str, _NONE),
    "max_masks": (int, _NONE),
    "retry": (int, _NONE),
    "concurrency": (int, _NONE),
}
_JSON: dict[type, Types] = {Path: (str,), float: (float, int)}  # how JSON holds other types


def stored_settings(manifest: Mapping[str, Any], folder: str) -> dict[str, Any]:
    """The settings of a run, each of the type that its option has.

    Parameters
    ----------
    manifest
        Of the run.
    folder
        Of the run, for messages.

    Raises
    ------
    ValueError
        If `eblime batch` did not start the run, if the domain is not installed, or if a setting is
        missing or has the wrong type.
    """
    settings = manifest["settings"]["about"]
    if not isinstance(settings, dict) or not isinstance(settings.get("kind"), str):
        raise ValueError(
            f"{folder} was not started by `eblime batch`; resume it with `explain_many` in Python."
        )
    command = _command(settings["kind"], folder)
    required = dict(_SHARED)
    for name in file_options(command):
        if settings.get(name) is not None:
            required[f"{name}_sha256"] = (str,)
    for name, types in {**_NEWER, **required}.items():
        if name in required or name in settings:
            _check(settings, name, types, folder)
    for option in batch_options(command):
        if option.name in settings:
            _check_option(settings, option, folder)
    return dict(settings)


def _command(kind: str, folder: str) -> Command:
    """The command of an installed domain."""
    command = command_of(kind)[1] if kind in registry.names("domains") else None
    if command is None:
        raise ValueError(
            f"{folder} has inputs of the kind {kind!r}, which is not installed; install the "
            "package that adds it."
        )
    return command


def _check_option(settings: Mapping[str, Any], option: Option, folder: str) -> None:
    """Refuse a value that the option cannot have."""
    types = _JSON.get(option.type, (option.type,))
    if option.many:
        _check(settings, option.name, (list,), folder)
        for entry in settings[option.name]:
            _check({option.name: entry}, option.name, types, folder)
        return
    _check(settings, option.name, (*types, _NONE) if option.default is None else types, folder)
    value = settings[option.name]
    if option.choices and value is not None and value not in option.choices:
        raise ValueError(
            f"{folder}/manifest.json is damaged: {option.name!r} must be one of "
            f"{', '.join(map(repr, option.choices))}; got {value!r:.80}."
        )


def _check(settings: Mapping[str, Any], name: str, types: Types, folder: str) -> None:
    """Refuse a setting that is missing or has another type."""
    if name in settings and type(settings[name]) in types:
        return
    allowed = " or ".join("null" if kind is _NONE else kind.__name__ for kind in types)
    got = repr(settings[name]) if name in settings else "nothing"
    raise ValueError(
        f"{folder}/manifest.json is damaged: {name!r} must be {allowed}; got {got:.80}."
    )
