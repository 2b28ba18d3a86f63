"""Faithfulness: does the model behave as the importances say? Many methods at equal model calls.

eblime and other packages explain the same inputs; those whose package is missing are left out.
Oracles ask about all masks, and are left out of inputs with more than 13 features; methods ending
in -table draw rows, and are left out of inputs that are not rows. No measure decides alone, and
measures are not averaged: insertion and deletion reward the order of the features, infidelity their
sizes, the pointing game what people look for.

    python -m studies faithfulness --dataset german --items 10 --methods eblime lime shap
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from eblime import measures
from eblime._types import FloatArray
from studies.contestants import CONTESTANTS, applies, available
from studies.data import sources
from studies.data.faulty_parts import PARTS
from studies.games import Game
from studies.intervals import mean_interval
from studies.measures import max_sensitivity, pointing_game, prediction_gap, relevance_mass
from studies.runner import Row, add_run_options, positive, run_study, study_generator
from studies.subjects import SUBJECTS, LeagueSubject
from studies.tables import table

__all__ = ["HIGHER_IS_BETTER", "faithfulness", "paired_gaps", "standings"]

HIGHER_IS_BETTER = {
    "insertion": True,
    "deletion": False,
    "infidelity": False,
    "comprehensiveness": True,
    "sufficiency": False,
    "pgi": True,
    "pgu": False,
    "pointing": True,
    "mass": True,
    "sensitivity": False,
}
_TOLERANCE = 4  # pixels around a defect, of 128; the pointing game has 15 for photos of about 500


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the study."""
    parser.add_argument("--dataset", default="german", choices=list(SUBJECTS))
    parser.add_argument("--n", type=positive, default=100, help="masks that a method may ask about")
    parser.add_argument(
        "--methods", nargs="+", default=list(CONTESTANTS), choices=list(CONTESTANTS)
    )
    parser.add_argument(
        "--nearby", type=int, default=3, help="inputs close by, for max-sensitivity; 0 for none"
    )
    parser.add_argument("--top", type=positive, default=5, help="columns perturbed for PGI")
    add_run_options(parser, items=10)


def run(options: argparse.Namespace) -> None:
    """Run the study and print one row per method: means and their standard errors."""
    found = standings(faithfulness(**vars(options)))
    names = [name for name in HIGHER_IS_BETTER if (found["measure"] == name).any()]
    rows = []
    for method, part in found.groupby("method", sort=False):
        cells = {
            line.measure: f"{line.mean:.3f}" + ("" if np.isnan(line.se) else f" ({line.se:.3f})")
            for line in part.itertuples()
        }
        rows.append([method, f"{part['calls'].iloc[0]:.0f}", *(cells.get(n, "") for n in names)])
    print(f"\n{options.dataset}: means over {options.items} inputs; masks: how many were asked\n")
    arrows = [f"{name} {'up' if HIGHER_IS_BETTER[name] else 'down'}" for name in names]
    print(table(["method", "masks", *arrows], rows))


def faithfulness(
    dataset: str,
    *,
    n: int = 100,
    items: int = 30,
    methods: Sequence[str] = tuple(CONTESTANTS),
    nearby: int = 3,
    top: int = 5,
    seed: int = 0,
    jobs: int = 1,
    **how: Any,
) -> pd.DataFrame:
    """One row per input and method, with a column for each measure that applies.

    `calls` is the number of different masks that a method asked about. `how` are the other settings
    of `run_study`.
    """
    settings = {
        "dataset": dataset,
        "n": n,
        "methods": available(methods),
        "nearby": nearby,
        "top": top,
        "seed": seed,
    }
    if jobs > 1 and dataset in PARTS:  # train the networks once, here, and not in every process
        for number in range(items):
            SUBJECTS[dataset](number)
    inputs = sources(dataset)
    return run_study(faithfulness_rows, settings, range(items), inputs=inputs, jobs=jobs, **how)


def faithfulness_rows(settings: Mapping[str, Any], number: int) -> list[Row]:
    """All rows of one input; they depend only on the settings and the number."""
    subject = SUBJECTS[settings["dataset"]](number)
    rows = []
    for name in settings["methods"]:
        if not applies(name, subject.game):
            continue
        found, calls = _explain(name, subject.game, settings, number, 0)
        row: Row = {
            "dataset": settings["dataset"],
            "item": number,
            "method": name,
            "features": subject.game.n_features,
            "calls": calls,
        }
        row |= measure(subject, found, top=settings["top"], seed=settings["seed"])
        if settings["nearby"] and subject.nearby is not None:
            close = [
                _explain(
                    name, subject.nearby(study_generator(settings, number, k)), settings, number, k
                )[0]
                for k in range(1, settings["nearby"] + 1)
            ]
            row["sensitivity"] = max_sensitivity(found, close)
        rows.append(row)
    return rows


def measure(
    subject: LeagueSubject, importances: FloatArray, *, top: int, seed: int
) -> dict[str, float]:
    """All measures of some importances that apply to the input, without max-sensitivity."""
    game = subject.game
    rng = np.random.default_rng([seed, 1])  # the same masks for all methods
    found = {
        "insertion": measures.insertion(importances, game),
        "deletion": measures.deletion(importances, game),
        "infidelity": measures.infidelity(importances, game, rng=rng),
    }
    if subject.kind == "text":
        found["comprehensiveness"] = measures.comprehensiveness(importances, game)
        found["sufficiency"] = measures.sufficiency(importances, game)
    if subject.predict is not None:
        k = min(top, len(importances) - 1)
        for name, important in (("pgi", True), ("pgu", False)):
            found[name] = prediction_gap(
                importances, subject.predict, top=k, important=important, prediction=game.full
            )
    if subject.region is not None and subject.labels is not None:
        heat = importances[subject.labels]
        found["pointing"] = pointing_game(heat, subject.region, tolerance=_TOLERANCE)
        found["mass"] = relevance_mass(heat, subject.region)
    return found


def standings(table: pd.DataFrame) -> pd.DataFrame:
    """The mean of each measure over inputs and its standard error, by data set and method.

    Columns: dataset, method, measure, mean, se, items, calls.

    Examples
    --------
    >>> import pandas as pd
    >>> from studies.faithfulness import standings
    >>> table = pd.DataFrame(
    ...     {
    ...         "dataset": "photos",
    ...         "item": [0, 1, 0, 1],
    ...         "method": ["eblime", "eblime", "lime", "lime"],
    ...         "calls": 100,
    ...         "deletion": [0.2, 0.4, 0.3, 0.7],
    ...     }
    ... )
    >>> standings(table)[["method", "measure", "mean", "se"]].round(2).values.tolist()
    [['eblime', 'deletion', 0.3, 0.1], ['lime', 'deletion', 0.5, 0.2]]
    """
    rows = []
    for (dataset, method), part in table.groupby(["dataset", "method"], sort=False):
        for measure in HIGHER_IS_BETTER:
            values = part[measure].dropna().to_numpy() if measure in part else np.empty(0)
            if len(values):
                se = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
                rows.append(
                    {
                        "dataset": dataset,
                        "method": method,
                        "measure": measure,
                        "mean": float(values.mean()),
                        "se": float(se),
                        "items": len(values),
                        "calls": float(part["calls"].mean()),
                    }
                )
    return pd.DataFrame(rows)


def paired_gaps(table: pd.DataFrame, method: str) -> pd.DataFrame:
    """How much worse a method is than each other one, input by input.

    Columns: dataset, measure, other, gap (positive: `method` is worse), low, high and items. `low`
    and `high` are Student's 95 % interval of the mean difference, over the inputs that both have.

    Examples
    --------
    >>> import pandas as pd
    >>> from studies.faithfulness import paired_gaps
    >>> table = pd.DataFrame(
    ...     {
    ...         "dataset": "photos",
    ...         "item": [0, 1, 0, 1],
    ...         "method": ["eblime", "eblime", "lime", "lime"],
    ...         "deletion": [0.2, 0.4, 0.3, 0.7],
    ...     }
    ... )
    >>> gaps = paired_gaps(table, "lime")  # less deletion is better
    >>> gaps[["other", "gap", "items"]].round(2).values.tolist()
    [['eblime', 0.2, 2]]
    """
    rows = []
    for dataset, part in table.groupby("dataset", sort=False):
        for measure, higher in HIGHER_IS_BETTER.items():
            if measure not in part or part[measure].isna().all():
                continue
            wide = part.pivot(index="item", columns="method", values=measure)
            if method not in wide:
                continue
            for other in wide.columns.drop(method, errors="ignore"):
                gap = (wide[other] - wide[method]).dropna().to_numpy() * (1 if higher else -1)
                if len(gap) > 1:
                    low, high = mean_interval(gap)
                    row = {"dataset": dataset, "measure": measure, "other": other}
                    row |= {"gap": float(gap.mean()), "low": low, "high": high}
                    rows.append({**row, "items": len(gap)})
    return pd.DataFrame(rows)


def _explain(
    name: str, game: Game, settings: Mapping[str, Any], number: int, run: int
) -> tuple[FloatArray, int]:
    """The attribution of a contestant and how many different masks it asked about."""
    own = game.again()
    rng = study_generator(settings, number, run, list(CONTESTANTS).index(name) + 1)
    return CONTESTANTS[name][0](own, settings["n"], rng), own.calls
