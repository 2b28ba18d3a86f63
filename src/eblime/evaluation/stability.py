"""Two studies of the posterior: the ridge parameter, and the agreement of repeated runs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from eblime._checks import check_choice, check_count
from eblime._progress import Progress
from eblime._types import FloatArray
from eblime.answers import Answers
from eblime.evaluation.agreement import agreement_of, ridge_interval
from eblime.evaluation.cases import CASES, item
from eblime.evaluation.study import Row, check_methods, run_study, to_table
from eblime.methods.eblime import EBLIME
from eblime.methods.regression import fit
from eblime.posterior import Posterior

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
) -> Any:
    """The ridge parameter over many inputs: Fig. 5 of the paper, and the full posterior.

    Returns a frame with one row per input: `log_mean`, log E(lambda | Y) on the published grid in
    (0, 1], and the median and 95 % interval of lambda on the whole half-line.
    """
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
) -> Any:
    """How much repeated runs differ, and whether the posterior predicts it.

    Returns a frame with one row per input, method and number of masks: `overlap`, the mean Jaccard
    index of the `top` features of two runs; `spread`, the standard deviation of the means over
    runs; `claimed`, the posterior's own standard deviation, which should be about as large;
    `sign_flips`, `vsi` and `csi` of the `top` features (`eblime.evaluation.agreement`).
    """
    check_methods(methods)
    check_count("runs", runs)
    settings = {
        "dataset": dataset,
        "n": [int(value) for value in n],
        "runs": int(runs),
        "top": int(top),
        "methods": list(methods),
        "seed": int(seed),
    }
    return _run(_stability_rows, settings, items, jobs=jobs, out=out, progress=progress)


def _run(task: Any, settings: dict[str, Any], items: int | None, **how: Any) -> Any:
    """Run a task over the inputs of a case."""
    check_choice("dataset", settings["dataset"], tuple(CASES))
    available = CASES[settings["dataset"]].count()
    count = min(available, 40 if items is None else items)
    return to_table(run_study(task, settings, range(count), **how))


def _generator(settings: Mapping[str, Any], *key: int) -> np.random.Generator:
    """A generator that depends only on the seed of the study and on `key`."""
    return np.random.default_rng(np.random.SeedSequence(settings["seed"], spawn_key=key))


def _lambda_rows(settings: Mapping[str, Any], number: int) -> list[Row]:
    """The ridge parameter of one input."""
    rng = _generator(settings, number)
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
    case = item(settings["dataset"], number)
    rows: list[Row] = []
    for n in settings["n"]:
        drawn = [
            case.sample(_generator(settings, number, n, run), n) for run in range(settings["runs"])
        ]
        for name in settings["methods"]:
            posts = [fit(masks, scores, weights, name, rng=0) for masks, scores, weights in drawn]
            means = np.array([post.mean for post in posts])
            found = agreement_of(means, _intervals(posts, drawn), top=settings["top"])
            claimed = (
                float(np.mean([post.sd.mean() for post in posts])) if posts[0].has_spread else None
            )
            rows.append(
                {
                    "dataset": settings["dataset"],
                    "item": number,
                    "n": n,
                    "method": name,
                    "overlap": found.overlap,
                    "spread": float(means.std(axis=0, ddof=1).mean()),
                    "claimed": claimed,
                    "sign_flips": found.sign_flips,
                    "vsi": found.vsi,
                    "csi": found.csi,
                }
            )
    return rows


def _intervals(posts: Sequence[Posterior], drawn: Sequence[Sequence[FloatArray]]) -> FloatArray:
    """95 % intervals of every run, (runs, p, 2); lime's are those of its ridge regression."""
    if posts[0].has_spread:
        return np.array([post.interval() for post in posts])
    return np.array(
        [
            ridge_interval(Answers(masks=masks, scores=scores, weights=weights))
            for masks, scores, weights in drawn
        ]
    )
