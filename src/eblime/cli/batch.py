"""`eblime batch` and `eblime report`: explain many inputs into a folder, and summarise it."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import click

from eblime._checks import check_level
from eblime.batch.location import Location
from eblime.cli.options import (
    ANSWERS,
    ASKING,
    MAX_FAILURES,
    OPEN,
    PARTS,
    WORKERS,
    OptionCommand,
    cache_of,
    domain_group,
    known_names,
    option_of,
    settings_of,
)
from eblime.cli.output import say, show_page
from eblime.cli.recipe import AGAIN, Recipe
from eblime.domains.record import Command, Domain, Option

_SOME_FAILED, _INTERRUPTED = 3, 130  # exit codes
_OUT = Option("out", "Folder of the run.", short="-o", required=True, used_by="result")
_EXECUTION = (*WORKERS, MAX_FAILURES)  # these change no result


def _start(domain: Domain, command: Command, /, **values: Any) -> None:
    """Start a run. The user typed every name in it, so all of them may be imported."""
    check_level("prob", values["prob"])
    _run(Recipe.start(domain, values, cache_of(values)), values["out"], values)


def _batch(**values: Any) -> None:
    """Explain many inputs; an interrupted run can be resumed.

    A run folder may come from someone else, so --resume uses the files and addresses in it only if
    you name them again or trust the folder. Its message has the command to copy.

    Exit code 0: every input is explained; 3: some inputs failed, the others are explained; 2: an
    error stopped the run; 130: interrupted.

    Example: eblime batch image photos/ --model net.onnx --out run/

    Example: eblime batch --resume run/ --trust-run

    Example: eblime batch --resume run/ --model mood:score --inputs reviews.jsonl
    """
    context, folder = click.get_current_context(), values["resume"]
    if (name := context.invoked_subcommand) is not None:
        for early in values:  # between `batch` and the name, where they would be ignored
            if getattr(context.get_parameter_source(early), "name", "") == "COMMANDLINE":
                raise ValueError(f"--{early.replace('_', '-')} must come after {name}.")
        return
    if folder is None:
        raise ValueError(f"eblime batch needs {known_names('domains')}, or --resume RUN.")
    recipe = Recipe.resume(folder, values, cache_of(values))
    _run(recipe, folder, values, retry=values["retry"])


BATCH = domain_group(
    "batch",
    _start,
    [_OUT, *ASKING, *ANSWERS, *PARTS, *_EXECUTION],
    "Exit code 3: some inputs failed, the others are explained.",
    callback=_batch,
    help=_batch.__doc__,
    invoke_without_command=True,
    params=[
        option_of(option)
        for option in (
            Option("resume", "Resume this run with its own settings."),
            *AGAIN,
            Option(
                "trust_run",
                "With --resume: use all that the run names; its model can run code.",
                type=bool,
            ),
            *_EXECUTION,
            *ANSWERS,
            Option("retry", "With --resume: try failed inputs again.", type=bool),
        )
    ],
)


def _run(recipe: Recipe, folder: str, values: dict[str, Any], **again: Any) -> None:
    """Start or resume a run, and print a summary; failed inputs give their own exit code."""
    from eblime.batch.overview import overview
    from eblime.batch.run import explain_many
    from eblime.batch.workers import Workers

    workers, about = Workers(**settings_of(WORKERS, values)), recipe.about
    workers.check()
    try:
        run = explain_many(
            recipe,
            recipe.inputs(),
            folder,
            targets=1 if about["target"] is None else [about["target"]],
            keep=about["keep"] or None,
            **{name: about[name] for name in ("seed", "part_size", "prob", "until", "max_masks")},
            workers=workers,
            max_failures=values["max_failures"],
            **again,
        )
    except KeyboardInterrupt:
        if (Location.of(folder) / "manifest.json").kind() == "file":
            resume = recipe.resume_command(folder)
            say(f"Interrupted. Finished parts are saved. Resume: {resume}")
            say(f"A page of what there is: {shlex.join(['eblime', 'report', folder])}")
        else:
            say("Interrupted before the run began. Repeat the command.")
        sys.exit(_INTERRUPTED)  # with a message of its own
    failures = run.failures()
    failed = len(failures)
    say(f"{about['inputs']}: {run.settings['count'] - failed} explained, {failed} failed.")
    if failed:
        say(f"Most frequent error: {failures['error'].mode()[0]}")
        say(f"All errors: {run.location / 'failures.csv'}")
        say(f"Try them again: {recipe.resume_command(folder, '--retry')}")
    say(f"The run is in {folder}.")
    page = run.location / "report.html"
    overview(run, page.address)
    say(f"Look at {page}.")
    if failed:
        sys.exit(_SOME_FAILED)


def _report(run: str, html: Path | None, pages: int | None, open: bool) -> None:
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


REPORT = OptionCommand(
    "report",
    _report,
    {"run": "Folder of the run."},
    [
        Option(
            "html",
            "File of the page. Default: report.html in the run.",
            type=Path,
            used_by="result",
        ),
        Option(
            "pages",
            "How many saved explanations get a page. Default: all; of more than 1000 rows none.",
            type=int,
            minimum=0,
            used_by="result",
        ),
        OPEN,
    ],
)
