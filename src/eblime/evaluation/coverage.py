"""Coverage: how often intervals contain the truth, and how wide they are.

The result depends on what counts as the truth. lime's ridge has a free intercept, equation (1) of
the paper has none, and a method that estimates one cannot cover the other. Every row of a result
names its truth.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from eblime._checks import check_choice, check_count, check_level
from eblime._progress import Progress
from eblime.evaluation.cases import CASES, TRUTHS, item, truth_of
from eblime.evaluation.scores import judged
from eblime.evaluation.study import (
    MOST_ITEMS,
    Row,
    check_methods,
    count_items,
    run_study,
    study_generator,
    to_table,
)
from eblime.methods.regression import as_method, fit

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["coverage", "summary"]

_METHODS = ("bayeslime", "eblime-paper", "eblime")


def coverage(
    dataset: str,
    *,
    n: Sequence[int] = (50, 100, 200, 300, 400, 500),
    seeds: int = 5,
    items: int | None = None,
    methods: Sequence[str] = _METHODS,
    truths: Sequence[str] = ("exact", "paper"),
    prob: float = 0.95,
    seed: int = 0,
    jobs: int = 1,
    out: str | os.PathLike[str] | None = None,
    progress: Progress = None,
) -> pd.DataFrame:
    """Coverage, width and interval score for one row of the paper's table.

    Parameters
    ----------
    dataset
        "french-bulldog", "broccoli", "corn", "scuba-diver", "mixed", "digit-1" to "digit-9",
        "compas" or "german"; not in the paper: "stored-photos" and "stored-games" (see
        `eblime.datasets.stored`).
    n
        Numbers of masks.
    seeds
        Number of independent draws for each number of masks.
    items
        Number of photos, digits or table rows; None is all of them, at most 40.
    methods, truths
        Names of methods; "exact", "lime" or "paper" (see `truth_of`).
    prob
        Level of the intervals.
    seed
        Seed of the whole study; every item has its own generator.
    jobs, out, progress
        Number of processes; a folder for the results, from which a later call resumes; True for
        a progress bar, or a function that is called with (done, total).

    Returns
    -------
    pandas.DataFrame
        One row per item, number of masks, seed, method and truth, with the columns coverage (of
        all features), top_1 and top_2_3 (of the features with the largest absolute truth), width,
        score and features.

    Examples
    --------
    >>> from eblime.evaluation.coverage import coverage, summary
    >>> table = coverage(
    ...     "compas", n=[50], seeds=1, items=2, methods=["eblime"], truths=["lime"]
    ... )  # doctest: +SKIP
    >>> summary(table)[["method", "truth", "n", "items"]].values.tolist()  # doctest: +SKIP
    [['eblime', 'lime', 50, 2]]
    """
    check_choice("dataset", dataset, tuple(CASES))
    check_methods(methods)
    for name in truths:
        check_choice("truths", name, TRUTHS)
    for name, value in (("seeds", seeds), *(("n", count) for count in n)):
        check_count(name, value)
    count = count_items(items, lambda: CASES[dataset].count(dataset), most=MOST_ITEMS)
    settings = {
        "dataset": dataset,
        "n": [int(value) for value in n],
        "seeds": int(seeds),
        "methods": list(methods),
        "truths": list(truths),
        "prob": check_level("prob", prob),
        "seed": int(seed),
    }
    rows = run_study(coverage_rows, settings, range(count), out=out, jobs=jobs, progress=progress)
    return to_table(rows)


def coverage_rows(settings: Mapping[str, Any], number: int) -> list[Row]:
    """All rows of one item; they depend only on the settings and the number."""
    found = item(settings["dataset"], number)
    truths = {kind: truth_of(found, kind) for kind in settings["truths"]}
    methods = {name: as_method(name) for name in settings["methods"]}
    rows: list[Row] = []
    for n in settings["n"]:
        for draw in range(settings["seeds"]):
            rng = study_generator(settings, number, n, draw)
            masks, scores, weights = found.sample(rng, n)
            for name, method in methods.items():
                post = fit(masks, scores, weights, method, rng=rng)
                ends = post.interval(settings["prob"])
                for kind, truth in truths.items():
                    head = {"dataset": settings["dataset"], "item": number, "n": n, "seed": draw}
                    measures = judged(ends, truth, settings["prob"])
                    rows.append({**head, "method": name, "truth": kind, **measures})
    return rows


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Coverage, width and score by method, truth and number of masks.

    Features weigh equally; in `top_1` and `top_2_3`, the coverage of the most important features,
    explanations do.

    Examples
    --------
    >>> import pandas as pd
    >>> from eblime.evaluation.coverage import summary
    >>> table = pd.DataFrame(
    ...     {
    ...         "dataset": "compas",
    ...         "item": [0, 1],
    ...         "n": 100,
    ...         "seed": 0,
    ...         "method": "eblime",
    ...         "truth": "exact",
    ...         "coverage": [1.0, 0.8],
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
    weighted = table.assign(
        **{name: table[name] * table["features"] for name in ("coverage", "width", "score")}
    )
    sums = weighted.groupby(keys, sort=False)[["coverage", "width", "score", "features"]].sum()
    means = sums[["coverage", "width", "score"]].div(sums["features"], axis=0)
    per_seed = weighted.groupby([*keys, "seed"], sort=False)[["coverage", "features"]].sum()
    by_seed = per_seed["coverage"] / per_seed["features"]
    means["seed_sd"] = by_seed.groupby(level=keys, sort=False).std().fillna(0.0)
    means[["top_1", "top_2_3"]] = table.groupby(keys, sort=False)[["top_1", "top_2_3"]].mean()
    means["items"] = table.groupby(keys, sort=False)["item"].nunique()
    return means.reset_index()
