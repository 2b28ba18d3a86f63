"""Begin and resume runs: what a manifest may decide, and what only the user may.

A run folder may come from someone else. Its manifest names a model, and loading a Python module or
a pickle runs code: that happens only if the user names the model again, or trusts the run.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from eblime.batch.location import Location
from eblime.cli.options import parse_targets
from eblime.cli.recipe import Recipe, inputs_of, located
from eblime.cli.terminal import say

__all__ = ["resume_command", "resumed_recipe", "run_recipe"]

_SOME_FAILED = 3  # exit code
_DATA_ONLY = (".onnx", ".skops")  # models that run no code when they are loaded without trust
_STORES = ("abfs", "abfss", "az", "gcs", "gs", "hdfs", "memory", "s3", "s3a")
_OPTIONAL = (str, type(None))
_SHARED: dict[str, tuple[type, ...]] = {
    "inputs": (str,),
    "model": (str,),
    "model_sha256": _OPTIONAL,
    "imported_from": _OPTIONAL,
    "labels": _OPTIONAL,
    "target": _OPTIONAL,
    "method": (str,),
    "masks": (int,),
    "seed": (int,),
    "prob": (float, int),
    "part_size": (int, type(None)),
    "keep": (bool,),
}
_OF_KIND: dict[str, dict[str, tuple[type, ...]]] = {
    "image": {
        "segmentation": (str,),
        "hide": (str,),
        "size": (int, type(None)),
        "normalise": (str,),
        "activation": (str,),
        "output_name": _OPTIONAL,
    },
    "tabular": {
        "background": _OPTIONAL,
        "drop": (str,),
        "categorical": (str,),
        "group": (list,),
        "representation": (str,),
        "bins": (str,),
        "perturb": (str,),
    },
    "text": {"tokens": (str,)},
}


def resumed_recipe(
    manifest: Mapping[str, Any],
    folder: str,
    *,
    model: str | None,
    trust_run: bool,
    trust_pickle: bool,
) -> Recipe:
    """The recipe of a run that `eblime batch` began.

    Parameters
    ----------
    manifest
        Of the run. Nothing that it names is imported or unpickled on its own word.
    folder
        Of the run, for messages.
    model
        `--model`, if the user repeated it. A module is then imported from the current folder or
        from what is installed, never from a folder that the manifest names.
    trust_run
        Load whatever the manifest names, from wherever it says.
    trust_pickle
        Unpickle the file that `model` names.
    """
    told = _checked(manifest, folder)
    if model is not None and located(model) != told["model"]:
        raise ValueError(
            f"{folder} was created with --model {told['model']}; this call has --model {model}."
        )
    if trust_run:
        return Recipe(told=told, trust_pickle=True, import_from=told["imported_from"])
    _check_inputs(told["inputs"], folder)
    if model is not None:
        return Recipe(told=told, trust_pickle=trust_pickle, import_from=str(Path.cwd()))
    if trust_pickle:
        raise PermissionError(
            "--trust-pickle with --resume also needs --model, to say which file you trust."
        )
    if not _data_only(told["model"]):
        raise PermissionError(
            f"{folder} names the model {told['model']}, which can run any code when it is loaded. "
            "Repeat --model to say that this is your model, or add --trust-run if you trust "
            "whoever made the run."
        )
    return Recipe(told=told, trust_pickle=False, import_from=None)


def run_recipe(recipe: Recipe, folder: str, ways: dict[str, Any]) -> None:
    """Begin or resume a run, and print a summary."""
    from eblime.batch.run import explain_many

    told = recipe.told
    try:
        run = explain_many(
            recipe,
            inputs_of(recipe),
            folder,
            targets=parse_targets(told["target"], None),
            seed=told["seed"],
            part_size=told["part_size"],
            prob=told["prob"],
            keep=told["keep"],
            about=told,
            progress=None,
            **ways,
        )
    except KeyboardInterrupt:
        say(f"Interrupted. Finished parts are saved. Resume: {resume_command(folder, recipe)}")
        raise typer.Exit(130) from None
    failures = run.failures()
    failed = len(failures)
    say(f"{told['inputs']}: {run.settings['count'] - failed} explained, {failed} failed.")
    if failed:
        say(f"Most frequent error: {failures['error'].mode()[0]}")
        say(f"All errors: {run.location / 'failures.csv'}")
        say(f"Try them again: {resume_command(folder, recipe, '--retry')}")
    say(f"The run is in {folder}; eblime report {folder} makes a page of it.")
    if failed:
        raise typer.Exit(_SOME_FAILED)


def resume_command(folder: str, recipe: Recipe, *options: str) -> str:
    """The command that goes on with a run, ready to be pasted."""
    words = ["eblime", "batch", "--resume", folder, *options]
    if recipe.trust_pickle or not _data_only(recipe.told["model"]):
        words += ["--model", recipe.told["model"]]
    return shlex.join([*words, *(["--trust-pickle"] if recipe.trust_pickle else [])])


def _data_only(model: str) -> bool:
    """Whether loading a model without trust runs no code of its own."""
    return Path(model).suffix.lower() in _DATA_ONLY


def _check_inputs(address: str, folder: str) -> None:
    """Refuse addresses that some file systems answer with code, such as `reference::http://...`."""
    scheme, mark, _ = address.partition("://")
    if mark and Location.of(address).local_path is None and scheme not in _STORES:
        raise PermissionError(
            f"{folder} names inputs at {address}, which is not a path or one of the stores "
            f"{', '.join(_STORES)}. Add --trust-run if you trust whoever made the run."
        )


def _checked(manifest: Mapping[str, Any], folder: str) -> dict[str, Any]:
    """The settings that `eblime batch` wrote into a manifest, each of the type it must have."""
    told = manifest["settings"]["about"]
    kind = told.get("kind") if isinstance(told, dict) else None
    if not isinstance(kind, str) or kind not in _OF_KIND:
        raise ValueError(
            f"{folder} was not begun by `eblime batch`; resume it with `explain_many` in Python."
        )
    wanted = {**_SHARED, **_OF_KIND[kind]}
    for name in ("labels", "background"):
        if told.get(name) is not None:
            wanted[f"{name}_sha256"] = (str,)
    for name, kinds in wanted.items():
        if name not in told or type(told[name]) not in kinds:
            words = " or ".join("null" if k is type(None) else k.__name__ for k in kinds)
            got = repr(told[name]) if name in told else "nothing"
            raise ValueError(
                f"{folder}/manifest.json is damaged: {name!r} must be {words}; got {got:.80}."
            )
    if not all(isinstance(entry, str) for entry in told.get("group", [])):
        raise ValueError(f"{folder}/manifest.json is damaged: 'group' must list strings.")
    return dict(told)
