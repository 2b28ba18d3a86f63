"""`eblime bench`: rerun the paper's studies, one command for each."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eblime._text import counted
from eblime.cli.files import save_figure
from eblime.cli.options import Json, Prob
from eblime.cli.study_run import AllItems, Items, Jobs, Out, Seed, run_study, write_rows
from eblime.cli.terminal import progress_bar, say

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["bench_app"]

_ALSO_STORED = "See eblime bench coverage; also stored-photos and stored-games."

bench_app = typer.Typer(
    no_args_is_help=True,
    help="Rerun the studies of the EBLIME paper, and compare methods.",
    rich_markup_mode=None,
)


@bench_app.callback()
def _bench() -> None:
    """Rerun the paper's studies, and compare methods."""


@bench_app.command("coverage")
def bench_coverage(
    dataset: Annotated[
        str,
        typer.Option(
            help="french-bulldog, broccoli, corn, scuba-diver, mixed, digit-1 to digit-9, compas "
            "or german."
        ),
    ] = "german",
    n: Annotated[list[int] | None, typer.Option(help="Numbers of masks: --n 100 200 400.")] = None,
    seeds: Annotated[int, typer.Option(help="Repetitions for each number of masks.", min=1)] = 5,
    items: Items = None,
    method: Annotated[
        list[str] | None, typer.Option(help="Methods: --method bayeslime eblime-paper eblime.")
    ] = None,
    truth: Annotated[list[str] | None, typer.Option(help="Truths: exact, lime or paper.")] = None,
    prob: Prob = 0.95,
    seed: Seed = 0,
    jobs: Jobs = 2,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """How often intervals contain the truth (table 2, figure 3).

    An interrupted run resumes where it stopped. The truth is lime's ridge with a free intercept on
    all masks (exact) or on 10,000 masks (lime), or equation (1) of the paper, which has no
    intercept, on 10,000 masks (paper).

    Example: eblime bench coverage --dataset german --n 100 200 400 --seeds 2 --items 20
    """
    from eblime.evaluation.coverage import coverage, summary

    settings: dict[str, Any] = {
        "n": n or [100, 200, 400],
        "seeds": seeds,
        "items": items,
        "methods": method or ["bayeslime", "eblime-paper", "eblime"],
        "truths": truth or ["exact", "paper"],
        "prob": prob,
        "seed": seed,
    }
    table, folder = run_study(coverage, dataset, settings, jobs=jobs, out=out, quiet=as_json)
    found = summary(table)
    if as_json:
        say(found.to_json(orient="records"))
        return
    say(_coverage_table(dataset, found, prob))
    write_rows(table, folder)


def _coverage_table(dataset: str, found: pd.DataFrame, prob: float) -> str:
    """Coverage by method and truth, and the numbers in the paper."""
    from eblime._table import align_rows
    from eblime.evaluation.cases import CASES
    from eblime.evaluation.paper import TABLE_2

    counts = sorted(found["n"].unique())
    head = ["method", "truth", *(f"N={n}" for n in counts), "top 1", "top 2-3", "width", "score"]
    rows = []
    for (truth, name), part in found.groupby(["truth", "method"], sort=False):
        by_n = part.set_index("n")
        cells = [f"{by_n.loc[n, 'coverage']:.3f}" for n in counts]
        last = by_n.loc[counts[-1]]
        cells += [f"{last[rank]:.3f}" for rank in ("top_1", "top_2_3")]
        rows.append([str(name), str(truth), *cells, f"{last['width']:.3g}", f"{last['score']:.3g}"])
    for name, printed in TABLE_2.get(dataset, {}).items():
        cells = [f"{printed[n]:.3f}" if n in printed else "" for n in counts]
        rows.append([name, "as printed", *cells, "", "", "", ""])
    items = int(found["items"].max())
    lines = [
        f"{CASES[dataset].title}: share of {100 * prob:g} % intervals that contain the truth, "
        f"{counted(items, 'input')}; at N = {counts[-1]} also of the most important feature and "
        "of the next two, and width and interval score (smaller is better)",
        *align_rows(head, rows),
    ]
    return "\n".join(line.rstrip() for line in lines)


@bench_app.command("localisation")
def bench_localisation(
    dataset: Annotated[str, typer.Option(help="ultrasonic, tiles or drilled.")] = "ultrasonic",
    n: Annotated[int, typer.Option("--masks", help="Masks per image.", min=1)] = 200,
    top: Annotated[int, typer.Option(help="Number of superpixels that count.", min=1)] = 5,
    items: AllItems = None,
    seed: Seed = 0,
    jobs: Jobs = 2,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Whether important superpixels cover the defect (table 1).

    On simulated ultrasonic scans (the authors' are not public), on real magnetic tiles, and on real
    ultrasonic scans of drilled holes.

    Example: eblime bench localisation --dataset ultrasonic
    """
    from eblime.evaluation.localisation import counts, localisation, mcnemar

    settings: dict[str, Any] = {"n": n, "top": top, "items": items, "seed": seed}
    table, folder = run_study(localisation, dataset, settings, jobs=jobs, out=out, quiet=as_json)
    found = counts(table)
    if as_json:
        say(found.to_json(orient="records"))
        return
    say(f"{dataset}: defects with at least half of their area under the top {top} superpixels")
    say(_shares_table(found))
    for first, second in (("eblime", "lime"), ("eblime", "bayeslime"), ("eblime-paper", "lime")):
        test = mcnemar(table, first, second)
        say(
            f"{first} against {second}: better on {test['first']:.0f}, worse on "
            f"{test['second']:.0f} of {test['of']:.0f}, exact p = {test['p']:.2g}, difference "
            f"{100 * test['difference']:+.1f} % "
            f"({100 * test['low']:+.1f} to {100 * test['high']:+.1f})"
        )
    write_rows(table, folder)


def _shares_table(found: pd.DataFrame) -> str:
    """The share of defects that each method found, with intervals."""
    from eblime._table import align_rows

    head = ["method", "found", "share", "95% low", "high"]
    rows = [
        [
            row["method"],
            f"{row['found']}/{row['of']}",
            *(f"{row[name]:.3f}" for name in ("share", "low", "high")),
        ]
        for row in found.to_dict(orient="records")
    ]
    return "\n".join(align_rows(head, rows))


@bench_app.command("lambda")
def bench_lambda(
    dataset: Annotated[str, typer.Option(help="See eblime bench coverage.")] = "french-bulldog",
    n: Annotated[int, typer.Option("--masks", help="Masks per input.", min=1)] = 200,
    items: Items = None,
    seed: Seed = 0,
    jobs: Jobs = 2,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """The ridge parameter over many inputs (figure 5).

    Example: eblime bench lambda --dataset french-bulldog
    """
    from eblime.evaluation.stability import lambda_study

    settings: dict[str, Any] = {"n": n, "items": items, "seed": seed}
    table, folder = run_study(
        lambda_study, dataset, settings, name="lambda", jobs=jobs, out=out, quiet=as_json
    )
    if as_json:
        say(table.to_json(orient="records"))
        return
    over = counted(len(table), "input")
    for name, title in (("log_mean", "log E(lambda | Y), published grid"), ("median", "median")):
        low, middle, high = table[name].quantile([0.05, 0.5, 0.95])
        say(f"{title}: {middle:.3g} over {over}, 90 % from {low:.3g} to {high:.3g}")
    write_rows(table, folder)


@bench_app.command("stability")
def bench_stability(
    dataset: Annotated[str, typer.Option(help=_ALSO_STORED)] = "german",
    n: Annotated[list[int] | None, typer.Option(help="Numbers of masks: --n 100 400.")] = None,
    runs: Annotated[int, typer.Option(help="Explanations per input.", min=2)] = 5,
    top: Annotated[int, typer.Option(help="Number of features that count.", min=1)] = 3,
    method: Annotated[
        list[str] | None,
        typer.Option(help="Methods, with a design after +: --method lime quadrature+adaptive."),
    ] = None,
    tables: Annotated[
        Path | None, typer.Option(help="Folder of the answers for stored-photos and stored-games.")
    ] = None,
    items: Items = None,
    seed: Seed = 0,
    jobs: Jobs = 2,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """How much repeated runs differ at equal model calls.

    Example: eblime bench stability --dataset german --n 100 400 --items 10

    Example: eblime bench stability --dataset stored-photos --method lime quadrature+adaptive
    """
    from eblime.evaluation.stability import stability

    if tables is not None:
        os.environ["EBLIME_TABLES"] = str(tables.resolve())
    settings: dict[str, Any] = {"n": n or [100, 400], "runs": runs, "items": items, "seed": seed}
    settings |= {"top": top, "methods": method or ["lime", "bayeslime", "eblime-paper", "eblime"]}
    table, folder = run_study(stability, dataset, settings, jobs=jobs, out=out, quiet=as_json)
    if as_json:
        say(table.to_json(orient="records"))
        return
    names = ["overlap", "sign_flips", "vsi", "csi", "spread", "claimed"]
    means = table.groupby(["method", "n"], sort=False)[names].mean()
    say(
        f"overlap, sign_flips and vsi: of the top {top} of two runs; csi: their intervals overlap; "
        "spread: sd of the means over runs; claimed: sd in the posterior"
    )
    say(means.round(4).to_string())
    write_rows(table, folder)


@bench_app.command("figure-2")
def bench_figure_2(
    out: Annotated[Path, typer.Option(help="File of the picture.")] = Path("figure-2.png"),
    n: Annotated[int, typer.Option("--masks", help="Masks per photo.", min=1)] = 200,
) -> None:
    """Maps of mean and variance of three photos (figure 2)."""
    from eblime.datasets.imagenet import efficientnet_lite0, photo_set, read_square
    from eblime.evaluation.figures import bulldogs_figure
    from eblime.explainers.image import ImageExplainer

    photos = photo_set("french-bulldog")[:3]
    model = efficientnet_lite0()
    explanations = []
    for photo in photos:
        with progress_bar(photo.name, quiet=False) as progress:
            explainer = ImageExplainer(
                model, n_masks=n, labels={photo.target: photo.label}, progress=progress
            )
            explanations.append(explainer.explain(read_square(photo.path), target=photo.target))
    save_figure(bulldogs_figure(explanations), out, dpi=90)
    say(f"Wrote {out}.")
