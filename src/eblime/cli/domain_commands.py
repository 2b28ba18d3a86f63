"""Commands made from the registry of domains: `eblime explain NAME` and `eblime batch NAME`.

A command has the options that all domains share and those that its `Command` record lists. It is
built when it is called or listed, so that a package that cannot be imported harms only its own
command.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, Signature
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from eblime import registry
from eblime._checks import check_choice
from eblime.domains.record import Command, Domain, Option

__all__ = ["Build", "command_of", "domain_group", "in_options", "make_command", "option_values"]

Build = Callable[[Domain, Command], Any]  # returns what `make_command` does
_OWN = "own_"  # parameters of a domain's own options start with this, to clash with no other
_RESERVED = ("imported_from", "inputs", "kind")  # entries of a manifest besides options
_SAME = (  # parameters whose option has the same name
    *("cache", "concurrency", "design", "index", "kernel", "kind", "labels", "max_masks"),
    *("max_seconds", "method", "model", "model_id", "prob", "retry", "target", "targets"),
    *("timeout", "until"),
    *("cpus_per_worker", "engine", "gpus_per_worker", "part_size", "seed", "workers"),
)
_SETTINGS = {  # parameter -> option
    "n_masks": "--masks",
    "methods": "--compare",
    **{name: f"--{name.replace('_', '-')}" for name in _SAME},
}


def domain_group(build: Build) -> type[TyperGroup]:
    """A group with one command for each registered domain."""

    class DomainGroup(TyperGroup):
        """Looks commands up in the registry."""

        def list_commands(self, ctx: Any) -> list[str]:
            """Names of the domains."""
            return list(registry.names("domains"))

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            """The command of a domain; None for a domain without one."""
            if cmd_name not in registry.names("domains"):
                return None
            try:
                domain, command = command_of(cmd_name)
                return None if command is None else build(domain, command)
            except Exception as error:
                return _unavailable(cmd_name, error)

    return DomainGroup


def command_of(name: str) -> tuple[Domain, Command | None]:
    """A registered domain and its `Command` record."""
    domain = registry.find("domains", name)
    return domain, registry.of_domain(domain, "command")


def make_command(
    name: str,
    run: Callable[[dict[str, Any]], None],
    *,
    help: str,
    argument: Any,
    own: Sequence[Option],
    shared: Sequence[Parameter],
) -> Any:
    """A command that calls `run` with a dictionary of all values.

    Parameters
    ----------
    name
        Of the domain.
    run
        Takes the values of the shared options by name, that of the argument as "argument", and
        those of the domain's own options, which `option_values` picks out.
    help
        Text of `--help`.
    argument
        Annotation of the argument.
    own, shared
        The domain's own options, and those of all domains.
    """
    _check_names(name, own, shared)
    parameters = [
        Parameter("argument", Parameter.KEYWORD_ONLY, annotation=argument),
        *(entry for entry in shared if entry.name == "model"),
        *map(_own_parameter, own),
        *(entry for entry in shared if entry.name != "model"),
    ]

    def function(**values: Any) -> None:
        run(values)

    function.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    function.__annotations__ = {entry.name: entry.annotation for entry in parameters}
    return _built(name, function, help)


def option_values(own: Sequence[Option], values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a domain's own options by name, checked."""
    found = {}
    for option in own:
        value = values[f"{_OWN}{option.name}"]
        if option.choices and value is not None:
            for entry in value if option.many else [value]:
                check_choice(option.flag, entry, option.choices)
        found[option.name] = list(value or []) if option.many else value
    return found


def in_options(message: str, words: Sequence[str] = ()) -> str:
    """A message of the library with options in place of the names of parameters.

    Parameters
    ----------
    message
        Names parameters in backticks.
    words
        The command line, which says whose options to name.
    """
    names = dict(_SETTINGS)
    if len(words) > 1 and words[0] in ("explain", "batch"):
        names |= {option.setting or option.name: option.flag for option in _options_of(words[1])}
    return re.sub(r"`(\w+)`", lambda found: names.get(found[1], found[0]), message)


def _options_of(name: str) -> Sequence[Option]:
    """A domain's own options; none if there is no such domain or if it cannot be loaded."""
    try:
        command = command_of(name)[1]
    except Exception:
        return ()
    return command.options if command is not None else ()


def _own_parameter(option: Option) -> Parameter:
    """A domain's own option as a parameter of the command's function."""
    is_number = option.type in (int, float)
    info = typer.Option(
        option.flag,
        help=option.help,
        min=option.minimum if is_number else None,
        max=option.maximum if is_number else None,
        autocompletion=_completion(option.choices),
    )
    kind: Any = list[option.type] if option.many else option.type  # type: ignore[name-defined]
    if option.default is None:
        kind = kind | None
    return Parameter(
        f"{_OWN}{option.name}",
        Parameter.KEYWORD_ONLY,
        default=option.default,
        annotation=Annotated[kind, info],
    )


def _completion(choices: Sequence[str]) -> Callable[[str], list[str]] | None:
    """Shell completion with the values of an option."""
    if not choices:
        return None

    def complete(incomplete: str) -> list[str]:
        return [choice for choice in choices if choice.startswith(incomplete)]

    return complete


def _check_names(name: str, own: Sequence[Option], shared: Sequence[Parameter]) -> None:
    """Refuse an option that is declared twice, that all domains have, or that a manifest needs."""
    taken = {*_RESERVED, *(entry.name for entry in shared)}
    for option in own:
        if option.name in taken or option.name.endswith("_sha256"):
            raise ValueError(
                f"The domain {name!r} declares the option {option.flag}, which already exists or "
                "is reserved."
            )
        taken.add(option.name)


def _unavailable(name: str, error: Exception) -> Any:
    """The command of a domain whose package cannot be imported: it says so."""
    reason = f"The domain {name!r} cannot be loaded: {error}"

    def function() -> None:
        raise ImportError(reason) from error

    context = {"allow_extra_args": True, "ignore_unknown_options": True}
    return _built(name, function, reason, context_settings=context)


def _built(name: str, function: Callable[..., None], help: str, **settings: Any) -> Any:
    """A function as a command."""
    app = typer.Typer(rich_markup_mode=None, add_completion=False, pretty_exceptions_enable=False)
    app.command(name, help=help, **settings)(function)
    return typer.main.get_command(app)
