"""Coverage: how often 95 % intervals hold the truth, and what they cost in width.

The truth is part of the question. lime's ridge leaves the intercept free, equation (1) of the paper
has none, and a method that estimates one cannot cover the other: every row says which it was.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from eblime import registry
from eblime._checks import check_choice, check_count, check_level
from eblime._progress import Progress
from eblime.evaluation.cases import CASES, TRUTHS, item, truth_of
from eblime.evaluation.scores import judged
from eblime.evaluation.study import Row, run_study, to_table
from eblime.methods.regression import as_method, fit

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
) -> Any:
    """Judge intervals on one row of the paper's table.

    Parameters
    ----------
    dataset
        "french-bulldog", "broccoli", "corn", "scuba-diver", "mixed", "digit-1" to "digit-9",
        "compas" or "german".
    n
        Numbers of masks.
    seeds
        How many times each is drawn.
    items
        How many photos, digits or rows; None is all, at most 40.
    methods, truths
        Names of methods; "exact", "lime" or "paper" (see `truth_of`).
    prob
        Level of the intervals.
    seed
        Of the whole study: item i draws from a generator of its own.
    jobs, out, progress
        Processes; a folder to resume from; True for a bar, or a function told (done, total).

    Returns
    -------
    pandas.DataFrame
        One row an item, number of masks, seed, method and truth: coverage, width, score, features.
    """
    check_choice("dataset", dataset, tuple(CASES))
    for name in methods:
        check_choice("methods", name, registry.names("methods"))
    for name in truths:
        check_choice("truths", name, TRUTHS)
    for name, value in (("seeds", seeds), *(("n", count) for count in n)):
        check_count(name, value)
    there = CASES[dataset].count()
    count = min(there, 40) if items is None else min(items, there)
    check_count("items", count)
    settings = {
        "dataset": dataset,
        "n": [int(value) for value in n],
        "seeds": int(seeds),
        "methods": list(methods),
        "truths": list(truths),
        "prob": check_level("prob", prob),
        "seed": int(seed),
    }
    rows = run_study(judge_item, settings, range(count), out=out, jobs=jobs, progress=progress)
    return to_table(rows)


def judge_item(settings: Mapping[str, Any], number: int) -> list[Row]:
    """All rows of one item: a function of the settings and its number alone."""
    found = item(settings["dataset"], number)
    truths = {kind: truth_of(found, kind) for kind in settings["truths"]}
    methods = {name: as_method(name) for name in settings["methods"]}
    rows: list[Row] = []
    for n in settings["n"]:
        for draw in range(settings["seeds"]):
            sequence = np.random.SeedSequence(settings["seed"], spawn_key=(number, n, draw))
            rng = np.random.default_rng(sequence)
            masks, scores, weights = found.sample(rng, n)
            for name, method in methods.items():
                post = fit(masks, scores, weights, method, rng=rng)
                ends = post.interval(settings["prob"])
                for kind, truth in truths.items():
                    head = {"dataset": settings["dataset"], "item": number, "n": n, "seed": draw}
                    judged_as = judged(ends, truth, settings["prob"])
                    rows.append({**head, "method": name, "truth": kind, **judged_as})
    return rows


def summary(table: Any) -> Any:
    """Coverage, width and score by method, truth and number of masks, features counted alike."""
    keys = ["dataset", "method", "truth", "n"]
    weighted = table.assign(
        **{name: table[name] * table["features"] for name in ("coverage", "width", "score")}
    )
    sums = weighted.groupby(keys, sort=False)[["coverage", "width", "score", "features"]].sum()
    means = sums[["coverage", "width", "score"]].div(sums["features"], axis=0)
    per_seed = weighted.groupby([*keys, "seed"], sort=False)[["coverage", "features"]].sum()
    by_seed = per_seed["coverage"] / per_seed["features"]
    means["seed_sd"] = by_seed.groupby(level=keys, sort=False).std().fillna(0.0)
    means["items"] = table.groupby(keys, sort=False)["item"].nunique()
    return means.reset_index()
