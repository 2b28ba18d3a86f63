"""Localisation: how often the defect lies under the superpixels that speak most for it.

The paper's Table 1, with what two counts of 69 leave uncertain: the methods see the same images and
masks, so that they are compared by the images on which they differ.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from eblime._checks import check_choice, check_count
from eblime._types import FloatArray
from eblime.evaluation.study import Row, run_study, to_table
from eblime.explainer import ImageExplainer
from eblime.methods.regression import METHODS

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
    progress: bool | Callable[[int, int], object] = False,
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
        check_choice("methods", name, tuple(METHODS))
    check_count("n", n)
    check_count("top", top)
    there = len(_faulty(dataset)[0])
    if jobs > 1:  # trained once, here, and not in every process
        for number in range(there):
            _model(dataset, number)
    count = there if items is None else min(items, there)
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
    """Defects found by each method, of how many, with exact 95 % intervals.

    Images that the model does not take for faulty are left out: there is nothing to locate.
    """
    rows = []
    seen = table[table["score"] > 0.5]
    for (dataset, name), part in seen.groupby(["dataset", "method"], sort=False):
        hit, total = int(part["found"].sum()), len(part)
        interval = stats.binomtest(hit, total).proportion_ci(method="exact")
        loose = int(part["found_loosely"].sum())
        rows.append(
            {
                "dataset": dataset,
                "method": name,
                "found": hit,
                "of": total,
                "share": hit / total,
                "low": interval.low,
                "high": interval.high,
                "found_loosely": loose,
            }
        )
    return to_table(rows)


def mcnemar(table: Any, first: str, second: str) -> dict[str, float]:
    """How two methods differ on the same images: exact test and interval of the difference.

    Only images that one finds and the other does not can tell them apart; given their number, who
    found them is a coin under no difference (McNemar 1947), and the coin's exact interval gives the
    difference of the shares.
    """
    wide = (
        table[table["score"] > 0.5]
        .pivot(index="item", columns="method", values="found")
        .astype(bool)
    )
    only_first = int((wide[first] & ~wide[second]).sum())
    only_second = int((~wide[first] & wide[second]).sum())
    differ, total = only_first + only_second, len(wide)
    if differ == 0:
        return {"first": 0, "second": 0, "p": 1.0, "difference": 0.0, "low": 0.0, "high": 0.0}
    test = stats.binomtest(only_first, differ)
    coin = test.proportion_ci(method="exact")
    return {
        "first": only_first,
        "second": only_second,
        "p": float(test.pvalue),
        "difference": (only_first - only_second) / total,
        "low": (2 * coin.low - 1) * differ / total,
        "high": (2 * coin.high - 1) * differ / total,
    }


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
