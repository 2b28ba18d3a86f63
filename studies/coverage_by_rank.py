"""Coverage by rank: how often the intervals of the most important features contain the truth.

An average over features hides the few that people read. For every case and number of masks this
prints how often intervals contain the truth

- for all features, for the most important one by its true absolute importance ("top"), and for the
  next two; 95 % intervals;
- for the feature that the explanation puts first ("first"), which is what a reader picks, and for
  the two that it puts next;
- for all features and for the first one at 50 and 80 %;

with the mean interval score and the root mean square error, both divided by those of the common
ridge parameter, `EBLIME(local=False)`, and the expected calibration error of P(>0): the mean
distance, over ten bins of the stated probability, to the share of importances that are positive.

Masks are those that an explainer asks about by default. The truth is the weighted linear fit,
intercept free, to all masks (p13, games), to 5,000 random masks and their complements (p40), or to
32,768 masks of an array (tables).

- photos: EfficientNet-Lite0, all masks stored (p13), or asked once for each draw and kept (p40);
- games of shapiq with 12 to 16 features: classifiers of images and texts, models of tables;
- German credit, boosted trees; breast cancer, logistic regression on standardised columns and on
  the columns as they are.

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
from studies.populations import TITLES, asked, count_inputs, run_cases, truth_of
from studies.runner import Row, add_run_options, positive
from studies.tables import table

__all__ = ["coverage_by_rank", "results_table"]

KEYS = ["case", "N", "method"]
CASES = [case for case in TITLES if case != "sparse"]
SIZES = (100, 200, 500, 1000)
BINS = 10  # of P(>0)
BASELINE = "EBLIME(local=False)"
METHODS = {
    BASELINE: eblime.EBLIME(local=False),
    "EBLIME()": eblime.EBLIME(),
    "BayesLIME()": eblime.BayesLIME(),
    "EBLIME.paper()": eblime.EBLIME.paper(),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the study."""
    parser.add_argument("--cases", nargs="+", default=CASES, choices=CASES)
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
    cases: Sequence[str] = tuple(CASES),
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
    """Draws of masks for one input, fitted by every method; a smaller number is the first masks."""
    case, rows, most = settings["case"], [], max(settings["sizes"])
    truth = truth_of(case, number)
    for draw in range(-(-settings["fits"] // count_inputs(case))):
        whole = asked(case, number, most, draw)
        for n in settings["sizes"]:
            for name, method in METHODS.items():
                rng = np.random.default_rng([number, n, draw])
                post = eblime.fit(*whole.take(np.arange(n)), method=method, rng=rng)
                row = {"case": case, "item": number, "N": n, "method": name}
                rows.append({**row, **judge(post, truth)})
    return rows


def judge(post: eblime.Posterior, truth: np.ndarray) -> dict[str, float]:
    """What the study measures of one fit."""
    found = interval_measures(post.interval(0.95), truth, 0.95)
    row = {"all": found["coverage"], "top": found["top_1"], "next": found["top_2_3"]}
    order = post.order()
    inside = {prob: covered(post.interval(prob), truth)[order] for prob in (0.95, 0.8, 0.5)}
    row |= {"first": inside[0.95][0], "then": inside[0.95][1:3].mean()}
    for prob in (0.8, 0.5):
        row |= {f"all {prob:.0%}": inside[prob].mean(), f"first {prob:.0%}": inside[prob][0]}
    row |= {"score": found["score"], "square": float(np.mean((post.mean - truth) ** 2))}
    stated = post.prob_positive()
    place = np.minimum((stated * BINS).astype(int), BINS - 1)
    for k in range(BINS):  # sums, of which `summary` makes the calibration error
        here = place == k
        row |= {f"stated {k}": stated[here].sum(), f"true {k}": (truth[here] > 0).sum()}
    return {key: float(value) for key, value in row.items()} | {"features": len(truth)}


def covered(ends: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Whether each interval holds the truth, up to rounding."""
    slack = 1e-9 * np.abs(truth).max()
    return np.asarray((ends[:, 0] - slack <= truth) & (truth <= ends[:, 1] + slack))


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Means by cell, score and root mean square error relative to the common ridge parameter."""
    means = rows.groupby(KEYS, sort=False).mean()
    apart = sum(abs(means.pop(f"stated {k}") - means.pop(f"true {k}")) for k in range(BINS))
    means["sign"] = apart / means.pop("features")
    means["error"] = np.sqrt(means.pop("square"))
    for name in ("score", "error"):
        common = means[name].xs(BASELINE, level="method")
        means[name] = means[name] / common.reindex(means.index.droplevel("method")).to_numpy()
    return means.reset_index()


def results_table(means: pd.DataFrame) -> str:
    """Markdown: a table for each case, a line for each method, N along each cell."""
    digits = {"all": 3, "top": 2, "next": 2, "first": 2, "then": 2, "all 80%": 2, "all 50%": 2}
    digits |= {"first 80%": 2, "first 50%": 2, "sign": 3, "score": 2, "error": 2}
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
