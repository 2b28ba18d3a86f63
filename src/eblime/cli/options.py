"""The options of all commands in one table, and what click makes of them.

Every option is an `Option` record. `eblime explain NAME` and `eblime batch NAME` have the options
declared here and those that the domain's `Command` record lists. Such a command is made when it is
called or listed, so that a package that cannot be imported harms only its own command.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from eblime import registry
from eblime._text import one_of
from eblime.domains.record import Command, Domain, Option, Use

if TYPE_CHECKING:
    from eblime.engine.cache import AnswerCache

Values = Mapping[str, Any]  # of the options, by name
_SECTIONS = {  # of `--help`, by what uses an option
    "inputs": "Input",
    "model": "Model",
    "explainer": "Question",
    "result": "Result",
    "run": "Run",
}


def used_by(what: Use, *options: Option) -> tuple[Option, ...]:
    """Options of one section of `--help`."""
    return tuple(replace(option, used_by=what) for option in options)


def _parse_count(text: str) -> int | str:
    return int(text) if text.isdecimal() else text


MODEL, LABELS, RETRY, CONCURRENCY, TIMEOUT, CACHE, MODEL_ID, TRUST = used_by(
    "model",
    Option(
        "model",
        "An .onnx, .skops, .pkl or .joblib file, module:name, or the address of a server.",
        short="-m",
        required=True,
    ),
    Option("labels", "Names of the outputs: one per line, or JSON.", type=Path),
    Option("retry", "How often to send a failed batch to the model again.", type=int, minimum=0),
    Option("concurrency", "How many batches may be under way at once.", type=int),
    Option("timeout", "Seconds for one batch; a longer one fails.", type=float),
    Option("cache", "File that stores the model's answers; none is asked twice.", type=Path),
    Option("model_id", "With --cache: name and version of the model; change both together."),
    Option("trust_pickle", "Read pickle and joblib models, which can run any code.", type=bool),
)
PROB, OUT, TOP, JSON, OPEN, KEEP = used_by(
    "result",
    Option("prob", "Probability of the intervals, between 0 and 1.", type=float, default=0.95),
    Option("out", "Folder for the results.", short="-o", type=Path, default=Path("eblime-out")),
    Option("top", "How many features to print and to mark.", type=int, default=10, minimum=1),
    Option("json", "Print JSON instead of a table.", type=bool),
    Option("open", "Open the page in a browser.", type=bool),
    Option("keep", "Save all explanations, not only 100 of rows or 1000 of others.", type=bool),
)
PART_SIZE, MAX_FAILURES, *WORKERS = used_by(  # the last are settings of `eblime.batch.Workers`
    "run",
    Option("part_size", "Inputs per part. Default: 8 images, 64 of other inputs.", type=int),
    Option("max_failures", "Stop when more inputs than this have failed.", type=int),
    Option("engine", "local (processes of this machine) or ray (a cluster).", default="local"),
    Option("workers", "Processes, or auto.", default="auto", setting="count", parse=_parse_count),
    Option("cpus_per_worker", "Cores per worker on Ray.", type=float, minimum=0, setting="cpus"),
    Option("gpus_per_worker", "GPUs per worker on Ray.", type=float, minimum=0, setting="gpus"),
    Option("timeout", "Seconds for one input; one that takes longer counts as failed.", type=float),
)
ASKING = (  # of `explain` and `batch`; a run stores them
    LABELS,
    RETRY,
    CONCURRENCY,
    Option(
        "target",
        "Output to explain, by name, else by number from 0. Default: the highest; of batch the "
        "second of two, and of more classes give one, or predicted.",
    ),
    Option("method", "How to infer importances", names="methods", default="eblime"),
    Option("index", "With --method quadrature: lime (the linear fit), banzhaf or shapley values."),
    Option(
        "masks",
        "How many masks to ask about. Default: all of up to 10 features, else 1,024.",
        type=int,
        setting="n_masks",
    ),
    Option(
        "until",
        "Ask in rounds until this is known: top5 (which features are the 5 most important), "
        "ranking3 (and their order), sign5 (their signs), width0.05 (all importances, within such "
        "an interval), width10% (of the largest one) or lars3 (the test of S-LIME). Join with & or "
        "|; top5@0.99 asks for 99 %, and top5~0.02 accepts differences of less than 0.02.",
    ),
    Option("max_masks", "With --until: the most masks. Default: 5000.", type=int),
    Option("design", "Which masks to ask about: orthogonal by default, or", names="designs"),
    Option("kernel", "How much a mask counts (by default euclidean)", names="kernels"),
    Option("seed", "The same seed gives the same result.", type=int, default=0, minimum=0),
    PROB,
)
EXPLAIN = (  # of `explain` alone
    TIMEOUT,
    Option("targets", "Explain this many of the highest outputs.", type=int),
    Option(
        "compare",
        "Other methods, such as lime,quadrature+adaptive (a method and its design): adds "
        "NAME-methods.csv, .json, .png and .html. Or other choices of an option, such as "
        "hide=0,blur, which cost as many model calls each: adds NAME-choices.csv and so on.",
        setting="methods",
        many=True,
    ),
    Option("max_seconds", "Seconds; no round of masks begins that would end later.", type=float),
    OUT,
    TOP,
    JSON,
    OPEN,
)
ANSWERS = (CACHE, MODEL_ID, TRUST)  # of `explain` and `batch`; they change no result
PARTS = (KEEP, PART_SIZE)  # of `batch` alone; a run stores them
_ALL = (MODEL, *ASKING, *ANSWERS, *EXPLAIN, *PARTS, *WORKERS, MAX_FAILURES)


class OptionCommand(click.Command):
    """A command with the parameters of `Option` records, which `--help` lists by section.

    It calls `run` with the values of its arguments and options, by name.
    """

    def __init__(
        self,
        name: str,
        run: Callable[..., object],
        arguments: Mapping[str, str],
        options: Iterable[Option],
        *,
        help: str | None = None,
        metavar: str | None = None,
    ) -> None:
        self._arguments = arguments
        self._sections = {one.name: _SECTIONS[one.used_by] for one in options}
        given: list[click.Parameter] = [click.Argument([a], metavar=metavar) for a in arguments]
        params = [*given, *map(option_of, options)]
        super().__init__(name, params=params, callback=run, help=help or run.__doc__)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """A list for each section."""
        rows: dict[str, list[tuple[str, str]]] = {title: [] for title in _SECTIONS.values()}
        for entry in self.get_params(ctx):
            if entry.name in self._arguments:
                row = entry.human_readable_name, self._arguments[entry.name]
                rows["Input"].append(row)
            elif record := entry.get_help_record(ctx):
                rows.setdefault(self._sections.get(entry.name or "", "Other"), []).append(record)
        for title, listed in rows.items():
            if listed:
                with formatter.section(title):
                    formatter.write_dl(listed)


class LazyGroup(click.Group):
    """Its commands are made when they are called or listed; one that cannot be made says why."""

    def __init__(
        self,
        name: str,
        names: Callable[[], Iterable[str]],
        make: Callable[[str], click.Command | None],
        **settings: Any,
    ) -> None:
        super().__init__(name, no_args_is_help=True, **settings)
        self._names, self._make = names, make

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of their use."""
        return list(self._names())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A command by its name."""
        try:
            return self._make(cmd_name) if cmd_name in self._names() else None
        except Exception as error:
            reason = f"The command {cmd_name!r} cannot be loaded: {error}"

        def fail() -> None:
            raise ImportError(reason)

        context = {"allow_extra_args": True, "ignore_unknown_options": True}
        return click.Command(cmd_name, context_settings=context, callback=fail, help=reason)


def domain_group(
    verb: str, run: Callable[..., object], shared: Sequence[Option], note: str, **settings: Any
) -> LazyGroup:
    """The commands `eblime explain NAME` or `eblime batch NAME`, one for each registered domain.

    They call `run` with the domain, its `Command` record and the values by name.
    """
    batch = verb == "batch"

    def made(name: str) -> click.Command | None:
        domain = registry.find("domains", name)
        command = registry.of_domain(domain, "command")
        if command is None:
            return None
        kernel = domain.kernel if isinstance(domain.kernel, str) else None
        usual = {"kernel": kernel, **command.defaults}
        rest = [replace(one, default=usual.get(one.name, one.default)) for one in shared]
        options = [MODEL, *command.options, *rest]
        summary = command.help or f"Explain inputs of the kind {name}, by {domain.feature}s."
        example = command.example.replace("eblime explain", f"eblime {verb}", 1)
        end = " --out run/" if batch else ""
        return OptionCommand(
            name,
            partial(run, domain, command),
            {"argument": (batch and command.batch_argument) or command.argument},
            [one for one in options if one.batch or not batch],
            metavar=command.metavar,
            help=f"{cleandoc(summary)}\n\n{note}\n\nExample: {example}{end}",
        )

    return LazyGroup(verb, lambda: registry.names("domains"), made, **settings)


def option_of(option: Option) -> click.Option:
    """An option as click takes it; `names` of the registry are listed and completed."""
    kind: Any = option.type  # not click.Path, which looks at the file: a manifest may name any
    names = registry.names(option.names) if option.names else ()
    if option.choices:
        kind = click.Choice(option.choices)
    elif option.minimum is not None:
        low = option.minimum
        kind = click.IntRange(int(low)) if kind is int else click.FloatRange(low)

    def complete(ctx: object, param: object, incomplete: str) -> list[CompletionItem]:
        if kind is Path:
            return [CompletionItem(incomplete, type="file")]
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]

    return click.Option(
        [option.name, option.flag, *filter(None, [option.short])],
        type=kind,
        help=f"{option.help}: {one_of(names)}." if names else option.help,
        required=option.required,
        multiple=option.many,
        is_flag=kind is bool,
        show_default=option.default not in (None, ""),
        shell_complete=None if option.choices else complete,
        **({} if option.default is None else {"default": option.default}),
    )


def settings_of(options: Iterable[Option], values: Values) -> dict[str, Any]:
    """The settings that options set, by the names of the settings; without those that are None."""
    return {
        option.setting or option.name: option.parse(value) if option.parse else value
        for option in options
        if (value := values.get(option.name)) is not None
    }


def cache_of(values: Values) -> AnswerCache | None:
    """The cache that `--cache` and `--model-id` describe; None without `--cache`."""
    from eblime.engine.cache import AnswerCache

    path, model_id = values["cache"], values["model_id"]
    if path is None and model_id is not None:
        raise ValueError("--model-id needs --cache.")
    return None if path is None else AnswerCache(path, model_id=model_id)


def error_line(error: BaseException, words: Sequence[str]) -> str:
    """An error's message on one line, with options in place of the names of parameters.

    `words` is the command line, which says whose options to name.
    """
    message = str(error)
    if isinstance(error, click.UsageError):
        path = error.ctx.command_path if error.ctx else "eblime"
        message = f"{error.format_message().rstrip('.')}. See {path} --help."
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        message = f"{error.strerror}: {str(error.filename)!r}."  # without "[Errno 2]"
    options = [*_ALL, Option("kind", "")]
    with suppress(Exception):  # another command, or a domain that cannot be loaded
        options += command_of(words[1])[1].options
    names = {name: one.flag for one in options for name in (one.name, one.setting)}
    names |= {"targets": "--target"} if words[:1] == ["batch"] else {}
    line = " ".join(message.split()) or type(error).__name__
    if "categorical" in names and re.search("dtypes|categorical_feature", line):
        line += " CSV files do not store categories: name their columns with --categorical."
    return re.sub(r"`(\w+)`", lambda found: names.get(found[1], found[0]), line)


def command_of(name: str) -> tuple[Domain, Command]:
    """A registered domain and its `Command` record."""
    domain = registry.find("domains", name)
    command = registry.of_domain(domain, "command")
    if command is None:
        raise ValueError(f"The command line does not know the domain {name!r}.")
    return domain, command


def own_values(command: Command, values: Values) -> dict[str, Any]:
    """The values of a domain's own options; the defaults of those that `batch` lacks."""
    found = {one.name: values.get(one.name, one.default) for one in command.options}
    return found | {one.name: list(found[one.name] or []) for one in command.options if one.many}
