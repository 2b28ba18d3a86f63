"""The settings of an `eblime batch` run: how any process makes its explainer, and who decides what.

A run folder may come from someone else. Of its manifest only settings are used as they are. Every
file and address in it (`Recipe.places`) must be named again by the user, or the run be trusted: a
model can run code, and receives the inputs. The domain is looked up among the installed ones.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
from eblime.cli.options import AGAIN, ASKING, MODEL, PARTS, command_of, own_values, parse_targets
from eblime.cli.output import say
from eblime.domains.record import Command, Domain, Item, Option
from eblime.engine.cache import AnswerCache

if TYPE_CHECKING:
    from eblime.batch.results import Run

__all__ = ["Recipe"]

_SOME_FAILED = 3  # exit code
_MOST_REPEATS = 10_000  # of an option


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Makes the explainer of a run in any process that needs it.

    Parameters
    ----------
    about
        Name of the domain, inputs, model, and the values of the options; the run's manifest stores
        them.
    trust_pickle
        Whether a pickled model may be loaded.
    import_from
        Folder in which the module of a `module:name` model is looked for, besides the installed
        ones.
    cache
        Stored answers of the model, which change no result.
    """

    about: dict[str, Any]
    trust_pickle: bool
    import_from: str | None
    cache: AnswerCache | None

    @classmethod
    def start(
        cls,
        domain: Domain,
        command: Command,
        values: Mapping[str, Any],
        *,
        cache: AnswerCache | None,
    ) -> Recipe:
        """The recipe of a new run from the values of all options, with full paths and checksums."""
        model, options = values["model"], own_values(command, values)
        about: dict[str, Any] = {
            "kind": domain.name,
            "inputs": _full_name("inputs", values["argument"]),
            "model_sha256": _digest(model),
            "imported_from": None if Path(model).is_file() else str(Path.cwd()),
        }
        for option in _stored_options(command):
            value = about[option.name] = options.get(option.name, values[option.name])
            if isinstance(value, Path):
                about[option.name] = _full_name(option.name, str(value))
                about[f"{option.name}_sha256"] = found = _digest(str(value))
                if found is None:
                    raise FileNotFoundError(f"There is no file {str(value)!r} for {option.flag}.")
        about["model"] = _full_name("model", model)
        trust, folder = values["trust_pickle"], about["imported_from"]
        return cls(about=about, trust_pickle=trust, import_from=folder, cache=cache)

    @classmethod
    def resume(
        cls,
        folder: str,
        *,
        again: Mapping[str, str | None],
        trust_run: bool,
        trust_pickle: bool,
        cache: AnswerCache | None,
    ) -> Recipe:
        """The recipe of a run that `eblime batch` started.

        Parameters
        ----------
        folder
            Of the run.
        again
            The files and addresses of the run that the user named again, by option. A module is
            then imported from the current folder or from the installed packages, never from a
            folder that the manifest names.
        trust_run
            Use all that the manifest names, also a pickle, and a module in the folder that it
            names.
        trust_pickle
            Load the pickle that `--model` names.
        cache
            Stored answers of the model.
        """
        from eblime.batch.folder import read_manifest

        about = _check_stored(read_manifest(Location.of(folder))["settings"]["about"], folder)
        found = cls(about=about, trust_pickle=True, import_from=about["imported_from"], cache=cache)
        places, named = found.places(), {name: value for name, value in again.items() if value}
        for name, value in named.items():
            if _full_name(name, value) != places.get(name):
                raise ValueError(
                    f"{folder} was created with --{name} {places.get(name)}; this call has "
                    f"--{name} {value}."
                )
        if trust_run:
            return found
        if set(places) - set(named):
            listed = ", ".join(f"--{name} {value}" for name, value in places.items())
            code = f", and the code in {found.import_from}" if found.import_from else ""
            trusting = shlex.join(["eblime", "batch", "--resume", folder, "--trust-run"])
            repeated = replace(found, trust_pickle=trust_pickle).resume_command(folder)
            raise PermissionError(
                f"{folder} would use {listed}. If you trust all of it, name it again: {repeated} "
                f"or trust the folder{code}: {trusting}"
            )
        return replace(found, trust_pickle=trust_pickle, import_from=str(Path.cwd()))

    def places(self) -> dict[str, str]:
        """All files and addresses that the run uses, by the options that name them."""
        _, command = self._domain()
        files = (o.name for o in _stored_options(command) if o is MODEL or o.type is Path)
        found = {name: self.about[name] for name in ("inputs", *files)}
        return {name: value for name, value in found.items() if value is not None}

    def __call__(self) -> Any:
        """Load the model and make the explainer."""
        domain, command = self._domain()
        made = make_explainer(domain, command, self.model(), self.about, self.about["inputs"])
        return made if self.cache is None else replace(made, cache=self.cache)

    def model(self) -> Any:
        """The model; it and the other files must be those that the run was started with."""
        _, command = self._domain()
        for option in _stored_options(command):
            path = self.about[option.name]
            is_file = option is MODEL or (option.type is Path and path is not None)
            if is_file and _digest(path) != self.about[f"{option.name}_sha256"]:
                raise ValueError(f"{path} has changed since the run was started.")
        if self.import_from and self.import_from not in sys.path:
            sys.path.append(self.import_from)
        settings = model_settings(command, self.about)
        return load_model(self.about["model"], trust_pickle=self.trust_pickle, **settings)

    def inputs(self) -> Any:
        """The inputs of the run, as `explain_many` takes them."""
        _, command = self._domain()
        read = registry.resolve(command.inputs or command.items)
        found = read(self.about["inputs"], self.model, own_values(command, self.about))
        if command.inputs is not None:
            return found
        return Items(items=[Item(*item) for item in found])

    def run(self, folder: str, **execution: Any) -> None:
        """Start or resume a run, and print a summary; failed inputs give their own exit code."""
        from eblime.batch.run import explain_many

        passed = ("seed", "part_size", "prob", "until", "max_masks")
        try:
            run = explain_many(
                self,
                self.inputs(),
                folder,
                targets=parse_targets(self.about["target"], None),
                keep=self.about["keep"] or None,
                **{name: self.about[name] for name in passed},
                **execution,
            )
        except KeyboardInterrupt:
            if (Location.of(folder) / "manifest.json").kind() == "file":
                again = self.resume_command(folder)
                say(f"Interrupted. Finished parts are saved. Resume: {again}")
                say(f"A page of what there is: {shlex.join(['eblime', 'report', folder])}")
            else:
                say("Interrupted before the run began. Repeat the command.")
            sys.exit(130)  # with a message of its own
        failures = run.failures()
        failed = len(failures)
        explained = run.settings["count"] - failed
        say(f"{self.about['inputs']}: {explained} explained, {failed} failed.")
        if failed:
            say(f"Most frequent error: {failures['error'].mode()[0]}")
            say(f"All errors: {Location.of(folder) / 'failures.csv'}")
            say(f"Try them again: {self.resume_command(folder, '--retry')}")
        _write_page(run, folder)
        if failed:
            raise typer.Exit(_SOME_FAILED)

    def resume_command(self, folder: str, *options: str) -> str:
        """The command that resumes the run, ready to be pasted."""
        places = self.places()
        words = [word for name, value in places.items() for word in (f"--{name}", value)]
        if not {*places} <= {option.name for option in AGAIN}:  # a file of another package's domain
            words = ["--trust-run"]
        elif self.trust_pickle:
            words.append("--trust-pickle")
        return shlex.join(["eblime", "batch", "--resume", folder, *options, *words])

    def _domain(self) -> tuple[Domain, Command]:
        """The domain, whose package must be installed, and its command."""
        domain, command = command_of(self.about["kind"])
        assert command is not None
        return domain, command


def _write_page(run: Run, folder: str) -> None:
    """Write the page of a finished run, and say where it is; without it the run is still good."""
    from eblime.batch.overview import overview

    page, again = run.location / "report.html", shlex.join(["eblime", "report", folder])
    try:
        overview(run, page.address)
    except (Exception, KeyboardInterrupt) as error:
        reason = str(error) or type(error).__name__
        say(f"The run in {folder} is finished, its page is not ({reason}). To make it: {again}")
        if isinstance(error, KeyboardInterrupt):
            sys.exit(130)
    else:
        say(f"The run is in {folder}; look at {page}.")


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


def _stored_options(command: Command) -> list[Option]:
    """The options that decide the results of a run."""
    return [MODEL, *ASKING, *PARTS, *(option for option in command.options if option.batch)]


def _check_stored(about: Any, folder: str) -> dict[str, Any]:
    """The settings in a manifest, each of the type that its option has; refused otherwise."""
    if not isinstance(about, dict) or not isinstance(about.get("kind"), str):
        raise ValueError(
            f"{folder} was not started by `eblime batch`; resume it with `eblime.explain_many` in "
            "Python."
        )
    kind = about["kind"]
    command = command_of(kind)[1] if kind in registry.names("domains") else None
    if command is None:
        raise ValueError(
            f"{folder} has inputs of the kind {kind!r}, which is not installed; install the "
            "package that adds it."
        )
    checks = {"inputs": text(), "model_sha256": optional(text()), "imported_from": optional(text())}
    for option in _stored_options(command):
        checks[option.name] = _option_check(option)
        if option.type is Path and about.get(option.name) is not None:
            checks[f"{option.name}_sha256"] = text()
    check_fields(about, checks, f"{folder}/manifest.json is damaged: `")
    return about


def _option_check(option: Option) -> Check:
    """What a stored value of an option must be."""
    low, high = option.minimum, option.maximum
    if option.choices:
        found = one_of(*option.choices)
    elif option.type is int:
        found = whole(-sys.maxsize if low is None else int(low), int(high) if high else None)
    else:
        found = number() if option.type is float else flag() if option.type is bool else text()
    if option.many:
        return list_of(found, option.name, most=_MOST_REPEATS)
    return optional(found) if option.default is None and not option.required else found


def _full_name(name: str, value: str) -> str:
    """A file or address of an option as a manifest has it; a Python name as it is."""
    if name == "inputs":
        return Location.of(value).address
    is_path = name != "model" or Path(value).is_file()
    return str(Path(value).resolve()) if is_path else value


def _digest(path: str) -> str | None:
    """Checksum of a file, or of the names and files of a folder; None for a Python name."""
    place = Location.of(Path(path))  # a path, also if it looks like an address
    if place.kind() != "folder":
        return place.sha256().hexdigest() if place.kind() == "file" else None
    found = hashlib.sha256()
    for name in place.files():
        found.update(os.fsencode(name) + b"\0" + (place / name).sha256().digest())
    return found.hexdigest()
