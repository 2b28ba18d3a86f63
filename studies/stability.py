"""Stability: how much repeated runs differ at equal model calls, and whether the posterior knows.

overlap, sign_flips and vsi compare the top features of two runs; csi says how many of their
intervals overlap; spread is the standard deviation of the means over runs, and claimed that of the
posterior, which should be about as large and which a point estimate does not have.

    python -m studies stability --dataset german --n 100 400 --items 10
    python -m studies stability --dataset stored-photos --methods lime quadrature+adaptive
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

import eblime
from eblime.explainers.compare import compare_with, parse_methods
from eblime.measures import stability_of
from studies.cases import CASES, count_items, item
from studies.data import sources
from studies.measures import interval_of
from studies.pairs import method_named
from studies.runner import Row, add_run_options, positive, run_study, study_generator
from studies.tables import frame_table

__all__ = ["MEASURES", "stability"]

METHODS = ("lime", "bayeslime", "eblime-paper", "eblime")
MEASURES = ["overlap", "sign_flips", "vsi", "csi", "spread", "claimed"]


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the study."""
    parser.add_argument("--dataset", default="german", choices=list(CASES))
    parser.add_argument(
        "--n", type=positive, nargs="+", default=[100, 400], help="numbers of masks"
    )
    parser.add_argument("--runs", type=positive, default=5, help="explanations of each input")
    parser.add_argument("--top", type=positive, default=3, help="features that count as chosen")
    parser.add_argument(
        "--methods", nargs="+", default=list(METHODS), help="with a design after +, if not lime's"
    )
    add_run_options(parser, many="all, at most 40")


def run(options: argparse.Namespace) -> None:
    """Run the study and print means over inputs."""
    rows = stability(**vars(options))
    print(frame_table(rows.groupby(["method", "n"], sort=False)[MEASURES].mean()))


def stability(
    dataset: str,
    *,
    n: Sequence[int] = (100, 400),
    runs: int = 5,
    top: int = 3,
    items: int | None = None,
    methods: Sequence[str] = METHODS,
    seed: int = 0,
    **how: Any,
) -> pd.DataFrame:
    """One row per input, method and number of masks, with the columns `MEASURES`.

    All methods ask about the same number of masks; those with the same design share them. `how` are
    the other settings of `run_study`.
    """
    parse_methods(list(map(method_named, methods)))  # refuses names that are not known
    if runs < 2:
        raise ValueError(f"`runs` must be >= 2; got {runs}.")
    settings = {
        "dataset": dataset,
        "n": list(n),
        "runs": runs,
        "top": top,
        "methods": list(methods),
        "seed": seed,
    }
    numbers = range(count_items(dataset, items))
    return run_study(stability_rows, settings, numbers, inputs=sources(dataset), **how)


def stability_rows(settings: Mapping[str, Any], number: int) -> list[Row]:
    """One input, explained several times."""
    found = item(settings["dataset"], number)
    rows: list[Row] = []
    for n in settings["n"]:
        explainer, x, target = found.question(n)
        runs = [
            compare_with(
                explainer,
                x,
                {name: method_named(name) for name in settings["methods"]},
                target=target,
                rng=study_generator(settings, number, n, run),
            )
            for run in range(settings["runs"])
        ]
        for name in settings["methods"]:
            head = {"dataset": settings["dataset"], "item": number, "n": n, "method": name}
            rows.append({**head, **_agreement([run[name] for run in runs], settings["top"])})
    return rows


def _agreement(runs: Sequence[eblime.Explanation], top: int) -> Row:
    """How far repeated runs of a method agree."""
    means = np.array([run.posterior.mean for run in runs])
    found = stability_of(means, np.array([interval_of(run) for run in runs]), top=top)
    certain = runs[0].posterior.has_spread
    return {
        "overlap": found.overlap,
        "sign_flips": found.sign_flips,
        "vsi": found.vsi,
        "csi": None if np.isnan(found.csi) else found.csi,
        "spread": float(means.std(axis=0, ddof=1).mean()),
        "claimed": float(np.mean([run.posterior.sd.mean() for run in runs])) if certain else None,
    }
