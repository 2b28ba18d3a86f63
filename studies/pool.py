"""What the inputs of a run learn from each other: `Run.pool` against the fit of each alone.

Every seed is a run over all photos of a case: each photo is asked about N random masks, half of
them the complements of the others, whose scores are stored. All are fitted alone, and with a prior
that is learnt from all of them. The truth is the fit to all stored masks. This prints, for each
case and N, the mean square error and the mean interval score over those of the fit alone; the
coverage of 95 % intervals, alone and pooled, of all features and of the most important one; and the
expected calibration error of P(>0).

    EBLIME_DATA=... python -m studies pool                # two minutes
    EBLIME_DATA=... python -m studies pool --cases p13 games --arrays --sizes 64 128

With `--arrays` the masks are those that an explainer asks about by default ("p40" needs the network
then), and "games" has games of several kinds.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

import eblime
from eblime.answers import Answers
from eblime.methods.regression import fit_each
from studies.coverage_by_rank import BINS, judge
from studies.data import sources
from studies.populations import (
    TITLES,
    Population,
    asked,
    count_inputs,
    pairs_together,
    population,
    truth_of,
)
from studies.runner import Row, add_run_options, positive, run_study
from studies.tables import table

CASES = ("p40", "p13")
SIZES = (60, 100, 200)


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the study."""
    parser.add_argument("--cases", nargs="+", default=CASES, choices=["p40", "p13", "games"])
    parser.add_argument("--sizes", type=positive, nargs="+", default=SIZES, help="of masks")
    parser.add_argument("--seeds", type=positive, default=10, help="runs (default: 10)")
    parser.add_argument("--arrays", action="store_true", help="the masks of an explainer")
    add_run_options(parser, seed=False)


def run(options: argparse.Namespace) -> None:
    """Run the study and print a row for each case and number of masks."""
    parts = []
    for case in options.cases:
        settings = {"case": case, "sizes": list(options.sizes), "arrays": options.arrays}
        settings["inputs"] = min(options.items or count_inputs(case), count_inputs(case))
        how = {name: getattr(options, name) for name in ("out", "jobs", "progress")}
        how["inputs"] = sources(case)
        parts.append(run_study(pool_rows, settings, range(options.seeds), **how))
    print(summary(pd.concat(parts, ignore_index=True)))


def pool_rows(settings: Mapping[str, Any], seed: int) -> list[Row]:
    """The fits of one run, alone and pooled."""
    case, rows = settings["case"], []
    inputs = range(settings["inputs"])
    for n in settings["sizes"]:
        drawn = [
            asked(case, k, n, seed) if settings["arrays"] else stored_pairs(case, k, n, seed)
            for k in inputs
        ]
        answers = [Answers(**each._asdict()) for each in drawn]
        pooled = eblime.EBLIME().pool([(each, None) for each in answers], inputs=len(inputs))
        for number, each, method in zip(inputs, answers, pooled, strict=True):
            truth = truth_of(case, number)
            for name, one in (("alone", eblime.EBLIME()), ("pooled", method)):
                [post] = fit_each(one, np.random.default_rng(0), [each])
                row = {"case": case, "N": n, "method": name, "input": number}
                rows.append({**row, **judge(post, truth)})
    return rows


def stored_pairs(case: str, number: int, n: int, seed: int) -> Population:
    """Some of the stored masks of a photo, each with its complement."""
    both = pairs_together(case, population(case, number))
    rng = np.random.default_rng([seed, number])
    first = 2 * rng.permutation(len(both.masks) // 2)[: n // 2]
    return both.take((first[:, None] + [0, 1]).ravel())


def summary(rows: pd.DataFrame) -> str:
    """Means over photos and seeds, pooled over alone, as Markdown."""
    means = rows.groupby(["case", "N", "method"], sort=False).mean(numeric_only=True)
    apart = sum(abs(means[f"stated {k}"] - means[f"true {k}"]) for k in range(BINS))
    means["sign"] = apart / means["features"]
    lines = []
    for (case, n), part in means.groupby(["case", "N"], sort=False):
        alone, pooled = (part.loc[case, n, name] for name in ("alone", "pooled"))
        ratios = [f"{pooled[name] / alone[name]:.2f}" for name in ("square", "score")]
        both = [f"{alone[name]:.3f} / {pooled[name]:.3f}" for name in ("all", "top", "sign")]
        lines.append([TITLES[str(case)], n, *ratios, *both])
    heads = ["case", "N", "MSE", "score", "coverage, alone / pooled", "most important", "P(>0)"]
    return table(heads, lines)
