"""`eblime batch` and `eblime report`: explain many inputs into a folder, and summarise it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from eblime._checks import check_level
from eblime.cli.options import (
    Cache,
    Cpus,
    Engine,
    Gpus,
    MaxFailures,
    ModelId,
    Open,
    Timeout,
    Trust,
    Workers,
    batch_parameters,
    cache_of,
    domain_group,
    known_names,
    make_command,
    option_values,
)
from eblime.cli.output import say, show_page
from eblime.domains.record import Command, Domain

__all__ = ["batch_app", "report"]

_RESULTS = (  # shared options that decide the results; the manifest stores them
    *("model", "labels", "target", "method", "index", "masks", "design", "kernel", "seed", "prob"),
    *("part_size", "keep", "until", "max_masks", "retry", "concurrency"),
)


def _build(domain: Domain, command: Command) -> Any:
    """The command `eblime batch NAME`."""
    from eblime.cli.recipe import batch_options

    summary = command.batch_help or f"Explain many inputs of the kind {domain.name}."
    explained = command.example.replace("eblime explain", "eblime batch", 1)
    return make_command(
        domain.name,
        partial(_start, domain, command),
        help=f"{summary}\n\n"
        "Exit code 3: some inputs failed, the others are explained.\n\n"
        f"Example: {command.batch_example or f'{explained} --out run/'}",
        argument=Annotated[
            str,
            typer.Argument(help=command.batch_argument or command.argument, metavar="INPUTS"),
        ],
        own=batch_options(command),
        shared=batch_parameters(domain, command),
    )


def _start(domain: Domain, command: Command, values: dict[str, Any]) -> None:
    """Start a run. The user typed every name in it, so all of them may be imported."""
    from eblime.cli.recipe import Recipe, batch_options, begin, run_recipe

    check_level("prob", values["prob"])
    options = option_values(batch_options(command), values)
    shared = {name: values[name] for name in _RESULTS}
    settings = begin(domain, values["argument"], shared, options)
    recipe = Recipe(
        settings=settings,
        trust_pickle=values["trust_pickle"],
        import_from=settings["imported_from"],
        cache=cache_of(values),
    )
    run_recipe(recipe, values["out"], _execution(values))


batch_app = typer.Typer(
    cls=domain_group(_build),
    invoke_without_command=True,
    no_args_is_help=True,
    rich_markup_mode=None,
)


@batch_app.callback()
def batch(
    context: typer.Context,
    resume: Annotated[
        str | None, typer.Option(help="Resume this run with its own settings.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model", "-m", help="With --resume: the run's model again, if it is code or a pickle."
        ),
    ] = None,
    trust_run: Annotated[
        bool,
        typer.Option(
            "--trust-run",
            help="With --resume: load any model that the run names; it can run any code.",
        ),
    ] = False,
    engine: Engine = "local",
    workers: Workers = "auto",
    cpus_per_worker: Cpus = None,
    gpus_per_worker: Gpus = None,
    max_failures: MaxFailures = None,
    timeout: Timeout = None,
    cache: Cache = None,
    model_id: ModelId = None,
    retry: Annotated[
        bool, typer.Option("--retry", help="With --resume: try failed inputs again.")
    ] = False,
    trust_pickle: Trust = False,
) -> None:
    """Explain many inputs; an interrupted run can be resumed.

    Exit code 0: every input is explained; 3: some inputs failed, the others are explained; 2: an
    error stopped the run; 130: interrupted.

    Example: eblime batch image photos/ --model net.onnx --out run/

    Example: eblime batch --resume run/

    Example: eblime batch --resume run/ --model mood:score
    """
    if context.invoked_subcommand is not None:
        _refuse_early_options(context)
        return
    if resume is None:
        raise ValueError(f"eblime batch needs {known_names('domains')}, or --resume RUN.")
    from eblime.cli.recipe import resumed_recipe, run_recipe

    recipe = resumed_recipe(resume, model=model, trust_run=trust_run, trust_pickle=trust_pickle)
    recipe = replace(recipe, cache=cache_of(context.params))
    run_recipe(recipe, resume, {**_execution(context.params), "retry": retry})


def report(
    run: Annotated[str, typer.Argument(help="Folder of the run.")],
    html: Annotated[
        Path | None, typer.Option(help="File of the page. Default: report.html in the run.")
    ] = None,
    pages: Annotated[
        int,
        typer.Option(help="How many of the saved explanations get a page.", min=0),
    ] = 60,
    open_it: Open = False,
) -> None:
    """Make a page about a run of `eblime batch`.

    The page has the importances over all inputs, the worst fits, the failures, and links to pages
    of single inputs.

    Example: eblime report run/ --open
    """
    from eblime.batch.overview import overview
    from eblime.batch.results import open_run

    opened = open_run(run)
    page = html or opened.location / "report.html"
    overview(opened, str(page), pages=pages, progress=None)
    say(f"Wrote {page}.")
    if open_it:
        show_page(page)


def _execution(values: dict[str, Any]) -> dict[str, Any]:
    """The settings of `explain_many` that change no result."""
    from eblime.batch.workers import Workers as Crew

    workers = values["workers"]
    if workers != "auto" and not (workers.isascii() and workers.isdigit() and int(workers) > 0):
        raise ValueError(f"--workers must be a number from 1, or auto; got {workers!r}.")
    if values["engine"] == "local" and (values["cpus_per_worker"], values["gpus_per_worker"]) != (
        None,
        None,
    ):
        raise ValueError("--cpus-per-worker and --gpus-per-worker are for --engine ray.")
    crew = Crew(
        workers if workers == "auto" else int(workers),
        timeout=values["timeout"],
        engine=values["engine"],
        cpus=values["cpus_per_worker"],
        gpus=values["gpus_per_worker"],
    )
    return {"workers": crew, "max_failures": values["max_failures"]}


def _refuse_early_options(context: typer.Context) -> None:
    """Refuse options between `batch` and the name of the domain, which would be ignored."""
    for name in context.params:
        if getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE":
            option = f"--{name.replace('_', '-')}"
            raise ValueError(f"{option} must come after {context.invoked_subcommand}.")
