"""Coverage by rank: how often the intervals of the most important features contain the truth.

An average over features hides the few that people read. For every case and number of masks this
prints how often 95 % intervals contain the truth for all features, for the most important one (by
its true absolute importance) and for the next two, with the mean interval score and the root mean
square error, both divided by those of the common ridge parameter, `EBLIME(local=False)`.

The truth is the weighted linear fit, intercept free, to a whole population of answers: all masks
of photos with at most 13 superpixels, 10,000 masks of photos with about 36, 20,000 perturbed rows
of tables. Masks are drawn from that population with replacement, so that nothing else is unknown.

- photos: EfficientNet-Lite0, from the stored tables `imagenet-p13.npz` and `imagenet-p40.npz`;
- German credit, boosted trees; breast cancer, logistic regression on standardised columns and on
  the columns as they are; a linear function of 100 columns that uses 5.

    EBLIME_DATA=... python -m studies coverage-by-rank    # ten minutes
    EBLIME_DATA=... python -m studies coverage-by-rank --quick
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd

import eblime
from studies.intervals import interval_measures
from studies.populations import (
    Population,
    best_fit,
    german_rows,
    perturbed_rows,
    photos_13,
    photos_40,
)
from studies.tables import table

SIZES = (100, 200, 500, 1000)
BASELINE = "EBLIME(local=False)"
METHODS = {
    BASELINE: eblime.EBLIME(local=False),
    "EBLIME()": eblime.EBLIME(),
    "BayesLIME()": eblime.BayesLIME(),
    "EBLIME.paper()": eblime.EBLIME.paper(),
}


def german_credit() -> Iterator[Population]:
    """German credit with boosted trees."""
    return german_rows()


def breast_cancer(*, standardised: bool) -> Iterator[Population]:
    """Breast cancer with logistic regression, 20 rows that it has not seen."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    data, target = load_breast_cancer(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(data))
    logistic = LogisticRegression(max_iter=20_000)
    model = make_pipeline(StandardScaler(), logistic) if standardised else logistic
    model.fit(data[order[:450]], target[order[:450]])
    return perturbed_rows(model, data, list(data[order[450:470]]), 1)


def sparse_linear() -> Iterator[Population]:
    """A linear function of 100 normal columns that uses 5 of them."""
    data = np.random.default_rng(0).normal(size=(1000, 100))
    slopes = np.zeros((100, 1))
    slopes[:5, 0] = [3, -2, 2, -1, 1]
    return perturbed_rows(lambda rows: np.asarray(rows, float) @ slopes, data, list(data[:20]), 0)


CASES: dict[str, Callable[[], Iterator[Population]]] = {
    "photos, p = 11-13": photos_13,
    "photos, p = 28-45": photos_40,
    "German credit, p = 20": german_credit,
    "breast cancer, standardised, p = 30": lambda: breast_cancer(standardised=True),
    "breast cancer, as it is, p = 30": lambda: breast_cancer(standardised=False),
    "linear, 5 of p = 100": sparse_linear,
}


def judge(population: Population, truth: np.ndarray, n: int, seed: list[int]) -> Iterator[dict]:
    """One draw of n masks, fitted by every method."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(len(population[0]), size=n)
    for name, method in METHODS.items():
        post = eblime.fit(*(part[rows] for part in population), method=method, rng=rng)
        found = interval_measures(post.interval(0.95), truth, 0.95)
        yield {
            "method": name,
            "all": found["coverage"],
            "top 1": found["top_1"],
            "top 2-3": found["top_2_3"],
            "score": found["score"],
            "square": np.mean((post.mean - truth) ** 2),
        }


def study(cases: list[str], sizes: tuple[int, ...], fits: int) -> pd.DataFrame:
    """Means over inputs and draws, one row for each case, number of masks and method."""
    found = []
    for case in cases:
        inputs = [(population, best_fit(*population)) for population in CASES[case]()]
        draws = -(-fits // len(inputs))
        for n in sizes:
            for number, (population, truth) in enumerate(inputs):
                for draw in range(draws):
                    rows = judge(population, truth, n, [number, n, draw])
                    found += [{"case": case, "N": n, **row} for row in rows]
            cell = summary(pd.DataFrame(found)).tail(len(METHODS))
            print(cell.to_string(header=False), flush=True)
    return summary(pd.DataFrame(found))


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Means by cell, score and root mean square error relative to the common ridge parameter."""
    means = rows.groupby(["case", "N", "method"], sort=False).mean()
    means["error"] = np.sqrt(means.pop("square"))
    for name in ("score", "error"):
        common = means[name].xs(BASELINE, level="method")
        means[name] = means[name] / common.reindex(means.index.droplevel("method")).to_numpy()
    return means


def printed(means: pd.DataFrame) -> str:
    """Markdown: a table for each case, a line for each method, N along each cell."""
    digits = {"all": 3, "top 1": 2, "top 2-3": 2, "score": 2, "error": 2}
    parts = []
    case: Any
    for case, methods in means.groupby(level="case", sort=False):
        rows = []
        for method, part in methods.groupby(level="method", sort=False):
            cells = [
                " / ".join(f"{value:.{n}f}".lstrip("0") for value in part[name])
                for name, n in digits.items()
            ]
            rows.append([f"`{method}`", *cells])
        title = f"**{case[0].upper()}{case[1:]}**"
        parts += [title, table(["method", *digits], rows, right=None)]
    return "\n\n".join(parts)


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the study."""
    parser.add_argument("--cases", nargs="*", default=list(CASES), choices=list(CASES))
    parser.add_argument("--fits", type=int, default=100, help="fits in each cell, at least")
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES, help="numbers of masks")
    parser.add_argument("--quick", action="store_true", help="20 fits in each cell, two sizes")


def run(options: argparse.Namespace) -> None:
    """Print the tables."""
    sizes, fits = (SIZES[:2], 20) if options.quick else (tuple(options.sizes), options.fits)
    print(printed(study(options.cases, sizes, fits)))
