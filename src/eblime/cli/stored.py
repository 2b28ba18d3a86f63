"""The settings that `eblime batch` stored in a manifest, checked before anything is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eblime import registry
from eblime._field_checks import (
    Check,
    check_fields,
    flag,
    list_of,
    number,
    one_of,
    optional,
    text,
    whole,
)
from eblime.cli.domain_commands import command_of
from eblime.cli.recipe import batch_options, file_options
from eblime.domains.record import Command, Option

__all__ = ["stored_settings"]

_TEXT, _WHOLE = text(), whole(0)
_SHARED = {
    "inputs": _TEXT,
    "model": _TEXT,
    "model_sha256": optional(_TEXT),
    "imported_from": optional(_TEXT),
    "labels": optional(_TEXT),
    "target": optional(_TEXT),
    "method": _TEXT,
    "masks": _WHOLE,
    "seed": _WHOLE,
    "prob": number(),
    "part_size": optional(_WHOLE),
    "keep": flag(),
}
_NEWER = {  # may be missing
    "index": optional(_TEXT),
    "design": optional(_TEXT),
    "kernel": optional(_TEXT),
    "until": optional(_TEXT),
    "max_masks": optional(_WHOLE),
    "retry": optional(_WHOLE),
    "concurrency": optional(_WHOLE),
}
_OF_TYPE = {str: _TEXT, Path: _TEXT, int: _WHOLE, float: number(), bool: flag()}
_MOST_REPEATS = 10_000  # of an option


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
    checks = dict(_SHARED)
    for name in file_options(command):
        if settings.get(name) is not None:
            checks[f"{name}_sha256"] = _TEXT
    options = {option.name: _option_check(option) for option in batch_options(command)}
    checks |= {name: c for name, c in (_NEWER | options).items() if name in settings}
    check_fields(settings, checks, f"{folder}/manifest.json is damaged: `")
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


def _option_check(option: Option) -> Check:
    """What a stored value of an option must be."""
    found = one_of(*option.choices) if option.choices else _OF_TYPE[option.type]
    if option.many:
        return list_of(found, option.name, most=_MOST_REPEATS)
    return optional(found) if option.default is None else found
