"""Two fast forms of the held-out R^2 of `EBLIME()` against fitting it once per score.

For every problem the exact value fits the method N times, each time without one score. It is
compared with

- `post.r2_held_out`: by leverages that count how far the scales move with a score;
- leave-one-out with the scales that were fitted to all scores.

48 problems: four inputs of each of four cases, with 30, 60 and 100 masks.

    EBLIME_DATA=... python -m studies held-out    # a minute
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

import eblime
from eblime.core.fit_quality import held_out_r2
from studies.populations import TITLES, Population, population, run_cases
from studies.runner import Row, add_run_options
from studies.tables import table

SIZES = (30, 60, 100)
CASES = ("p13", "p40", "german", "breast-cancer")


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the study."""
    add_run_options(parser, items=4, seed=False)


def run(options: argparse.Namespace) -> None:
    """Run the study and print the differences."""
    print(summary(run_cases(held_out_rows, {"sizes": SIZES}, CASES, options)))


def held_out_rows(settings: Mapping[str, Any], number: int) -> list[Row]:
    """Draws of masks from one input: the exact value, and how far the two others are above it."""
    whole, rows = population(settings["case"], number), []
    for n in settings["sizes"]:
        rng = np.random.default_rng([2, number, n])
        data = whole.take(rng.integers(len(whole.scores), size=n))
        exact = exact_r2(data)
        row = {"case": TITLES[settings["case"]], "masks per feature": n / data.masks.shape[1]}
        row |= {"exact": exact, "r2_held_out": eblime.fit(*data).r2_held_out - exact}
        rows.append({**row, "scales of all": with_scales_of_all(data) - exact})
    return rows


def exact_r2(data: Population) -> float:
    """The exact value: N fits, each without one row."""
    missed = np.empty(len(data.scores))
    for i in range(len(missed)):
        kept = np.arange(len(missed)) != i
        post = eblime.fit(*(part[kept] for part in data))
        missed[i] = data.scores[i] - post.intercept - data.masks[i] @ post.mean
    return held_out_r2(data.scores, data.weights, missed)


def with_scales_of_all(data: Population) -> float:
    """Leave-one-out with scales that have seen every score."""
    law: Any = eblime.fit(*data).law
    scales = np.exp(-law.fitted / 2)
    ridge = eblime.EBLIME(local=False)
    return eblime.fit(data.masks * scales, data.scores, data.weights, ridge).r2_held_out


def summary(rows: pd.DataFrame) -> str:
    """Differences from the exact value, as Markdown."""
    many = rows["masks per feature"] > 2
    parts = {"all": rows, "more than 2 masks per feature": rows[many], "others": rows[~many]}
    parts |= dict(list(rows.groupby("case", sort=False)))
    lines = []
    for name, part in parts.items():
        gaps = [part["r2_held_out"], part["scales of all"]]
        values = [v for gap in gaps for v in (gap.abs().mean(), gap.mean(), gap.min(), gap.max())]
        lines.append([name, len(part), *(f"{value:.3f}" for value in values)])
    heads = ["problems", "number"]
    for name in ("r2_held_out", "scales of all"):
        heads += [f"{name}: mean size of the difference", "mean", "lowest", "highest"]
    return table(heads, lines)
