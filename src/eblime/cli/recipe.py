"""The settings of an `eblime batch` run, and how any process makes its explainer from them."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eblime import registry
from eblime.batch.location import Location
from eblime.cli.assembly import make_explainer, model_settings
from eblime.cli.domain_commands import command_of
from eblime.cli.modelfile import load_model
from eblime.domains.record import Command, Domain, Item, Option

__all__ = ["Recipe", "batch_options", "begin", "file_options", "located"]


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
    """

    settings: dict[str, Any]
    trust_pickle: bool
    import_from: str | None

    def __call__(self) -> Any:
        """Load the model and make the explainer."""
        domain, command = self._domain()
        model = self.model()
        for name in file_options(command):
            path = self.settings.get(name)
            if path is not None and self.settings[f"{name}_sha256"] != _digest(path):
                raise ValueError(f"{path} has changed since the run was started.")
        options = self._options(command)
        return make_explainer(domain, model, self.settings, options, self.settings["inputs"])

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
    return Location.of(path).digest() if Path(path).is_file() else None
