"""Two studies of the posterior: the ridge parameter, and the agreement of repeated runs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from eblime._checks import check_choice, check_count
from eblime._progress import Progress
from eblime.evaluation.agreement import agreement
from eblime.evaluation.cases import CASES, item
from eblime.evaluation.study import (
    MOST_ITEMS,
    Row,
    count_items,
    run_study,
    study_generator,
    to_table,
)
from eblime.explainers.compare import compare_with, parse_methods
from eblime.methods.eblime import EBLIME
from eblime.methods.regression import fit
from eblime.results.explanation import Explanation

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["lambda_study", "stability"]


def lambda_study(
    dataset: str,
    *,
    n: int = 200,
    items: int | None = None,
    seed: int = 0,
    jobs: int = 1,
    out: str | os.PathLike[str] | None = None,
    progress: Progress = None,
) -> pd.DataFrame:
    """The ridge parameter over many inputs: Fig. 5 of the paper, and the full posterior.

    Returns a frame with one row per input: `log_mean`, log E(lambda | Y) on the published grid in
    (0, 1], and the median and 95 % interval of lambda on the whole half-line.

    Examples
    --------
    >>> from eblime.evaluation.stability import lambda_study
    >>> table = lambda_study("compas", n=50, items=2)  # doctest: +SKIP
    >>> bool((table["low"] < table["high"]).all())  # doctest: +SKIP
    True
    """
    check_count("n", n)
    settings = {"dataset": dataset, "n": int(n), "seed": int(seed)}
    return _run(_lambda_rows, settings, items, jobs=jobs, out=out, progress=progress)


def stability(
    dataset: str,
    *,
    n: Sequence[int] = (100, 400),
    runs: int = 5,
    top: int = 3,
    items: int | None = None,
    methods: Sequence[str] = ("lime", "bayeslime", "eblime-paper", "eblime"),
    seed: int = 0,
    jobs: int = 1,
    out: str | os.PathLike[str] | None = None,
    progress: Progress = None,
) -> pd.DataFrame:
    """How much repeated runs differ, and whether the posterior predicts it.

    All methods ask about the same number of masks; those with the same design share them.

    Parameters
    ----------
    dataset
        As for `coverage`; also "stored-photos" and "stored-games" (see `eblime.datasets.stored`).
    n, runs, top
        Numbers of masks; explanations of each input; how many features count as chosen.
    methods
        Names of methods, or "method+design"; without a design, masks are drawn as in lime.
    items, seed, jobs, out, progress
        As for `coverage`.

    Returns
    -------
    pandas.DataFrame
        One row per input, method and number of masks: `overlap`, the mean Jaccard index of the
        `top` features of two runs; `sign_flips`, the share of features in either top whose sign
        differs between two runs; `vsi` and `csi`, the stability indices of Visani et al. (2022),
        as in `agreement`; `spread`, the standard deviation of the means over runs; `claimed`, the
        posterior's own standard deviation, which should be about as large, and which a point
        estimate does not have.

    Examples
    --------
    >>> from eblime.evaluation.stability import stability
    >>> table = stability("compas", n=[50], runs=2, items=1, methods=["eblime"])  # doctest: +SKIP
    >>> table[["method", "n"]].values.tolist()  # doctest: +SKIP
    [['eblime', 50]]
    """
    parse_methods(methods)
    for name, value in (("runs", runs), ("top", top), *(("n", count) for count in n)):
        check_count(name, value)
    if runs < 2:
        raise ValueError(f"`runs` must be >= 2; got {runs}.")
    settings = {
        "dataset": dataset,
        "n": [int(value) for value in n],
        "runs": int(runs),
        "top": int(top),
        "methods": list(methods),
        "seed": int(seed),
    }
    return _run(_stability_rows, settings, items, jobs=jobs, out=out, progress=progress)


def _run(task: Any, settings: dict[str, Any], items: int | None, **how: Any) -> pd.DataFrame:
    """Run a task over the inputs of a case."""
    dataset = settings["dataset"]
    check_choice("dataset", dataset, tuple(CASES))
    count = count_items(items, lambda: CASES[dataset].count(dataset), most=MOST_ITEMS)
    return to_table(run_study(task, settings, range(count), **how))


def _lambda_rows(settings: Mapping[str, Any], number: int) -> list[Row]:
    """The ridge parameter of one input."""
    rng = study_generator(settings, number)
    masks, scores, weights = item(settings["dataset"], number).sample(rng, settings["n"])
    printed = fit(masks, scores, weights, EBLIME.paper(), rng=rng)
    whole = fit(masks, scores, weights, EBLIME(local=False), rng=rng)
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


def _stability_rows(settings: Mapping[str, Any], number: int) -> list[Row]:
    """One input, explained several times."""
    found = item(settings["dataset"], number)
    rows: list[Row] = []
    for n in settings["n"]:
        explainer, x, target = found.question(n)
        runs = [
            compare_with(
                explainer,
                x,
                settings["methods"],
                target=target,
                rng=study_generator(settings, number, n, run),
            )
            for run in range(settings["runs"])
        ]
        for name in settings["methods"]:
            head = {"dataset": settings["dataset"], "item": number, "n": n, "method": name}
            rows.append({**head, **_agreement([run[name] for run in runs], settings["top"])})
    return rows


def _agreement(runs: Sequence[Explanation], top: int) -> Row:
    """How far repeated runs of a method agree."""
    found = agreement(runs, top=top)
    means = np.array([run.posterior.mean for run in runs])
    certain = runs[0].posterior.has_spread
    return {
        "overlap": found.overlap,
        "sign_flips": found.sign_flips,
        "vsi": found.vsi,
        "csi": None if np.isnan(found.csi) else found.csi,
        "spread": float(means.std(axis=0, ddof=1).mean()),
        "claimed": float(np.mean([run.posterior.sd.mean() for run in runs])) if certain else None,
    }
