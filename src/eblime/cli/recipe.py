"""The settings of an `eblime batch` run: how any process makes its explainer, and who decides what.

A run folder may come from someone else. Its manifest names a model, and loading a Python module or
a pickle runs code: that happens only if the user names the model again, or trusts the run. The
manifest also names a domain, which is looked up among the installed ones.
"""

from __future__ import annotations

import hashlib
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import typer

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
from eblime.batch.location import Location
from eblime.cli.assembly import load_model, make_explainer, model_settings
from eblime.cli.options import command_of, parse_targets
from eblime.cli.output import say
from eblime.domains.record import Command, Domain, Item, Option
from eblime.engine.cache import AnswerCache

__all__ = [
    "Recipe",
    "batch_options",
    "begin",
    "file_options",
    "located",
    "resume_command",
    "resumed_recipe",
    "run_recipe",
    "stored_settings",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Makes the explainer of a run in any process that needs it.

    Parameters
    ----------
    settings
        Name of the domain, inputs, model, and the values of the options; the run's manifest stores
        them as `about`.
    trust_pickle
        Whether a pickled model may be loaded.
    import_from
        Folder in which the module of a `module:name` model is looked for, besides the installed
        ones.
    cache
        Stored answers of the model, which change no result.
    """

    settings: dict[str, Any]
    trust_pickle: bool
    import_from: str | None
    cache: AnswerCache | None = None

    @property
    def about(self) -> dict[str, Any]:
        """What the manifest of the run says about it."""
        return self.settings

    def __call__(self) -> Any:
        """Load the model and make the explainer."""
        domain, command = self._domain()
        model = self.model()
        for name in file_options(command):
            path = self.settings.get(name)
            if path is not None and self.settings[f"{name}_sha256"] != _digest(path):
                raise ValueError(f"{path} has changed since the run was started.")
        options = self._options(command)
        made = make_explainer(domain, model, self.settings, options, self.settings["inputs"])
        return made if self.cache is None else replace(made, cache=self.cache)

    def model(self) -> Any:
        """The model, which must be the one that the run was started with."""
        name = self.settings["model"]
        if self.settings["model_sha256"] != _digest(name):
            raise ValueError(f"{name} is not the model that the run was started with.")
        if self.import_from and self.import_from not in sys.path:
            sys.path.append(self.import_from)
        _, command = self._domain()
        settings = model_settings(command, self._options(command))
        return load_model(name, trust_pickle=self.trust_pickle, **settings)

    def inputs(self) -> Any:
        """The inputs of the run, as `explain_many` takes them."""
        _, command = self._domain()
        argument, options = self.settings["inputs"], self._options(command)
        if command.inputs is not None:
            return registry.resolve(command.inputs)(argument, self.model, options)
        found = registry.resolve(command.items)(argument, self.model, options)
        return Items(items=[Item(*item) for item in found])

    def _domain(self) -> tuple[Domain, Command]:
        """The domain, whose package must be installed, and its command."""
        domain, command = command_of(self.settings["kind"])
        assert command is not None
        return domain, command

    def _options(self, command: Command) -> dict[str, Any]:
        """The values of the domain's own options; defaults for those that the run does not have."""
        found = {option.name: [] if option.many else option.default for option in command.options}
        for option in batch_options(command):
            found[option.name] = self.settings.get(option.name, found[option.name])
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Items:
    """The inputs of `eblime explain` as inputs of a run."""

    items: Sequence[Item]

    @property
    def fingerprint(self) -> str:
        """Changes when titles or contents do."""
        from eblime.batch.inputs import as_inputs

        found = hashlib.sha256()
        for item in self.items:
            found.update(item.title.encode() + b"\0")
            try:
                content: Any = as_inputs([item.read()])
                found.update(content.fingerprint.encode())
            except Exception:  # recorded as a failure when the input is explained
                continue
        return found.hexdigest()[:16]

    def __len__(self) -> int:
        return len(self.items)

    def name(self, number: int) -> str:
        """Its title."""
        return self.items[number].title

    def get(self, number: int) -> Any:
        """The input."""
        return self.items[number].read()


def begin(
    domain: Domain, argument: str, values: Mapping[str, Any], options: Mapping[str, Any]
) -> dict[str, Any]:
    """The settings of a new run, with full paths and the checksums of files.

    Parameters
    ----------
    domain
        Its name is stored.
    argument
        The inputs.
    values
        Of the shared options that decide the results.
    options
        Values of the domain's own options.
    """
    model = values["model"]
    settings: dict[str, Any] = {
        "kind": domain.name,
        "inputs": Location.of(argument).address,
        "model": located(model),
        "model_sha256": _digest(model),
        "imported_from": None if Path(model).is_file() else str(Path.cwd()),
    }
    for name, value in {**values, **options}.items():
        if isinstance(value, Path):
            settings[name] = str(value.resolve())
            settings[f"{name}_sha256"] = _digest(settings[name])
            if settings[f"{name}_sha256"] is None:
                raise FileNotFoundError(f"There is no file {str(value)!r} for --{name}.")
        else:
            settings.setdefault(name, value)
    return settings


def batch_options(command: Command) -> list[Option]:
    """The domain's own options that `eblime batch` has."""
    return [option for option in command.options if option.batch]


def located(model: str) -> str:
    """A model as a manifest names it: the full path of a file, or a Python name as it is."""
    return str(Path(model).resolve()) if Path(model).is_file() else model


def file_options(command: Command) -> list[str]:
    """Names of the options of `eblime batch` that take a file besides the model."""
    return ["labels", *(entry.name for entry in batch_options(command) if entry.type is Path)]


def _digest(path: str) -> str | None:
    """Checksum of a file; None for a Python name."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest() if Path(path).is_file() else None


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
            keep=settings["keep"] or None,
            until=settings.get("until"),
            max_masks=settings.get("max_masks"),
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
