"""`eblime bench`: the paper's studies, rerun with one command each."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Annotated, Any

import typer

from eblime.cli.terminal import asking, say

__all__ = ["bench_app"]

bench_app = typer.Typer(
    no_args_is_help=True, help="Rerun the paper's studies.", rich_markup_mode=None
)

Items = Annotated[
    int | None, typer.Option(help="How many inputs. Default: all, at most 40.", min=1)
]
Jobs = Annotated[int, typer.Option(help="Processes.", min=1)]
Out = Annotated[
    Path | None,
    typer.Option(help="Folder to keep results in and to resume from. Default: eblime-bench/..."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


@bench_app.callback()
def _bench() -> None:
    """Rerun the paper's studies."""


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
    seeds: Annotated[int, typer.Option(help="Draws for each number of masks.", min=1)] = 5,
    items: Items = None,
    method: Annotated[
        list[str] | None, typer.Option(help="Methods: --method bayeslime eblime-paper eblime.")
    ] = None,
    truth: Annotated[list[str] | None, typer.Option(help="Truths: exact, lime or paper.")] = None,
    prob: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95,
    seed: Annotated[int, typer.Option(help="Of the whole study.", min=0)] = 0,
    jobs: Jobs = 2,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """How often intervals hold the truth: Table 2 and Fig. 3 of the paper.

    An interrupted run resumes where it stopped. Two truths are reported, since they are not the
    same question: lime's ridge with a free intercept, and the paper's equation (1) without one.

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
    folder = out or _folder("coverage", {"dataset": dataset, **settings})
    with asking(f"coverage, {dataset}", quiet=as_json) as progress:
        table = coverage(dataset, jobs=jobs, out=folder, progress=progress, **settings)
    found = summary(table)
    if as_json:
        say(found.to_json(orient="records"))
        return
    say(_coverage_words(dataset, found, prob))
    table.to_csv(folder / "rows.csv", index=False)
    say(f"Every row is in {folder / 'rows.csv'}.")


def _folder(study: str, settings: dict[str, Any]) -> Path:
    """A folder of its own for these settings, so that a run resumes and none is mixed up."""
    told = json.dumps({**settings, "items": None}, sort_keys=True).encode()
    name = f"{study}-{settings['dataset']}-{hashlib.sha256(told).hexdigest()[:8]}"
    return Path("eblime-bench") / name


def _coverage_words(dataset: str, found: Any, prob: float) -> str:
    """Coverage by method and truth, and what the paper printed."""
    from eblime.core.table import align
    from eblime.evaluation.cases import CASES
    from eblime.evaluation.paper import TABLE_2

    counts = sorted(found["n"].unique())
    head = ["method", "truth", *(f"N={n}" for n in counts), "width", "score"]
    rows = []
    for (truth, name), part in found.groupby(["truth", "method"], sort=False):
        by_n = part.set_index("n")
        cells = [f"{by_n.loc[n, 'coverage']:.3f}" for n in counts]
        last = by_n.loc[counts[-1]]
        rows.append([name, truth, *cells, f"{last['width']:.3g}", f"{last['score']:.3g}"])
    for name, printed in TABLE_2.get(dataset, {}).items():
        cells = [f"{printed[n]:.3f}" if n in printed else "" for n in counts]
        rows.append([name, "as printed", *cells, "", ""])
    items = int(found["items"].max())
    lines = [
        f"{CASES[dataset].title}: share of {100 * prob:g} % intervals that hold the truth, {items} "
        f"inputs; width and interval score at N = {counts[-1]} (smaller is better)",
        *align(head, [list(column) for column in zip(*rows, strict=True)]),
    ]
    return "\n".join(line.rstrip() for line in lines)
