"""Start and resume runs: what a manifest may decide, and what only the user may.

A run folder may come from someone else. Its manifest names a model, and loading a Python module or
a pickle runs code: that happens only if the user names the model again, or trusts the run. The
manifest also names a domain, which is looked up among the installed ones.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import typer

from eblime.batch.location import Location
from eblime.cli.options import parse_targets
from eblime.cli.recipe import Recipe, located
from eblime.cli.stored import stored_settings
from eblime.cli.terminal import say

__all__ = ["resume_command", "resumed_recipe", "run_recipe"]

_SOME_FAILED = 3  # exit code
_DATA_ONLY = (".onnx", ".skops")  # models that run no code when they are loaded without trust
_STORES = ("abfs", "abfss", "az", "gcs", "gs", "hdfs", "memory", "s3", "s3a")


def resumed_recipe(
    folder: str, *, model: str | None, trust_run: bool, trust_pickle: bool
) -> Recipe:
    """The recipe of a run that `eblime batch` started.

    Parameters
    ----------
    folder
        Of the run. Its manifest alone never causes an import or the loading of a pickle.
    model
        `--model`, if the user repeated it. A module is then imported from the current folder or
        from the installed packages, never from a folder that the manifest names.
    trust_run
        Load any model that the manifest names, from the folder that it names.
    trust_pickle
        Load the pickle that `model` names.
    """
    from eblime.batch.folder import read_manifest

    settings = stored_settings(read_manifest(Location.of(folder)), folder)
    stored = settings["model"]
    if model is not None and located(model) != stored:
        raise ValueError(
            f"{folder} was created with --model {stored}; this call has --model {model}."
        )
    if trust_run:
        return Recipe(settings=settings, trust_pickle=True, import_from=settings["imported_from"])
    _check_inputs(settings["inputs"], folder)
    if model is not None:
        return Recipe(settings=settings, trust_pickle=trust_pickle, import_from=str(Path.cwd()))
    if trust_pickle:
        raise PermissionError(
            "--trust-pickle with --resume also needs --model, to say which file you trust."
        )
    if not _data_only(stored):
        raise PermissionError(
            f"{folder} names the model {stored}, which can run any code when it is loaded. "
            "Repeat --model to confirm that this is your model, or add --trust-run if you trust "
            "the author of the run."
        )
    return Recipe(settings=settings, trust_pickle=False, import_from=None)


def run_recipe(recipe: Recipe, folder: str, execution: dict[str, Any]) -> None:
    """Start or resume a run, and print a summary.

    Parameters
    ----------
    recipe
        What to explain, and how.
    folder
        Of the run.
    execution
        Workers, time limits and the like, which change no result.
    """
    from eblime.batch.run import explain_many

    settings = recipe.settings
    try:
        run = explain_many(
            recipe,
            recipe.inputs(),
            folder,
            targets=parse_targets(settings["target"], None),
            seed=settings["seed"],
            part_size=settings["part_size"],
            prob=settings["prob"],
            keep=settings["keep"],
            until=settings.get("until"),
            max_masks=settings.get("max_masks"),
            about=settings,
            progress=None,
            **execution,
        )
    except KeyboardInterrupt:
        say(_interrupted(folder, recipe))
        sys.exit(130)  # with a message of its own
    _summarise(run, folder, recipe)


def _interrupted(folder: str, recipe: Recipe) -> str:
    """How to continue after Ctrl-C."""
    if (Location.of(folder) / "manifest.json").kind() != "file":
        return "Interrupted before the run began. Repeat the command."
    return f"Interrupted. Finished parts are saved. Resume: {resume_command(folder, recipe)}"


def _summarise(run: Any, folder: str, recipe: Recipe) -> None:
    """Print how a run ended; failed inputs give their own exit code."""
    failures = run.failures()
    failed = len(failures)
    say(
        f"{recipe.settings['inputs']}: {run.settings['count'] - failed} explained, {failed} failed."
    )
    if failed:
        say(f"Most frequent error: {failures['error'].mode()[0]}")
        say(f"All errors: {Location.of(folder) / 'failures.csv'}")
        say(f"Try them again: {resume_command(folder, recipe, '--retry')}")
    say(f"The run is in {folder}; eblime report {folder} makes a page of it.")
    if failed:
        raise typer.Exit(_SOME_FAILED)


def resume_command(folder: str, recipe: Recipe, *options: str) -> str:
    """The command that resumes a run, ready to be pasted."""
    model = recipe.settings["model"]
    words = ["eblime", "batch", "--resume", folder, *options]
    if recipe.trust_pickle or not _data_only(model):
        words += ["--model", model]
    return shlex.join([*words, *(["--trust-pickle"] if recipe.trust_pickle else [])])


def _data_only(model: str) -> bool:
    """Whether loading a model without trust runs no code of its own."""
    return Path(model).suffix.lower() in _DATA_ONLY


def _check_inputs(address: str, folder: str) -> None:
    """Refuse addresses for which some file systems run code, such as `reference::http://...`."""
    scheme, mark, _ = address.partition("://")
    if mark and Location.of(address).local_path is None and scheme not in _STORES:
        raise PermissionError(
            f"{folder} names inputs at {address}, which is not a path or one of the stores "
            f"{', '.join(_STORES)}. Add --trust-run if you trust the author of the run."
        )
