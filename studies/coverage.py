"""Coverage: how often intervals contain the truth, and how wide they are (table 2, figure 3).

The result depends on what counts as the truth. lime's ridge has a free intercept, equation (1) of
the paper has none, and a method that estimates one cannot cover the other. Every row of a result
names its truth: "exact" is lime's ridge on all masks, "lime" the same on 10,000 masks, "paper"
equation (1) on 10,000 masks. An interrupted run resumes where it stopped.

    python -m studies coverage --dataset german --n 100 200 400 --seeds 2 --items 20
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm

import eblime
from eblime import registry
from eblime._types import FloatArray
from eblime.methods.regression import as_method
from studies.cases import CASES, TRUTHS, count_items, item, truth_of
from studies.data import sources
from studies.intervals import interval_measures
from studies.paper import TABLE_2
from studies.runner import Row, add_run_options, positive, run_study, study_generator
from studies.tables import table

__all__ = ["coverage", "expected_coverage", "summary"]

METHODS = ("bayeslime", "eblime-paper", "eblime")
_WEIGHTED = ["coverage", "expected", "shrunk", "width", "score"]


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the study."""
    parser.add_argument("--dataset", default="german", choices=list(CASES))
    parser.add_argument(
        "--n", type=positive, nargs="+", default=[100, 200, 400], help="numbers of masks"
    )
    parser.add_argument("--seeds", type=positive, default=5, help="draws for each number of masks")
    parser.add_argument(
        "--methods", nargs="+", default=list(METHODS), choices=registry.names("methods")
    )
    parser.add_argument("--truths", nargs="+", default=["exact", "paper"], choices=TRUTHS)
    parser.add_argument("--prob", type=float, default=0.95, help="level of the intervals")
    add_run_options(parser, many="all, at most 40")


def run(options: argparse.Namespace) -> None:
    """Run the study and print coverage by method and truth beside the numbers in the paper."""
    found = summary(coverage(**vars(options)))
    counts = sorted(found["n"].unique())
    rows = []
    for (truth, name), part in found.groupby(["truth", "method"], sort=False):
        by_n = part.set_index("n")
        cells = [f"{by_n.loc[n, 'coverage']:.3f}" for n in counts]
        last = by_n.loc[counts[-1]]
        cells += [f"{last[rank]:.3f}" for rank in ("top_1", "top_2_3")]
        rows.append([name, truth, *cells, f"{last['width']:.3g}", f"{last['score']:.3g}"])
        if name == "bayeslime" and truth == "paper":
            for column in ("expected", "shrunk"):
                cells = [f"{by_n.loc[n, column]:.3f}" for n in counts]
                rows.append([name, f"paper, {column}", *cells, "", "", "", ""])
    for name, printed in TABLE_2.get(options.dataset, {}).items():
        cells = [f"{printed[n]:.3f}" if n in printed else "" for n in counts]
        rows.append([name, "as printed", *cells, "", "", "", ""])
    print(
        f"\n{CASES[options.dataset].title}: share of {100 * options.prob:g} % intervals that "
        f"contain the truth, {int(found['items'].max())} inputs; at N = {counts[-1]} also of the "
        "most important feature and of the next two, and width and interval score (smaller is "
        "better)\n"
    )
    head = ["method", "truth", *(f"N={n}" for n in counts), "top 1", "top 2-3", "width", "score"]
    print(table(head, rows, right=2))


def coverage(
    dataset: str,
    *,
    n: Sequence[int] = (50, 100, 200, 300, 400, 500),
    seeds: int = 5,
    items: int | None = None,
    methods: Sequence[str] = METHODS,
    truths: Sequence[str] = ("exact", "paper"),
    prob: float = 0.95,
    seed: int = 0,
    **how: Any,
) -> pd.DataFrame:
    """One row per item, number of masks, seed, method and truth, for one row of the paper's table.

    Columns: coverage (of all features), top_1 and top_2_3 (of the features with the largest
    absolute truth), width, score and features. `expected` is the coverage of intervals that are
    right for lime's ridge on all masks (see `expected_coverage`); `shrunk` that of intervals
    centred at BayesLIME's own estimate, if all masks had the weight of n. `how` are the other
    settings of `run_study`.
    """
    settings = {
        "dataset": dataset,
        "n": list(n),
        "seeds": seeds,
        "methods": list(methods),
        "truths": list(truths),
        "prob": prob,
        "seed": seed,
    }
    numbers = range(count_items(dataset, items))
    return run_study(coverage_rows, settings, numbers, inputs=sources(dataset), **how)


def coverage_rows(settings: Mapping[str, Any], number: int) -> list[Row]:
    """All rows of one item; they depend only on the settings and the number."""
    found = item(settings["dataset"], number)
    truths = {kind: truth_of(found, kind) for kind in settings["truths"]}
    all_masks, all_scores, all_weights = found.whole()
    exact = truths.get("exact", truth_of(found, "exact"))
    methods = {name: as_method(name) for name in settings["methods"]}
    rows: list[Row] = []
    for n in settings["n"]:
        as_n = all_weights * n / len(all_weights)
        shrunk = eblime.fit(all_masks, all_scores, as_n, "bayeslime").mean
        for draw in range(settings["seeds"]):
            rng = study_generator(settings, number, n, draw)
            masks, scores, weights = found.sample(rng, n)
            for name, method in methods.items():
                post = eblime.fit(masks, scores, weights, method, rng=rng)
                ends = post.interval(settings["prob"])
                for kind, truth in truths.items():
                    head = {"dataset": settings["dataset"], "item": number, "n": n, "seed": draw}
                    measures = interval_measures(ends, truth, settings["prob"])
                    for column, centre in (("expected", exact), ("shrunk", shrunk)):
                        shift = truth - centre
                        measures[column] = expected_coverage(ends, shift, settings["prob"])
                    rows.append({**head, "method": name, "truth": kind, **measures})
    return rows


def expected_coverage(ends: FloatArray, shifts: FloatArray, prob: float) -> float:
    """Coverage of normal intervals of these widths that are right for a truth `shifts` away.

    It says how much of a low coverage is due to the distance between two definitions of the truth.

    Examples
    --------
    >>> import numpy as np
    >>> ends = np.array([[-1.96, 1.96], [-1.96, 1.96]])
    >>> expected_coverage(ends, np.zeros(2), 0.95)
    0.95
    >>> round(expected_coverage(ends, np.full(2, 1.96), 0.95), 2)
    0.5
    """
    z = norm.ppf((1 + prob) / 2)
    away = 2 * z * np.abs(shifts) / np.maximum(ends[:, 1] - ends[:, 0], np.finfo(float).tiny)
    return float(np.mean(norm.cdf(z - away) - norm.cdf(-z - away)))


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Coverage, width and score by method, truth and number of masks.

    Features weigh equally; in `top_1` and `top_2_3`, the coverage of the most important features,
    explanations do.

    Examples
    --------
    >>> import pandas as pd
    >>> from studies.coverage import summary
    >>> table = pd.DataFrame(
    ...     {
    ...         "dataset": "compas",
    ...         "item": [0, 1],
    ...         "n": 100,
    ...         "seed": 0,
    ...         "method": "eblime",
    ...         "truth": "exact",
    ...         "coverage": [1.0, 0.8],
    ...         "expected": 0.95,
    ...         "shrunk": 0.95,
    ...         "top_1": [1.0, 1.0],
    ...         "top_2_3": [1.0, 0.5],
    ...         "width": [0.1, 0.2],
    ...         "score": [0.1, 0.3],
    ...         "features": 7,
    ...     }
    ... )
    >>> summary(table)[["method", "coverage", "top_2_3", "items"]].round(2).values.tolist()
    [['eblime', 0.9, 0.75, 2]]
    """
    keys = ["dataset", "method", "truth", "n"]
    weighted = table.assign(**{name: table[name] * table["features"] for name in _WEIGHTED})
    sums = weighted.groupby(keys, sort=False)[[*_WEIGHTED, "features"]].sum()
    means = sums[_WEIGHTED].div(sums["features"], axis=0)
    per_seed = weighted.groupby([*keys, "seed"], sort=False)[["coverage", "features"]].sum()
    by_seed = per_seed["coverage"] / per_seed["features"]
    means["seed_sd"] = by_seed.groupby(level=keys, sort=False).std().fillna(0.0)
    means[["top_1", "top_2_3"]] = table.groupby(keys, sort=False)[["top_1", "top_2_3"]].mean()
    means["items"] = table.groupby(keys, sort=False)["item"].nunique()
    return means.reset_index()
