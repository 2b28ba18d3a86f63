"""Coverage by rank: how often the intervals of the most important features contain the truth.

An average over features hides the few that people read. For every case and number of masks this
prints how often 95 % intervals contain the truth for all features, for the most important one (by
its true absolute importance) and for the next two, with the mean interval score and the root mean
square error, both divided by those of the common ridge parameter, `EBLIME(local=False)`.

The truth is the weighted linear fit, intercept free, to a whole population of answers: all masks
of photos with at most 13 superpixels, 10,000 masks of photos with about 36, 20,000 perturbed rows
of tables. Masks are drawn from that population with replacement, so that nothing else is unknown.

- photos: EfficientNet-Lite0, from the stored tables (p13, p40);
- German credit, boosted trees; breast cancer, logistic regression on standardised columns and on
  the columns as they are; a linear function of 100 columns that uses 5.

    EBLIME_DATA=... python -m studies coverage-by-rank --quick
    EBLIME_DATA=... python -m studies all --only coverage-by-rank    # and store it for the page
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

import eblime
from studies.intervals import interval_measures
from studies.populations import TITLES, best_fit, count_inputs, population, run_cases
from studies.runner import Row, add_run_options, positive
from studies.tables import table

__all__ = ["coverage_by_rank", "results_table"]

KEYS = ["case", "N", "method"]
SIZES = (100, 200, 500, 1000)
BASELINE = "EBLIME(local=False)"
METHODS = {
    BASELINE: eblime.EBLIME(local=False),
    "EBLIME()": eblime.EBLIME(),
    "BayesLIME()": eblime.BayesLIME(),
    "EBLIME.paper()": eblime.EBLIME.paper(),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the study."""
    parser.add_argument("--cases", nargs="+", default=list(TITLES), choices=list(TITLES))
    parser.add_argument("--fits", type=positive, default=100, help="in each cell, at least")
    parser.add_argument("--sizes", type=positive, nargs="+", default=list(SIZES), help="of masks")
    parser.add_argument("--quick", action="store_true", help="20 fits in each cell, two sizes")
    add_run_options(parser, seed=False)


def run(options: argparse.Namespace) -> None:
    """Run the study and print a table for each case."""
    if vars(options).pop("quick"):
        options.sizes, options.fits = list(SIZES[:2]), 20
    print(results_table(coverage_by_rank(**vars(options))))


def coverage_by_rank(
    *,
    cases: Sequence[str] = tuple(TITLES),
    fits: int = 100,
    sizes: Sequence[int] = SIZES,
    items: int | None = None,
    **how: Any,
) -> pd.DataFrame:
    """One row per case, number of masks and method: means over inputs and draws.

    The interval score and the root mean square error are relative to the common ridge parameter.
    `how` are the other settings of `run_study`.
    """
    options = argparse.Namespace(items=items, **how)
    rows = run_cases(rank_rows, {"sizes": list(sizes), "fits": fits}, cases, options)
    return summary(rows.drop(columns="item"))


def rank_rows(settings: Mapping[str, Any], number: int) -> list[Row]:
    """Draws of masks from one input, fitted by every method."""
    case, rows = settings["case"], []
    whole = population(case, number)
    truth = best_fit(*whole)
    for n in settings["sizes"]:
        for draw in range(-(-settings["fits"] // count_inputs(case))):
            rng = np.random.default_rng([number, n, draw])
            masks, scores, weights = whole.take(rng.integers(len(whole.masks), size=n))
            for name, method in METHODS.items():
                post = eblime.fit(masks, scores, weights, method=method, rng=rng)
                found = interval_measures(post.interval(0.95), truth, 0.95)
                row = {"case": case, "item": number, "N": n, "method": name}
                row |= {"all": found["coverage"], "top 1": found["top_1"]}
                row |= {"top 2-3": found["top_2_3"], "score": found["score"]}
                rows.append({**row, "square": np.mean((post.mean - truth) ** 2)})
    return rows


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Means by cell, score and root mean square error relative to the common ridge parameter."""
    means = rows.groupby(KEYS, sort=False).mean()
    means["error"] = np.sqrt(means.pop("square"))
    for name in ("score", "error"):
        common = means[name].xs(BASELINE, level="method")
        means[name] = means[name] / common.reindex(means.index.droplevel("method")).to_numpy()
    return means.reset_index()


def results_table(means: pd.DataFrame) -> str:
    """Markdown: a table for each case, a line for each method, N along each cell."""
    digits = {"all": 3, "top 1": 2, "top 2-3": 2, "score": 2, "error": 2}
    parts = []
    for case, methods in means.groupby("case", sort=False):
        rows = []
        for method, part in methods.groupby("method", sort=False):
            cells = [
                " / ".join(f"{value:.{n}f}".lstrip("0") for value in part[name])
                for name, n in digits.items()
            ]
            rows.append([f"`{method}`", *cells])
        title = TITLES[str(case)]
        parts += [
            f"**{title[0].upper()}{title[1:]}**",
            table(["method", *digits], rows, right=None),
        ]
    return "\n\n".join(parts)
