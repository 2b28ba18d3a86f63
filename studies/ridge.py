"""The ridge parameter over many inputs (figure 5), and its full posterior.

python -m studies ridge --dataset french-bulldog
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

import eblime
from studies.cases import CASES, count_items, item
from studies.data import sources
from studies.runner import Row, add_run_options, positive, run_study, study_generator

__all__ = ["ridge_parameters"]


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the study."""
    parser.add_argument("--dataset", default="french-bulldog", choices=list(CASES))
    parser.add_argument("--n", type=positive, default=200, help="masks per input")
    add_run_options(parser, many="all, at most 40")


def run(options: argparse.Namespace) -> None:
    """Run the study and print the spread over inputs."""
    rows = ridge_parameters(**vars(options))
    for name, title in (("log_mean", "log E(lambda | Y), published grid"), ("median", "median")):
        low, middle, high = rows[name].quantile([0.05, 0.5, 0.95])
        print(f"{title}: {middle:.3g} over {len(rows)} inputs, 90 % from {low:.3g} to {high:.3g}")


def ridge_parameters(
    dataset: str, *, n: int = 200, items: int | None = None, seed: int = 0, **how: Any
) -> pd.DataFrame:
    """One row per input: the ridge parameter on the published grid, and its full posterior.

    `log_mean` is log E(lambda | Y) on the published grid in (0, 1]; `median`, `low` and `high` are
    those of lambda on the whole half-line. `how` are the other settings of `run_study`.
    """
    settings = {"dataset": dataset, "n": n, "seed": seed}
    numbers = range(count_items(dataset, items))
    return run_study(ridge_rows, settings, numbers, inputs=sources(dataset), **how)


def ridge_rows(settings: Mapping[str, Any], number: int) -> list[Row]:
    """The ridge parameter of one input."""
    rng = study_generator(settings, number)
    masks, scores, weights = item(settings["dataset"], number).sample(rng, settings["n"])
    printed = eblime.fit(masks, scores, weights, eblime.EBLIME.paper(), rng=rng)
    whole = eblime.fit(masks, scores, weights, eblime.EBLIME(local=False), rng=rng)
    low, middle, high = whole.lam.quantile([0.025, 0.5, 0.975])
    return [
        {
            "dataset": settings["dataset"],
            "item": number,
            "log_mean": float(np.log(printed.lam.mean)),
            "median": float(middle),
            "low": float(low),
            "high": float(high),
            "score": float(scores[0]),
        }
    ]
