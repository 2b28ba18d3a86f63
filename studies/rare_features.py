"""Coverage of features that seldom vary, with and without the remedies.

Two cases: `x1 + rare exp(2 x4)` of normal columns, where `rare` is 1 in 3 % of the rows; and COMPAS
with two counts of juvenile offences that are zero for nearly everybody, and a random forest. The
truth is the weighted linear fit, intercept free, to a large number of rows drawn without forcing.
For every number of masks this prints how often 95 % intervals contain the truth, and their mean
interval score, for the rare features and for the others:

- neither: every feature drawn as often as the background has it, noise taken as equal;
- forced: each state of a feature in at least 10 % of the masks (the default);
- forced, unequal: the same, fitted by `EBLIME(noise="unequal")`;
- unequal: not forced, fitted by `EBLIME(noise="unequal")`.

    EBLIME_DATA=... python -m studies rare-features            # two minutes
    EBLIME_DATA=... python -m studies rare-features --fits 200
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any, cast

import numpy as np
import pandas as pd

import eblime
from eblime.domains.tabular import neighbourhood
from studies.data import sources
from studies.data.tabular import compas, forest, split_rows
from studies.intervals import interval_score
from studies.populations import best_fit
from studies.runner import Row, add_run_options, positive, run_study
from studies.tables import table

SIZES = (200, 1000)
COUNTS = ("juv_fel_count", "juv_misd_count")
METHODS = {"": eblime.EBLIME(local=False), "unequal": eblime.EBLIME(local=False, noise="unequal")}
NAMES = {
    (False, ""): "neither",
    (True, ""): "forced",
    (True, "unequal"): "forced, unequal",
    (False, "unequal"): "unequal",
}


@dataclass(frozen=True, kw_only=True)
class Case:
    """A model, its background, the rows to explain and the rare columns."""

    model: Any
    data: pd.DataFrame
    rows: list[pd.Series]
    rare: tuple[str, ...]
    target: int
    n_truth: int


@cache
def heavy_tail() -> Case:
    """A rare value with an effect that has heavy tails; two rows without it and two with it."""
    rng = np.random.default_rng(0)
    data = pd.DataFrame(rng.normal(size=(1000, 4)), columns=["x1", "x2", "x3", "x4"])
    data["rare"] = (rng.random(1000) < 0.03).astype(int)

    def model(rows: pd.DataFrame) -> np.ndarray:
        return (rows["x1"] + rows["rare"] * np.exp(2 * rows["x4"])).to_numpy()

    rows = [data[data["rare"] == value].iloc[k] for value in (0, 1) for k in (0, 1)]
    return Case(model=model, data=data, rows=rows, rare=("rare",), target=0, n_truth=1_000_000)


@cache
def compas_counts() -> Case:
    """COMPAS with two more columns; four rows that the forest was not trained on."""
    risk = compas(COUNTS)
    rows = [risk.data.iloc[k] for k in split_rows(risk)[1][:4]]
    model = forest(risk, trees=30)
    return Case(model=model, data=risk.data, rows=rows, rare=COUNTS, target=1, n_truth=200_000)


CASES: dict[str, Callable[[], Case]] = {
    "x1 + rare exp(2 x4)": heavy_tail,
    "COMPAS, two counts": compas_counts,
}


@contextmanager
def forcing(on: bool) -> Iterator[None]:
    """Rare states forced as usual, or not at all."""
    least = neighbourhood._RARE
    neighbourhood._RARE = least if on else 0.0
    try:
        yield
    finally:
        neighbourhood._RARE = least


def explain(case: Case, number: int, n: int, seed: int, method: Any) -> eblime.Explanation:
    """One row of a case."""
    explainer = eblime.TabularExplainer(
        case.model, case.data, n_masks=n, method=method, progress=False
    )
    return explainer.explain(case.rows[number], target=case.target, rng=seed)


def rare_rows(settings: Mapping[str, Any], number: int) -> list[Row]:
    """One row of the table: every draw of masks, fitted in every way."""
    case, rows = CASES[settings["case"]](), []
    with forcing(False):
        whole = explain(case, number, case.n_truth, 10_000_000 + number, "lime")
    truth = best_fit(whole.masks, whole.scores, whole.weights)
    columns = cast(Any, whole.scene).columns
    for n, forced, draw in product(SIZES, (False, True), range(settings["fits"])):
        with forcing(forced):
            e = explain(case, number, n, 1000 * draw + number, METHODS[""])
        for name, method in METHODS.items():
            ends = e.refit(method).posterior.interval(0.95)
            score = interval_score(ends, truth, 0.95)
            inside = (ends[:, 0] <= truth) & (truth <= ends[:, 1])
            head = {"N": n, "way": NAMES[forced, name]}
            rows += [
                {
                    **head,
                    "column": column if column in case.rare else "others",
                    "coverage": float(inside[j]),
                    "score": score[j],
                }
                for j, column in enumerate(columns)
            ]
    return rows


def results_table(case: str, rows: pd.DataFrame) -> str:
    """The table of one case as Markdown."""
    means = rows.pivot_table(
        index=["N", "way"], columns="column", values=["coverage", "score"], sort=False
    )
    columns = [(kind, name) for name in rows["column"].unique() for kind in ("coverage", "score")]
    heads = [f"{name}: {kind}" for kind, name in columns]
    lines = [
        [n, way, *(f"{value:.3g}" for value in values)]
        for (n, way), values in means[columns].iterrows()
    ]
    return table([f"{case}, N", "", *heads], lines, right=2)


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the study."""
    parser.add_argument("--fits", type=positive, default=50, help="draws for each row")
    add_run_options(parser, items=4, seed=False)


def run(options: argparse.Namespace) -> None:
    """Run the study and print one table for each case."""
    for name in CASES:
        rows = run_study(
            rare_rows,
            {"case": name, "fits": options.fits},
            range(min(options.items, 4)),
            inputs=sources("compas" if name.startswith("COMPAS") else ""),
            out=options.out,
            jobs=options.jobs,
            progress=options.progress,
        )
        print(results_table(name, rows), end="\n\n", flush=True)
