"""Localisation: how often the most important superpixels cover the defect.

This is Table 1 of the paper, with the statistical uncertainty of two counts out of 69. All methods
use the same images and masks, so they are compared by the images on which they differ.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from eblime._checks import check_choice, check_count
from eblime._progress import Progress
from eblime._types import FloatArray
from eblime.engine.calls import Calls
from eblime.evaluation.faulty_parts import PARTS, faulty_parts
from eblime.evaluation.scores import mean_interval
from eblime.evaluation.study import (
    Row,
    check_methods,
    count_items,
    run_study,
    study_generator,
    to_table,
)
from eblime.explainers.image import ImageExplainer

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["counts", "covered", "localisation", "mcnemar"]

_METHODS = ("lime", "bayeslime", "eblime-paper", "eblime")


def localisation(
    dataset: str = "ultrasonic",
    *,
    n: int = 200,
    top: int = 5,
    superpixels: int = 40,
    items: int | None = None,
    methods: Sequence[str] = _METHODS,
    seed: int = 0,
    jobs: int = 1,
    out: str | os.PathLike[str] | None = None,
    progress: Progress = None,
) -> pd.DataFrame:
    """Locate the defects of parts by explaining the classifier's predictions.

    A defect counts as found if the `top` superpixels with the largest positive importances cover at
    least half of it; for `found_loosely` any overlap is enough.

    Parameters
    ----------
    dataset
        "ultrasonic": the simulated scans of printed blocks; "tiles": real magnetic tiles;
        "drilled": real ultrasonic scans of drilled holes, where each hole is explained by a
        network that was not trained on it.
    n, top, superpixels
        Number of masks, number of superpixels that count, and approximate number of superpixels.
    items, methods, seed, jobs, out, progress
        As for `coverage`.

    Returns
    -------
    pandas.DataFrame
        One row per image and method, with the columns covered (share of the defect), found,
        found_loosely, score and others; `lambda_mean` is missing for a method without a ridge
        parameter.

    Examples
    --------
    >>> from eblime.evaluation.localisation import localisation
    >>> table = localisation(n=50, items=2, methods=["lime", "eblime"])  # doctest: +SKIP
    >>> table["method"].tolist()  # doctest: +SKIP
    ['lime', 'eblime', 'lime', 'eblime']
    """
    check_choice("dataset", dataset, PARTS)
    check_methods(methods)
    for name, value in (("n", n), ("top", top), ("superpixels", superpixels)):
        check_count(name, value)
    count = count_items(items, lambda: len(faulty_parts(dataset).images))
    if jobs > 1:  # train once, here, and not in every process
        found = faulty_parts(dataset)
        for number in np.unique(found.numbers[:count]):
            found.network(int(number))
    settings = {
        "dataset": dataset,
        "n": int(n),
        "top": int(top),
        "superpixels": int(superpixels),
        "methods": list(methods),
        "seed": int(seed),
    }
    rows = run_study(
        localisation_rows, settings, range(count), out=out, jobs=jobs, progress=progress
    )
    return to_table(rows)


def localisation_rows(settings: Mapping[str, Any], number: int) -> list[Row]:
    """All rows of one image."""
    part = faulty_parts(settings["dataset"]).part(number)
    explainer = ImageExplainer(
        part.model,
        segmentation=("slic", {"n_segments": settings["superpixels"], "compactness": 1.0}),
        n_masks=settings["n"],
        calls=Calls(batch_size=50),
        progress=False,
    )
    asked = explainer.explain(part.image, target=1, rng=study_generator(settings, number))
    head = {"dataset": settings["dataset"], "item": number, "part": part.number}
    rows = []
    for name in settings["methods"]:
        post = asked.refit(name).posterior
        share = covered(post.mean, asked.segments, part.defect, settings["top"])
        found = {"covered": share, "found": share >= 0.5, "found_loosely": share > 0}
        lam = post.extras.get("lam")
        fit = {"r2": post.r2, "lambda_mean": None if lam is None else float(lam.mean)}
        rows.append({**head, "method": name, **found, "score": asked.prediction, **fit})
    return rows


def covered(
    mean: FloatArray, labels: NDArray[np.intp], defect: NDArray[np.bool_], top: int
) -> float:
    """Share of a defect that the `top` superpixels with the largest positive means cover.

    Examples
    --------
    >>> import numpy as np
    >>> from eblime.evaluation.localisation import covered
    >>> labels = np.array([[0, 0, 1, 1]])
    >>> covered(np.array([0.1, 0.8]), labels, np.array([[False, True, True, True]]), top=1)
    0.6666666666666666
    """
    order = np.argsort(-mean, kind="stable")[:top]
    chosen = order[mean[order] > 0]
    return float(np.isin(labels[defect], chosen).mean())


def counts(table: pd.DataFrame) -> pd.DataFrame:
    """Number of defects found by each method, with 95 % intervals of the share.

    Images that the model classifies as free of defects are left out. The intervals are those of
    Clopper and Pearson. If several images show the same part, they are not independent: the
    interval is then that of the mean over parts (Student's t).

    Examples
    --------
    >>> import pandas as pd
    >>> from eblime.evaluation.localisation import counts
    >>> table = pd.DataFrame(
    ...     {
    ...         "dataset": "ultrasonic",
    ...         "part": [0, 1, 2, 3],
    ...         "method": "eblime",
    ...         "found": [True, True, True, False],
    ...         "found_loosely": True,
    ...         "score": 0.9,
    ...     }
    ... )
    >>> counts(table)[["method", "found", "of", "low", "high"]].round(2).values.tolist()
    [['eblime', 3, 4, 0.19, 0.99]]
    """
    rows = []
    for (dataset, name), part in _classified_faulty(table).groupby(
        ["dataset", "method"], sort=False
    ):
        hit, total = int(part["found"].sum()), len(part)
        exact = stats.binomtest(hit, total).proportion_ci()
        share, low, high = hit / total, float(exact.low), float(exact.high)
        by_part = part.groupby("part")["found"].mean().to_numpy(dtype=float)
        if len(by_part) < total:
            share, (low, high) = float(by_part.mean()), mean_interval(by_part)
        rows.append(
            {
                "dataset": dataset,
                "method": name,
                "found": hit,
                "of": total,
                "parts": len(by_part),
                "share": share,
                "low": max(0.0, low),
                "high": min(1.0, high),
                "found_loosely": int(part["found_loosely"].sum()),
            }
        )
    return to_table(rows)


def mcnemar(table: pd.DataFrame, first: str, second: str) -> dict[str, float]:
    """Compare two methods on the same images: exact test and interval of the difference.

    Only images on which one method succeeds and the other fails tell them apart. Without a
    difference, each of these favours either method with probability one half (McNemar 1947). The
    interval combines exact 97.5 % intervals of the two shares, and is conservative. If several
    images show the same part, parts are compared instead: a sign test over parts, and Student's
    interval of their mean.

    Examples
    --------
    One method finds all four defects, the other one of them:

    >>> import pandas as pd
    >>> from eblime.evaluation.localisation import mcnemar
    >>> table = pd.DataFrame(
    ...     {
    ...         "part": [0, 1, 2, 3] * 2,
    ...         "item": [0, 1, 2, 3] * 2,
    ...         "method": ["eblime"] * 4 + ["lime"] * 4,
    ...         "found": [True] * 4 + [True, False, False, False],
    ...         "score": 0.9,
    ...     }
    ... )
    >>> found = mcnemar(table, "eblime", "lime")
    >>> found["first"], found["second"], found["p"], found["difference"]
    (3, 0, 0.25, 0.75)
    """
    wide = _classified_faulty(table).pivot(index=["part", "item"], columns="method", values="found")
    gap = wide[first].astype(float) - wide[second].astype(float)
    by_part = np.asarray(gap.groupby(level="part").mean(), dtype=np.float64)
    more, less, total = int((by_part > 0).sum()), int((by_part < 0).sum()), len(by_part)
    p = float(stats.binomtest(more, more + less).pvalue) if more + less else 1.0
    if total < len(gap):
        low, high = mean_interval(by_part)
    else:
        ours, theirs = (
            stats.binomtest(count, total).proportion_ci(0.975) for count in (more, less)
        )
        low, high = ours.low - theirs.high, ours.high - theirs.low
    return {
        "first": more,
        "second": less,
        "of": total,
        "p": p,
        "difference": float(by_part.mean()),
        "low": float(low),
        "high": float(high),
    }


def _classified_faulty(table: pd.DataFrame) -> pd.DataFrame:
    """Rows of images that the model classifies as faulty."""
    found = table[table["score"] > 0.5]
    if found.empty:
        raise ValueError(
            "The model classifies none of these images as faulty, so there is no defect to locate."
        )
    return found
