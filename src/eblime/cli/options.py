"""The options of all commands, and the commands that each domain has.

Every option is an `Option` record, which `with_options` turns into what the parser needs. `eblime
explain NAME` and `eblime batch NAME` have the options declared here and those that the domain's
`Command` record lists. Such a command is built when it is called or listed, so that a package that
cannot be imported harms only its own command.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from inspect import Parameter, Signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from eblime import registry
from eblime._checks import check_choice
from eblime.domains.record import Command, Domain, Option

if TYPE_CHECKING:
    from eblime.engine.cache import AnswerCache

__all__ = [
    *(
        "AGAIN",
        "ASKING",
        "CACHE",
        "CREW",
        "EXPLAIN",
        "JSON",
        "MAX_FAILURES",
        "MODEL",
        "OPEN",
        "OUT",
    ),
    *("PARTS", "PROB", "TOP", "TRUST", "argument", "cache_of", "command_of", "domain_command"),
    *("domain_group", "error_line", "known_names", "own_values", "parse_targets", "settings_of"),
    "with_options",
]


def _parse_workers(text: str) -> int | str:
    if text != "auto" and not (text.isascii() and text.isdigit() and int(text) > 0):
        raise ValueError(f"--workers must be a number from 1, or auto; got {text!r}.")
    return text if text == "auto" else int(text)


MODEL = Option(
    "model",
    "An .onnx or .skops file, a .pkl or .joblib file with --trust-pickle, or module:name; for "
    "prompts also the address of a server.",
    short="-m",
    required=True,
)
TRUST = Option(
    "trust_pickle",
    "Read pickle and joblib models, which can run any code.",
    type=bool,
    default=False,
)
OUT = Option("out", "Folder for the results.", short="-o", type=Path, default=Path("eblime-out"))
PROB = Option("prob", "Probability of the intervals, between 0 and 1.", type=float, default=0.95)
TOP = Option("top", "How many features to print.", type=int, default=10, minimum=1)
JSON = Option("json", "Print JSON instead of a table.", type=bool, default=False)
OPEN = Option("open", "Open the page in a browser.", type=bool, default=False)
MAX_FAILURES = Option(
    "max_failures", "Stop when more inputs than this have failed.", type=int, minimum=0
)
ASKING = (  # of `explain` and `batch`; a run stores them
    Option("labels", "Names of the outputs: one per line, or JSON.", type=Path),
    Option("target", "Output to explain, by name, else by number from 0. Default: the highest."),
    Option("method", "How to infer importances", names="methods", default="eblime"),
    Option(
        "index",
        "With --method quadrature, what the importances are: lime (the linear fit), banzhaf "
        "or shapley values. --design adaptive needs fewer masks for the same precision.",
    ),
    Option(
        "masks",
        "How many masks to ask the model about.",
        type=int,
        default=1000,
        minimum=2,
        setting="n_masks",
    ),
    Option(
        "until",
        "Ask in rounds until this is known with 95 % probability: top5 (which features are "
        "the 5 most important), ranking3 (and their order), sign5 (their signs), width0.05 (all "
        "importances, within such an interval), width10% (of the largest one) or lars3 (the test "
        "of S-LIME). Join with & or |; top5@0.99 asks for 99 %, and top5~0.02 accepts features "
        "whose importances differ by less than 0.02 in either place. Replaces --masks.",
    ),
    Option(
        "max_masks",
        "With --until: the most masks to ask about. Default: 5000.",
        type=int,
        minimum=1,
    ),
    Option("design", "Which masks to ask about", names="designs"),
    Option("kernel", "How much a mask counts (by default euclidean)", names="kernels"),
    Option("seed", "The same seed gives the same result.", type=int, default=0, minimum=0),
    PROB,
    Option("retry", "How often to send a failed batch to the model again.", type=int, minimum=0),
    Option("concurrency", "How many batches may be under way at once.", type=int, minimum=1),
)
CACHE = (
    Option("cache", "File that stores the model's answers; none is asked twice.", type=Path),
    Option(
        "model_id", "With --cache: name and version of the model; change it when the model changes."
    ),
)
EXPLAIN = (  # of `explain` alone
    Option(
        "targets",
        "Explain this many of the highest outputs, with files for each.",
        type=int,
        minimum=1,
    ),
    Option(
        "compare",
        "Other methods in addition to --method, such as lime,bayeslime or quadrature+adaptive (a "
        "method and its design): adds NAME-methods.csv and .png. Or other choices of an option, "
        "such as hide=0,blur or design=bernoulli, which cost as many model calls each: adds "
        "NAME-choices.csv, .json, .png and .html. May be repeated.",
        setting="methods",
        many=True,
    ),
    Option("max_seconds", "Seconds; no round of masks begins that would end later.", type=float),
    Option("timeout", "Seconds for one batch; a longer one fails.", type=float),
    OUT,
    replace(TOP, help="How many features to print and to mark."),
    JSON,
    OPEN,
)
PARTS = (  # of `batch` alone; a run stores them
    Option(
        "part_size", "Inputs per part. Default: 8 images, 64 of other inputs.", type=int, minimum=1
    ),
    Option(
        "keep",
        "Save all explanations, not only those of the first 100 rows, or 1000 other inputs.",
        type=bool,
        default=False,
    ),
)
AGAIN = (  # of `batch --resume`: what a manifest must not name alone
    Option("model", "With --resume: the run's model again.", short="-m"),
    *(
        Option(name, f"With --resume: the {name} of the run again.")
        for name in ("inputs", "labels", "background", "sources", "prompt")
    ),
)
CREW = (  # settings of `eblime.batch.Workers`
    Option(
        "engine",
        "Where to run: local (processes of this machine) or ray (a cluster).",
        default="local",
    ),
    Option(
        "workers",
        "Number of processes, or auto: as many as cores and memory allow.",
        default="auto",
        setting="count",
        parse=_parse_workers,
    ),
    Option("cpus_per_worker", "Cores per worker on Ray.", type=float, minimum=0, setting="cpus"),
    Option("gpus_per_worker", "GPUs per worker on Ray.", type=float, minimum=0, setting="gpus"),
    Option("timeout", "Seconds for one input; one that takes longer counts as failed.", type=float),
)
_ALL = (MODEL, *ASKING, *CACHE, *EXPLAIN, *PARTS, *CREW)
_RESERVED = ("argument", "imported_from", "inputs", "kind")  # entries of a manifest, or our own


def settings_of(options: Iterable[Option], values: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that options set, by the names of the settings; without those that are None."""
    return {
        option.setting or option.name: option.parse(value) if option.parse else value
        for option in options
        if (value := values.get(option.name)) is not None
    }


def cache_of(values: Mapping[str, Any]) -> AnswerCache | None:
    """The cache that `--cache` and `--model-id` describe; None without `--cache`."""
    from eblime.engine.cache import AnswerCache

    path, model_id = values["cache"], values["model_id"]
    if path is None and model_id is not None:
        raise ValueError("--model-id needs --cache.")
    return None if path is None else AnswerCache(path, model_id=model_id)


def parse_targets(target: str | None, targets: int | None) -> int | list[int | str]:
    """What to explain: this many of the highest outputs, or one by its name or number."""
    if target is not None and targets is not None:
        raise ValueError("--target and --targets cannot be used together; give one of them.")
    return [target] if target is not None else targets or 1


def known_names(kind: Any) -> str:
    """The registered names, those of other packages included: `a, b or c`."""
    *most, last = registry.names(kind)
    return f"{', '.join(most)} or {last}" if most else last


def error_line(error: BaseException, words: Sequence[str]) -> str:
    """An error's message on one line, with options in place of the names of parameters.

    `words` is the command line, which says whose options to name.
    """
    message = str(error)
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        message = f"{error.strerror}: {str(error.filename)!r}."  # without "[Errno 2]"
    names = {option.setting or option.name: option.flag for option in _ALL} | {"kind": "--kind"}
    if len(words) > 1 and words[0] in ("explain", "batch"):
        with suppress(Exception):  # no such domain, or one that cannot be loaded
            own = getattr(command_of(words[1])[1], "options", ())
            names |= {option.setting or option.name: option.flag for option in own}
    line = " ".join(message.split()) or type(error).__name__
    return re.sub(r"`(\w+)`", lambda found: names.get(found[1], found[0]), line)


def argument(name: str, help: str, *, type: Any = str, **settings: Any) -> Parameter:
    """An argument of a command, for `with_options`; a default may be among the settings."""
    default = settings.pop("default", Parameter.empty)
    kind = Annotated[type, typer.Argument(help=help, **settings)]
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def with_options(*given: Option | Parameter) -> Callable[[Callable[..., None]], Any]:
    """Give a function arguments and options; it is called with their values by name."""
    entries = [_parameter(one) if isinstance(one, Option) else one for one in given]

    def decorate(function: Callable[..., None]) -> Any:
        def command(**values: Any) -> None:
            function(**values)

        command.__name__ = getattr(function, "__name__", "command")
        command.__doc__ = function.__doc__
        command.__signature__ = Signature(entries)  # type: ignore[attr-defined]
        command.__annotations__ = {entry.name: entry.annotation for entry in entries}
        return command

    return decorate


def _parameter(option: Option) -> Parameter:
    """An option as a parameter of a command's function."""
    choices: Any = option.choices
    if option.names:
        choices = registry.names(option.names)  # type: ignore[arg-type]

    def complete(incomplete: str) -> list[str]:
        return [choice for choice in choices if choice.startswith(incomplete)]

    info = typer.Option(
        *filter(None, (option.flag, option.short)),
        help=f"{option.help}: {known_names(option.names)}." if option.names else option.help,
        min=option.minimum,
        max=option.maximum,
        autocompletion=complete if choices else None,
    )
    kind: Any = list[option.type] if option.many else option.type  # type: ignore[name-defined]
    if option.default is None and not option.required:
        kind = kind | None
    default = Parameter.empty if option.required else option.default
    annotation = Annotated[kind, info]
    return Parameter(option.name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def command_of(name: str) -> tuple[Domain, Command | None]:
    """A registered domain and its `Command` record."""
    domain = registry.find("domains", name)
    return domain, registry.of_domain(domain, "command")


def own_values(command: Command, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a domain's own options, checked; defaults of those that `batch` lacks."""
    found = {}
    for option in command.options:
        value = values.get(option.name, option.default)
        if option.choices and value is not None:
            for entry in value if option.many else [value]:
                check_choice(option.flag, entry, option.choices)
        found[option.name] = list(value or []) if option.many else value
    return found


def domain_group(build: Callable[[Domain, Command], Any]) -> type[TyperGroup]:
    """A group with one command for each registered domain, which `build` makes."""

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


def domain_command(
    domain: Domain,
    command: Command,
    run: Callable[..., None],
    help: str,
    inputs: Parameter,
    shared: Sequence[Option],
) -> Any:
    """A command that calls `run` with the values of `inputs` and of all options, by name.

    `shared` are the options of all domains besides `--model`.
    """
    taken = {*_RESERVED, *(option.name for option in (MODEL, *shared))}
    for option in command.options:
        if option.name in taken or option.name.endswith("_sha256"):
            raise ValueError(
                f"The domain {domain.name!r} declares the option {option.flag}, which already "
                "exists or is reserved."
            )
        taken.add(option.name)
    usual = {
        name: value
        for name, value in (("design", domain.design), ("kernel", domain.kernel))
        if isinstance(value, str)
    } | dict(command.defaults)
    rest = [replace(one, default=usual.get(one.name, one.default)) for one in shared]
    return _built(domain.name, with_options(inputs, MODEL, *command.options, *rest)(run), help)


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
