"""`eblime bench faithfulness`: a league of methods, by several measures, at equal model calls."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eblime._text import counted
from eblime.cli.options import Json
from eblime.cli.study_run import Jobs, Out, Seed, run_study, write_rows
from eblime.cli.terminal import say

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["bench_faithfulness"]


def bench_faithfulness(
    dataset: Annotated[
        str,
        typer.Option(help="photos, stored-photos, tiles, drilled, german, compas or rt-polarity."),
    ] = "german",
    n: Annotated[int, typer.Option("--masks", help="Masks that a method may ask.", min=1)] = 100,
    items: Annotated[int, typer.Option(help="Number of inputs.", min=1)] = 10,
    method: Annotated[
        list[str] | None, typer.Option(help="Methods: --method eblime lime shap. Default: all.")
    ] = None,
    nearby: Annotated[
        int, typer.Option(help="Inputs close by, for max-sensitivity; 0 for none.", min=0)
    ] = 3,
    top: Annotated[int, typer.Option(help="Columns that are perturbed for PGI.", min=1)] = 5,
    seed: Seed = 0,
    jobs: Jobs = 2,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Whether the model behaves as the importances say.

    eblime and other packages explain the same inputs with equal model calls. Methods: eblime,
    quadrature, quadrature+adaptive, bayesshap, lime, shap, captum-lime, captum-shap, rise, random,
    oracle and oracle-shapley; for tables also eblime-table and lime-table, which draw rows. Those
    whose package is missing are left out. Measures are not averaged.

    Example: eblime bench faithfulness --dataset german --items 10 --method eblime lime shap
    """
    from eblime.evaluation.contestants import CONTESTANTS
    from eblime.evaluation.faithfulness import faithfulness, standings

    settings: dict[str, Any] = {"n": n, "items": items, "methods": method or list(CONTESTANTS)}
    settings |= {"nearby": nearby, "top": top, "seed": seed}
    table, folder = run_study(faithfulness, dataset, settings, jobs=jobs, out=out, quiet=as_json)
    found = standings(table)
    if as_json:
        say(found.to_json(orient="records"))
        return
    over = counted(items, "input")
    say(f"{dataset}: means over {over}; masks: how many different ones were asked")
    say(_standings_table(found))
    write_rows(table, folder)


def _standings_table(found: pd.DataFrame) -> str:
    """One row per method, one column per measure, with standard errors; arrows say what is good."""
    from eblime._table import align_rows
    from eblime.evaluation.metrics import HIGHER_IS_BETTER

    measures = [name for name in HIGHER_IS_BETTER if (found["measure"] == name).any()]
    head = ["method", "masks"]
    head += [f"{name} {'up' if HIGHER_IS_BETTER[name] else 'down'}" for name in measures]
    rows = []
    for method, part in found.groupby("method", sort=False):
        by_name = part.set_index("measure")
        known = {name: _with_error(row["mean"], row["se"]) for name, row in by_name.iterrows()}
        cells = [known.get(name, "") for name in measures]
        rows.append([str(method), f"{part['calls'].iloc[0]:.0f}", *cells])
    return "\n".join(align_rows(head, rows))


def _with_error(mean: float, se: float) -> str:
    """A mean and its standard error, which a single input does not have."""
    return f"{mean:.3f}" if math.isnan(se) else f"{mean:.3f} ({se:.3f})"
