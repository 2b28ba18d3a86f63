"""`eblime batch` and `eblime report`: a folder of inputs to a folder of results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from eblime._checks import check_choice, check_level
from eblime.cli.modelfile import NORMALISATIONS
from eblime.cli.options import (
    Activation,
    Bins,
    Categorical,
    Drop,
    Group,
    HideImage,
    Labels,
    Masks,
    MethodName,
    Model,
    Normalise,
    OutputName,
    Perturb,
    Prob,
    Representation,
    Seed,
    SegmentationName,
    Size,
    Target,
    Timeout,
    TokensName,
    Trust,
)
from eblime.cli.terminal import open_page, say

__all__ = ["batch_app", "report"]

batch_app = typer.Typer(
    invoke_without_command=True,
    no_args_is_help=True,
    rich_markup_mode=None,
)

Inputs = Annotated[str, typer.Argument(help="A folder or a file, here or such as s3://bucket/in.")]
Out = Annotated[str, typer.Option("--out", "-o", help="Folder of the run.")]
Engine = Annotated[str, typer.Option(help="local or ray.")]
Workers = Annotated[
    str, typer.Option(help="Processes, or auto: as many as cores and memory have room for.")
]
Cpus = Annotated[float | None, typer.Option(help="Cores that a worker claims on Ray.", min=0)]
Gpus = Annotated[float | None, typer.Option(help="GPUs that a worker claims on Ray.", min=0)]
PartSize = Annotated[
    int | None, typer.Option(help="Inputs in a part. Default: 8 photos, 64 rows or texts.", min=1)
]
Keep = Annotated[bool, typer.Option("--keep", help="Save whole explanations too.")]
MaxFailures = Annotated[
    int | None, typer.Option(help="Stop when more inputs than that have failed.", min=0)
]


@batch_app.callback()
def batch(
    context: typer.Context,
    resume: Annotated[
        str | None, typer.Option(help="Go on with this run; its own settings hold.")
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
    retry: Annotated[
        bool, typer.Option("--retry", help="With --resume: try what failed again.")
    ] = False,
    trust_pickle: Trust = False,
) -> None:
    """Explain many inputs into a folder that survives interruptions.

    Exit code 0: every input is explained; 3: some inputs failed, the others are explained; 2: an
    error stopped the run; 130: interrupted.

    Example: eblime batch image photos/ --model net.onnx --out run/

    Example: eblime batch --resume run/

    Example: eblime batch --resume run/ --model mood:score
    """
    if context.invoked_subcommand is not None:
        given = [name for name in context.params if _by_user(context, name)]
        if given:
            raise ValueError(
                f"--{given[0].replace('_', '-')} must come after {context.invoked_subcommand}."
            )
        return
    if resume is None:
        raise ValueError("eblime batch needs image, tabular or text, or --resume RUN.")
    from eblime.batch.folder import read_manifest
    from eblime.batch.location import Location
    from eblime.cli.resume import resumed_recipe, run_recipe

    recipe = resumed_recipe(
        read_manifest(Location.of(resume)),
        resume,
        model=model,
        trust_run=trust_run,
        trust_pickle=trust_pickle,
    )
    ways = _ways(engine, workers, cpus_per_worker, gpus_per_worker, max_failures)
    run_recipe(recipe, resume, ways | {"timeout": timeout, "retry": retry})


@batch_app.command("image")
def batch_image(
    inputs: Inputs,
    model: Model,
    out: Out,
    labels: Labels = None,
    target: Target = None,
    method: MethodName = "eblime",
    masks: Masks = 1000,
    segmentation: SegmentationName = "slic",
    hide: HideImage = "mean",
    size: Size = None,
    normalise: Normalise = "unit",
    activation: Activation = "none",
    output_name: OutputName = None,
    seed: Seed = 0,
    prob: Prob = 0.95,
    part_size: PartSize = None,
    keep: Keep = False,
    engine: Engine = "local",
    workers: Workers = "auto",
    cpus_per_worker: Cpus = None,
    gpus_per_worker: Gpus = None,
    max_failures: MaxFailures = None,
    timeout: Timeout = None,
    trust_pickle: Trust = False,
) -> None:
    """Explain the photos of a folder and of the folders in it, by superpixels.

    Exit code 3: some inputs failed, the others are explained.

    Example: eblime batch image photos/ --model net.onnx --activation softmax --out run/
    """
    from eblime.cli.recipe import begin

    check_choice("--normalise", normalise, NORMALISATIONS)
    told = begin(
        "image",
        inputs,
        model,
        **_shared(labels, target, method, masks, seed, prob, part_size, keep),
        segmentation=segmentation,
        hide=hide,
        size=size,
        normalise=normalise,
        activation=activation,
        output_name=output_name,
    )
    ways = _ways(engine, workers, cpus_per_worker, gpus_per_worker, max_failures)
    _begin(told, out, ways | {"timeout": timeout}, trust_pickle)


@batch_app.command("tabular")
def batch_tabular(
    inputs: Inputs,
    model: Model,
    out: Out,
    background: Annotated[
        Path | None, typer.Option(help="What is usual, such as the training data. Default: INPUTS.")
    ] = None,
    drop: Drop = "",
    categorical: Categorical = "",
    group: Group = None,
    labels: Labels = None,
    target: Target = None,
    method: MethodName = "eblime",
    masks: Masks = 1000,
    representation: Representation = "binary",
    bins: Bins = "quartile",
    perturb: Perturb = "bins",
    seed: Seed = 0,
    prob: Prob = 0.95,
    part_size: PartSize = None,
    keep: Keep = False,
    engine: Engine = "local",
    workers: Workers = "auto",
    cpus_per_worker: Cpus = None,
    gpus_per_worker: Gpus = None,
    max_failures: MaxFailures = None,
    timeout: Timeout = None,
    trust_pickle: Trust = False,
) -> None:
    """Explain every row of a .csv, .tsv or .parquet file, of .jsonl objects, or .parquet files.

    Exit code 3: some inputs failed, the others are explained.

    Example: eblime batch tabular data.csv --model m.skops --background train.csv --out run/
    """
    from eblime.cli.recipe import begin

    told = begin(
        "tabular",
        inputs,
        model,
        **_shared(labels, target, method, masks, seed, prob, part_size, keep),
        background=background,
        drop=drop,
        categorical=categorical,
        group=list(group or []),
        representation=representation,
        bins=bins,
        perturb=perturb,
    )
    ways = _ways(engine, workers, cpus_per_worker, gpus_per_worker, max_failures)
    _begin(told, out, ways | {"timeout": timeout}, trust_pickle)


@batch_app.command("text")
def batch_text(
    inputs: Inputs,
    model: Model,
    out: Out,
    tokens: TokensName = "word",
    labels: Labels = None,
    target: Target = None,
    method: MethodName = "eblime",
    masks: Masks = 1000,
    seed: Seed = 0,
    prob: Prob = 0.95,
    part_size: PartSize = None,
    keep: Keep = False,
    engine: Engine = "local",
    workers: Workers = "auto",
    cpus_per_worker: Cpus = None,
    gpus_per_worker: Gpus = None,
    max_failures: MaxFailures = None,
    timeout: Timeout = None,
    trust_pickle: Trust = False,
) -> None:
    """Explain .txt files of a folder, lines of a .jsonl file, or the column "text" of a table.

    Exit code 3: some inputs failed, the others are explained.

    Example: eblime batch text reviews.jsonl --model mood:score --out run/
    """
    from eblime.cli.recipe import begin

    told = begin(
        "text",
        inputs,
        model,
        **_shared(labels, target, method, masks, seed, prob, part_size, keep),
        tokens=tokens,
    )
    ways = _ways(engine, workers, cpus_per_worker, gpus_per_worker, max_failures)
    _begin(told, out, ways | {"timeout": timeout}, trust_pickle)


def report(
    run: Annotated[str, typer.Argument(help="Folder of a run.")],
    html: Annotated[Path | None, typer.Option(help="Where to write the page.")] = None,
    pages: Annotated[
        int, typer.Option(help="Of a run with --keep: how many inputs get their own page.", min=0)
    ] = 60,
    open_it: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
) -> None:
    """Make a page about a run: importance over all inputs, worst fits, failures, links.

    Example: eblime report run/ --open
    """
    from eblime.batch.overview import overview
    from eblime.batch.results import open_run

    opened = open_run(run)
    page = html or opened.location / "report.html"
    overview(opened, str(page), pages=pages, progress=None)
    say(f"Wrote {page}.")
    here = Path(str(page))
    if open_it and not (here.exists() and open_page(here)):
        say(f"No graphical browser here; the page is {page}.")


def _shared(
    labels: Path | None,
    target: str | None,
    method: str,
    masks: int,
    seed: int,
    prob: float,
    part_size: int | None,
    keep: bool,
) -> dict[str, Any]:
    """What every kind of run is told."""
    return {
        "labels": labels,
        "target": target,
        "method": method,
        "masks": masks,
        "seed": seed,
        "prob": check_level("--prob", prob),
        "part_size": part_size,
        "keep": keep,
    }


def _ways(
    engine: str, workers: str, cpus: float | None, gpus: float | None, max_failures: int | None
) -> dict[str, Any]:
    """How a run is run, which changes no number."""
    if workers != "auto" and not (workers.isascii() and workers.isdigit() and int(workers) > 0):
        raise ValueError(f"--workers must be a number from 1, or auto; got {workers!r}.")
    return {
        "engine": engine,
        "workers": workers if workers == "auto" else int(workers),
        "cpus_per_worker": cpus,
        "gpus_per_worker": gpus,
        "max_failures": max_failures,
    }


def _begin(told: dict[str, Any], out: str, ways: dict[str, Any], trust_pickle: bool) -> None:
    """Begin a run: every name in it was typed by the user."""
    from eblime.cli.recipe import Recipe
    from eblime.cli.resume import run_recipe

    recipe = Recipe(told=told, trust_pickle=trust_pickle, import_from=told["imported_from"])
    run_recipe(recipe, out, ways)


def _by_user(context: typer.Context, name: str) -> bool:
    """Whether an option was written on the command line."""
    return getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE"
