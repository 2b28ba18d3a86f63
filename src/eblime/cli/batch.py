"""`eblime batch` and `eblime report`: explain many inputs into a folder, and summarise it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from inspect import Parameter
from pathlib import Path
from typing import Any

import typer

from eblime._checks import check_level
from eblime.cli.options import (
    AGAIN,
    ASKING,
    CACHE,
    CREW,
    MAX_FAILURES,
    OPEN,
    PARTS,
    TRUST,
    argument,
    cache_of,
    domain_command,
    domain_group,
    known_names,
    settings_of,
    with_options,
)
from eblime.cli.output import say, show_page
from eblime.domains.record import Command, Domain, Option

__all__ = ["batch_app", "report"]

_OUT = Option("out", "Folder of the run.", short="-o", required=True)
_EXECUTION = (*CREW, MAX_FAILURES)  # these change no result


def _build(domain: Domain, command: Command) -> Any:
    """The command `eblime batch NAME`."""
    summary = command.batch_help or f"Explain many inputs of the kind {domain.name}."
    explained = command.example.replace("eblime explain", "eblime batch", 1)
    return domain_command(
        domain,
        replace(command, options=[option for option in command.options if option.batch]),
        partial(_start, domain, command),
        help=f"{summary}\n\n"
        "Exit code 3: some inputs failed, the others are explained.\n\n"
        f"Example: {command.batch_example or f'{explained} --out run/'}",
        inputs=argument("argument", command.batch_argument or command.argument, metavar="INPUTS"),
        shared=(_OUT, *ASKING, *CACHE, *PARTS, *_EXECUTION, TRUST),
    )


def _start(domain: Domain, command: Command, /, **values: Any) -> None:
    """Start a run. The user typed every name in it, so all of them may be imported."""
    from eblime.cli.recipe import Recipe

    check_level("prob", values["prob"])
    recipe = Recipe.start(domain, command, values, cache=cache_of(values))
    recipe.run(values["out"], **_execution(values))


batch_app = typer.Typer(
    cls=domain_group(_build),
    invoke_without_command=True,
    no_args_is_help=True,
    rich_markup_mode=None,
)


@batch_app.callback()
@with_options(
    Parameter("context", Parameter.KEYWORD_ONLY, annotation=typer.Context),
    Option("resume", "Resume this run with its own settings."),
    *AGAIN,
    Option(
        "trust_run",
        "With --resume: use all files and addresses that the run names; its model can run code.",
        type=bool,
        default=False,
    ),
    *_EXECUTION,
    *CACHE,
    Option("retry", "With --resume: try failed inputs again.", type=bool, default=False),
    TRUST,
)
def batch(context: typer.Context, **values: Any) -> None:
    """Explain many inputs; an interrupted run can be resumed.

    A run folder may come from someone else, so --resume uses the files and addresses in it only if
    you name them again or trust the folder. Its message has the command to copy.

    Exit code 0: every input is explained; 3: some inputs failed, the others are explained; 2: an
    error stopped the run; 130: interrupted.

    Example: eblime batch image photos/ --model net.onnx --out run/

    Example: eblime batch --resume run/ --trust-run

    Example: eblime batch --resume run/ --model mood:score --inputs reviews.jsonl
    """
    if (name := context.invoked_subcommand) is not None:
        for early in values:  # between `batch` and the name, where they would be ignored
            if getattr(context.get_parameter_source(early), "name", "") == "COMMANDLINE":
                raise ValueError(f"--{early.replace('_', '-')} must come after {name}.")
        return
    folder = values["resume"]
    if folder is None:
        raise ValueError(f"eblime batch needs {known_names('domains')}, or --resume RUN.")
    from eblime.cli.recipe import Recipe

    trust = {name: values[name] for name in ("trust_run", "trust_pickle")}
    again = {option.name: values[option.name] for option in AGAIN}
    recipe = Recipe.resume(folder, again=again, **trust, cache=cache_of(values))
    recipe.run(folder, **_execution(values), retry=values["retry"])


def _execution(values: dict[str, Any]) -> dict[str, Any]:
    """The settings of `explain_many` that change no result."""
    from eblime.batch.workers import Workers

    workers = Workers(**settings_of(CREW, values))
    workers.check()
    return {"workers": workers, "max_failures": values["max_failures"]}


@with_options(
    argument("run", "Folder of the run."),
    Option("html", "File of the page. Default: report.html in the run.", type=Path),
    Option(
        "pages",
        "How many of the listed explanations that the run has saved get a page. Default: all; of "
        "more than 1000 rows or texts none.",
        type=int,
        minimum=0,
    ),
    OPEN,
)
def report(run: str, html: Path | None, pages: int | None, open: bool) -> None:
    """Make a page about a run, as `eblime batch` does at its end.

    The page has the importances over all inputs, a list of the inputs with links to their pages,
    and the failures.

    Example: eblime report run/ --open
    """
    from eblime.batch.overview import overview
    from eblime.batch.results import open_run

    opened = open_run(run)
    page = html or opened.location / "report.html"
    overview(opened, str(page), pages=pages, progress=None)
    say(f"Wrote {page}.")
    if open:
        show_page(page)
