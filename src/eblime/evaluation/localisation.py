"""Localisation: how often the defect lies under the superpixels that speak most for it.

The paper's Table 1, with what two counts of 69 leave uncertain: the methods see the same images and
masks, so that they are compared by the images on which they differ.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from eblime import registry
from eblime._checks import check_choice, check_count
from eblime._progress import Progress
from eblime._types import FloatArray
from eblime.evaluation.study import Row, run_study, to_table
from eblime.explainers.image import ImageExplainer

__all__ = ["PARTS", "counts", "localisation", "mcnemar"]

_METHODS = ("lime", "bayeslime", "eblime-paper", "eblime")
PARTS = ("ultrasonic", "tiles", "drilled")


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
) -> Any:
    """Find the defects of parts by their explanations.

    A defect is found where at least half of it lies under the `top` superpixels of the largest
    positive importances; `found_loosely` asks that any of it does.

    Parameters
    ----------
    dataset
        "ultrasonic": the simulated scans of printed blocks; "tiles": real magnetic tiles;
        "drilled": real ultrasonic scans of drilled holes, each hole unknown to its network.
    n, top, superpixels
        Masks, superpixels that count, and about how many there are.
    items, methods, seed, jobs, out, progress
        As for `coverage`.

    Returns
    -------
    pandas.DataFrame
        One row an image and method: covered (a share of the defect), found, found_loosely, score.
    """
    check_choice("dataset", dataset, PARTS)
    for name in methods:
        check_choice("methods", name, registry.names("methods"))
    check_count("n", n)
    check_count("top", top)
    there = len(_faulty(dataset)[0])
    count = there if items is None else min(items, there)
    if jobs > 1:  # trained once, here, and not in every process
        for number in range(count):
            _model(dataset, number)
    settings = {
        "dataset": dataset,
        "n": int(n),
        "top": int(top),
        "superpixels": int(superpixels),
        "methods": list(methods),
        "seed": int(seed),
    }
    rows = run_study(locate_item, settings, range(count), out=out, jobs=jobs, progress=progress)
    return to_table(rows)


def locate_item(settings: Mapping[str, Any], number: int) -> list[Row]:
    """All rows of one image."""
    images, defects = _faulty(settings["dataset"])
    image, defect = images[number], defects[number]
    explainer = ImageExplainer(
        _model(settings["dataset"], number),
        segmentation=("slic", {"n_segments": settings["superpixels"], "compactness": 1.0}),
        n_masks=settings["n"],
        batch_size=50,
        progress=False,
    )
    seed = np.random.SeedSequence(settings["seed"], spawn_key=(number,))
    asked = explainer.explain(image, target=1, rng=np.random.default_rng(seed))
    labels: Any = asked.scene
    rows = []
    for name in settings["methods"]:
        post = asked.refit(name).posterior
        share = covered(post.mean, labels.labels, defect, settings["top"])
        rows.append(
            {
                "dataset": settings["dataset"],
                "item": number,
                "part": _part(settings["dataset"], number),
                "method": name,
                "covered": share,
                "found": share >= 0.5,
                "found_loosely": share > 0,
                "score": asked.prediction,
                "r2": post.r2,
                "lambda_mean": float(post.lam.mean),
            }
        )
    return rows


def covered(
    mean: FloatArray, labels: NDArray[np.intp], defect: NDArray[np.bool_], top: int
) -> float:
    """Share of a defect under the `top` superpixels of the largest positive means."""
    order = np.argsort(-mean, kind="stable")[:top]
    chosen = order[mean[order] > 0]
    return float(np.isin(labels[defect], chosen).mean())


def counts(table: Any) -> Any:
    """Defects found by each method, of how many, with 95 % intervals.

    Images that the model does not take for faulty are left out: there is nothing to locate. The
    intervals are Clopper and Pearson's; where several images show the same part they are no
    evidence of their own, and the interval is that of the mean over parts (Student's t).
    """
    rows = []
    for (dataset, name), part in _seen(table).groupby(["dataset", "method"], sort=False):
        hit, total = int(part["found"].sum()), len(part)
        exact = stats.binomtest(hit, total).proportion_ci()
        share, low, high = hit / total, float(exact.low), float(exact.high)
        by_part = part.groupby("part")["found"].mean().to_numpy(dtype=float)
        if len(by_part) < total:
            share, (low, high) = float(by_part.mean()), _mean_interval(by_part)
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


def mcnemar(table: Any, first: str, second: str) -> dict[str, float]:
    """How two methods differ on the same images: exact test, and interval of the difference.

    Only images that one finds and the other does not can tell them apart; given their number, who
    found them is a coin under no difference (McNemar 1947). The interval puts together exact 97.5 %
    intervals of the two shares, and is on the safe side. Where several images show the same part,
    parts are compared instead: a sign test over them, and Student's interval of their mean.
    """
    wide = _seen(table).pivot(index=["part", "item"], columns="method", values="found")
    gap = wide[first].astype(float) - wide[second].astype(float)
    by_part = gap.groupby(level="part").mean().to_numpy()
    more, less, total = int((by_part > 0).sum()), int((by_part < 0).sum()), len(by_part)
    p = float(stats.binomtest(more, more + less).pvalue) if more + less else 1.0
    if total < len(gap):
        low, high = _mean_interval(by_part)
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


def _seen(table: Any) -> Any:
    """Images that the model takes for faulty."""
    found = table[table["score"] > 0.5]
    if found.empty:
        raise ValueError("The model takes none of these images for faulty: nothing to locate.")
    return found


def _mean_interval(values: FloatArray) -> tuple[float, float]:
    """Student's 95 % interval of a mean."""
    if len(values) < 2:
        return -np.inf, np.inf
    half = stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return float(values.mean() - half), float(values.mean() + half)


def _part(dataset: str, number: int) -> int:
    """The part that an image shows: for drilled holes many images show one."""
    if dataset != "drilled":
        return number
    from eblime.datasets.drilled import drilled_patches

    holes = drilled_patches().holes
    return int(holes[holes >= 0][number])


@lru_cache(maxsize=3)
def _faulty(dataset: str) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Images with a defect, and where it is."""
    if dataset == "tiles":
        from eblime.datasets.tiles import tiles

        parts = tiles()
        return parts.images[parts.faulty], parts.defects[parts.faulty]
    if dataset == "drilled":
        from eblime.datasets.drilled import drilled_patches

        patches = drilled_patches()
        there = patches.holes >= 0
        return patches.images[there], patches.defects[there]
    from eblime.datasets.ultrasonic import scans

    faulty = [made for made in scans() if made.has_defect]
    return np.array([made.image for made in faulty]), np.array([made.defect for made in faulty])


def _model(dataset: str, number: int) -> Any:
    """The model that is explained; for drilled holes one that never saw this hole."""
    if dataset == "tiles":
        from eblime.datasets.tiles import tile_network

        return tile_network()
    if dataset == "drilled":
        from eblime.datasets.drilled import drilled_network, drilled_patches

        holes = drilled_patches().holes
        return drilled_network(int(holes[holes >= 0][number]))
    from eblime.datasets.ultrasonic import ultrasonic_network

    return ultrasonic_network()
