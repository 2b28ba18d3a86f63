"""The options of `eblime explain NAME` and `eblime batch NAME`, and these commands themselves.

A command has the options that all domains share, declared here, and those that its `Command`
record lists. It is built when it is called or listed, so that a package that cannot be imported
harms only its own command.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
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
    "Build",
    "Cache",
    "Cpus",
    "Engine",
    "Gpus",
    "Json",
    "MaxFailures",
    "ModelId",
    "Open",
    "Prob",
    "Timeout",
    "Trust",
    "Workers",
    "batch_parameters",
    "cache_of",
    "command_of",
    "complete_from",
    "domain_group",
    "explain_parameters",
    "in_options",
    "known_names",
    "make_command",
    "option_values",
    "parse_targets",
]


def _seconds(value: float | None) -> float | None:
    """A time limit, checked."""
    if value is not None and not 0 < value < float("inf"):
        raise ValueError(f"--timeout must be a number of seconds > 0; got {value:g}.")
    return value


Model = Annotated[
    str,
    typer.Option(
        "--model",
        "-m",
        help="An .onnx or .skops file, a .pkl or .joblib file with --trust-pickle, or module:name.",
    ),
]
Trust = Annotated[bool, typer.Option(help="Read pickle and joblib models, which can run any code.")]
Labels = Annotated[
    Path | None, typer.Option(help="Names of the outputs: one per line, or JSON.", exists=True)
]
Target = Annotated[
    str | None,
    typer.Option(help="Output to explain, by name, else by number from 0. Default: the highest."),
]
Targets = Annotated[
    int | None,
    typer.Option(help="Explain this many of the highest outputs, with files for each.", min=1),
]
Compare = Annotated[
    str | None,
    typer.Option(
        help="Other methods in addition to --method, such as lime,bayeslime or "
        "quadrature+adaptive (a method and its design); adds NAME-methods.csv and .png."
    ),
]
Index = Annotated[
    str | None,
    typer.Option(
        help="With --method quadrature, what the importances are: lime (the linear fit), banzhaf "
        "or shapley values. --design adaptive needs fewer masks for the same precision.",
    ),
]
Masks = Annotated[int, typer.Option(help="How many masks to ask the model about.", min=1)]
Until = Annotated[
    str | None,
    typer.Option(
        help="Ask in rounds until this is known with 95 % probability: top5 (which features are "
        "the 5 most important), ranking3 (and their order), sign5 (their signs), width0.05 (all "
        "importances, within such an interval), width10% (of the largest one) or lars3 (the test "
        "of S-LIME). Join with & or |; top5@0.99 asks for 99 %. Replaces --masks.",
    ),
]
MaxMasks = Annotated[
    int | None,
    typer.Option(help="With --until: the most masks to ask about. Default: 5000.", min=1),
]
MaxSeconds = Annotated[
    float | None,
    typer.Option(help="Seconds after which no further round of masks begins.", min=0),
]
Seed = Annotated[int, typer.Option(min=0, help="The same seed gives the same result.")]
Prob = Annotated[float, typer.Option(help="Probability of the intervals, between 0 and 1.")]
Cache = Annotated[
    Path | None, typer.Option(help="File that stores the model's answers; none is asked twice.")
]
ModelId = Annotated[
    str | None,
    typer.Option(
        help="With --cache: name and version of the model; change it when the model changes."
    ),
]
Retry = Annotated[int | None, typer.Option(help="How often to repeat a failed model call.", min=0)]
Concurrency = Annotated[
    int | None, typer.Option(help="How many model calls to make at once.", min=1)
]
# of `eblime explain`
CallTimeout = Annotated[
    float | None,
    typer.Option(callback=_seconds, help="Seconds for one model call; a longer one fails."),
]
Out = Annotated[Path, typer.Option("--out", "-o", help="Folder for the results.")]
Top = Annotated[int, typer.Option(help="How many features to print and to mark.", min=1)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Open = Annotated[bool, typer.Option("--open", help="Open the page in a browser.")]
# of `eblime batch`
RunFolder = Annotated[str, typer.Option("--out", "-o", help="Folder of the run.")]
PartSize = Annotated[
    int | None,
    typer.Option(help="Inputs per part. Default: 8 images, 64 of other inputs.", min=1),
]
Keep = Annotated[
    bool,
    typer.Option("--keep", help="Save all explanations, not the first 100."),
]
Engine = Annotated[
    str, typer.Option(help="Where to run: local (processes of this machine) or ray (a cluster).")
]
Workers = Annotated[
    str, typer.Option(help="Number of processes, or auto: as many as cores and memory allow.")
]
Cpus = Annotated[float | None, typer.Option(help="Cores per worker on Ray.", min=0)]
Gpus = Annotated[float | None, typer.Option(help="GPUs per worker on Ray.", min=0)]
MaxFailures = Annotated[
    int | None, typer.Option(help="Stop when more inputs than this have failed.", min=0)
]
Timeout = Annotated[
    float | None,
    typer.Option(
        callback=_seconds, help="Seconds for one input; one that takes longer counts as failed."
    ),
]


def explain_parameters(domain: Domain, command: Command) -> list[Parameter]:
    """The shared options of `eblime explain`."""
    return [
        *_shared(domain, command),
        _parameter("targets", Targets, None),
        _parameter("compare", Compare, None),
        _parameter("max_seconds", MaxSeconds, None),
        _parameter("timeout", CallTimeout, None),
        _parameter("out", Out, Path("eblime-out")),
        _parameter("top", Top, command.defaults.get("top", 10)),
        _parameter("json", Json, False),
        _parameter("open", Open, False),
        _parameter("trust_pickle", Trust, False),
    ]


def batch_parameters(domain: Domain, command: Command) -> list[Parameter]:
    """The shared options of `eblime batch`."""
    return [
        _parameter("out", RunFolder),
        *_shared(domain, command),
        _parameter("part_size", PartSize, None),
        _parameter("keep", Keep, False),
        _parameter("engine", Engine, "local"),
        _parameter("workers", Workers, "auto"),
        _parameter("cpus_per_worker", Cpus, None),
        _parameter("gpus_per_worker", Gpus, None),
        _parameter("max_failures", MaxFailures, None),
        _parameter("timeout", Timeout, None),
        _parameter("trust_pickle", Trust, False),
    ]


def _shared(domain: Domain, command: Command) -> list[Parameter]:
    """What both commands need to know: the model, the output and how to ask."""
    usual = {
        "method": "eblime",
        "masks": 1000,
        "design": domain.design if isinstance(domain.design, str) else None,
        "kernel": domain.kernel if isinstance(domain.kernel, str) else None,
        **command.defaults,
    }
    return [
        _parameter("model", Model),
        _parameter("labels", Labels, None),
        _parameter("target", Target, None),
        _parameter("method", _named("methods", "How to infer importances"), usual["method"]),
        _parameter("index", Index, None),
        _parameter("masks", Masks, usual["masks"]),
        _parameter("until", Until, None),
        _parameter("max_masks", MaxMasks, None),
        _parameter("design", _named("designs", "Which masks to ask about"), usual["design"]),
        _parameter(
            "kernel",
            _named("kernels", "How much a mask counts (by default euclidean; for texts cosine)"),
            usual["kernel"],
        ),
        _parameter("seed", Seed, 0),
        _parameter("prob", Prob, 0.95),
        _parameter("cache", Cache, None),
        _parameter("model_id", ModelId, None),
        _parameter("retry", Retry, None),
        _parameter("concurrency", Concurrency, None),
    ]


def cache_of(values: Mapping[str, Any]) -> AnswerCache | None:
    """The cache that `--cache` and `--model-id` describe; None without `--cache`."""
    from eblime.engine.cache import AnswerCache

    path, model_id = values["cache"], values["model_id"]
    if path is None:
        if model_id is not None:
            raise ValueError("--model-id needs --cache.")
        return None
    return AnswerCache(path, model_id=model_id)


def known_names(kind: registry.Kind) -> str:
    """The registered names, those of other packages included: `a, b or c`."""
    *most, last = registry.names(kind)
    return f"{', '.join(most)} or {last}" if most else last


def complete_from(kind: registry.Kind) -> Callable[[str], list[str]]:
    """Shell completion with the registered names."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in registry.names(kind) if name.startswith(incomplete)]

    return complete


def parse_targets(target: str | None, targets: int | None) -> int | list[int | str]:
    """What to explain: this many of the highest outputs, or one by its name or number."""
    if target is not None and targets is not None:
        raise ValueError("--target and --targets cannot be used together; give one of them.")
    return [target] if target is not None else targets or 1


def _parameter(name: str, annotation: Any, default: Any = Parameter.empty) -> Parameter:
    """A parameter of a command's function; without a default the option must be given."""
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _named(kind: registry.Kind, what: str) -> Any:
    """An option that takes a registered name."""
    option = typer.Option(help=f"{what}: {known_names(kind)}.", autocompletion=complete_from(kind))
    return Annotated[str | None, option]


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
