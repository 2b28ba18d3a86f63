"""What hidden parts of an image show, and how it is cut: which finds what the network looks at.

Grey images with a known defect (real magnetic tiles, and simulated ultrasonic scans) and photos
are cut into superpixels that follow the image or are compact. Hidden ones show their mean, a
blurred copy, the median of their surroundings, or black. All settings of an image have the same
number of masks. Of images that the network classifies as faulty:

- located: the five most important superpixels cover at least half of the defect;
- touched: the most important superpixel touches it.

Deletion and insertion count pixels, a tenth or a twentieth of the image at a time, so that
superpixels of any form can be compared: the mean score while the most important ones are hidden
(smaller is better) or shown (larger is better). They show black, the mean of the image and a
blurred copy in turn, and the result is the mean over these three, so that no setting is judged by
its own way of hiding alone.
R2 is that of scores held out from the fit.

Signals are the A-scans of `inspection`, cut into windows: the share of those classified as a hole
whose most important window holds the hole's echo, or is within 10 samples of it.

    python -m studies hiding --dataset tiles
    python -m studies hiding --dataset photos --items 12 --n 100 --steps 10
    python -m studies hiding --dataset signals
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from scipy import ndimage

import eblime
from eblime import measures
from eblime._types import FloatArray
from studies.charts.style import RESULTS
from studies.data import sources
from studies.data.echoes import echo_network, hole_probability
from studies.data.faulty_parts import faulty_parts
from studies.data.photos import photo_classifier, photo_set, read_square
from studies.inspection import NEAR, a_scan
from studies.runner import Row, add_run_options, positive, run_study, study_generator
from studies.tables import frame_table, write_csv

__all__ = ["hiding", "hiding_summary"]

DATASETS = ("tiles", "ultrasonic", "photos", "signals")
CUTS = {  # compactness
    "as the image": 10.0,
    "compact": 100.0,
}
WINDOWS = (10, 20, 40)
SIGNAL_HIDES = ("bridge", "mean", "zero", "noise")
MEASURES = ["located", "touched", "deletion", "insertion", "r2"]


def median(image: Any) -> Any:
    """An image in which a pixel is the median of its surroundings, a fifth of the image wide."""
    wide = max(image.shape[:2]) // 5
    return ndimage.median_filter(image, size=(wide, wide, 1), mode="nearest")


def blur(image: Any) -> Any:
    """An image blurred as by hide="blur"."""
    size, blurred = max(3, round(max(image.shape[:2]) / 10)), image.astype(np.float64)
    for _ in range(3):
        blurred = ndimage.uniform_filter(blurred, size=(size, size, 1), mode="nearest")
    return np.rint(blurred).astype(image.dtype)


HIDES: dict[str, Any] = {"mean": "mean", "blur": "blur", "median": median, "black": 0}
JUDGES = (
    np.zeros_like,
    lambda image: np.broadcast_to(image.mean(axis=(0, 1)).astype(image.dtype), image.shape),
    blur,
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the study."""
    parser.add_argument("--dataset", default="tiles", choices=DATASETS)
    parser.add_argument("--n", type=positive, default=200, help="masks per input")
    parser.add_argument("--steps", type=positive, default=20, help="of deletion and insertion")
    parser.add_argument("--store", action="store_true", help="write the rows to docs/results")
    add_run_options(parser)


def run(options: argparse.Namespace) -> None:
    """Run the study, and print the means over images."""
    settings = vars(options)
    store = settings.pop("store")
    rows = hiding(**settings)
    print(f"\n{frame_table(hiding_summary(rows), '{:.3f}')}\n")
    if store:
        write_csv(rows, RESULTS / f"hiding-{options.dataset}.csv", digits=5)


def hiding(
    dataset: str = "tiles",
    *,
    n: int = 200,
    steps: int = 20,
    items: int | None = None,
    seed: int = 0,
    jobs: int = 1,
    **how: Any,
) -> pd.DataFrame:
    """One row per image, way to cut and way to hide. `how` are settings of `run_study`."""
    if dataset == "signals":
        echo_network()  # train once, here, and not in every process
        count = 200
    elif dataset == "photos":
        count = len(photo_set("mixed"))
    else:
        faulty_parts(dataset).network(0)
        count = len(faulty_parts(dataset).images)
    settings = {"dataset": dataset, "n": n, "steps": steps, "seed": seed}
    numbers = range(min(items or count, count))
    inputs = sources("drilled" if dataset == "signals" else dataset)
    return run_study(hiding_rows, settings, numbers, inputs=inputs, jobs=jobs, **how)


def hiding_rows(settings: Mapping[str, Any], number: int) -> list[Row]:
    """All settings for one input; none for one that is not classified as faulty."""
    if settings["dataset"] == "signals":
        return _signal_rows(settings, number)
    defect = None
    if settings["dataset"] == "photos":
        model = photo_classifier()
        image = read_square(photo_set("mixed")[number].path)
        target = int(model(image[None]).argmax())
    else:
        part = faulty_parts(settings["dataset"]).part(number)
        image, model, defect, target = part.image, part.model, part.defect, 1
        if model(image[None])[0, 1] <= 0.5:
            return []
    stacked = image if image.ndim == 3 else image[..., None]
    rows = []
    for (cut, compactness), (hide, shown) in product(CUTS.items(), HIDES.items()):
        explainer = eblime.ImageExplainer(
            model,
            segmentation=("slic", {"compactness": compactness}),
            hide=shown,
            n_masks=settings["n"],
            progress=False,
        )
        e = explainer.explain(image, target, rng=study_generator(settings, number))
        row: Row = {"dataset": settings["dataset"], "item": number, "cut": cut, "hide": hide}
        if defect is not None:
            row["located"] = measures.covered_share(e, defect, top=5) >= 0.5
            top = e.segments == int(e.posterior.mean.argmax())
            row["touched"] = bool((top & defect).any())
        areas = [_areas(model, stacked, judge(stacked), e, settings["steps"]) for judge in JUDGES]
        deletion, insertion = np.mean(areas, axis=0).tolist()
        row |= {"deletion": deletion, "insertion": insertion, "r2": e.posterior.r2_held_out}
        rows.append({**row, "p": e.scene.n_features, "score": e.prediction})
    return rows


def _signal_rows(settings: Mapping[str, Any], number: int) -> list[Row]:
    rows: list[Row] = []
    signal, _, time = a_scan(settings, number)
    if hole_probability(signal[None])[0] <= 0.5:
        return rows
    for n, hide in product(WINDOWS, SIGNAL_HIDES):
        explainer = eblime.SignalExplainer(
            hole_probability,
            segmentation=("windows", {"n": n}),
            hide=0.0 if hide == "zero" else hide,
            n_masks=settings["n"],
            progress=False,
        )
        e = explainer.explain(signal, rng=study_generator(settings, number))
        top = int(e.posterior.mean.argmax())
        start, stop = np.linspace(0, len(signal), n + 1)[top : top + 2]
        row: Row = {"dataset": "signals", "item": number, "cut": f"{n} windows", "hide": hide}
        row["located"] = bool(start <= time < stop)
        row["touched"] = bool(start <= time + NEAR and time - NEAR < stop)
        rows.append({**row, "r2": e.posterior.r2_held_out, "score": e.prediction})
    return rows


def _areas(model: Any, shown: Any, hidden: Any, e: Any, steps: int) -> FloatArray:
    """Deletion and insertion: mean scores while the most important pixels are hidden or shown."""
    order = np.argsort(-e.posterior.mean[e.segments].ravel(), kind="stable")
    rank = np.empty(len(order), dtype=np.intp)
    rank[order] = np.arange(len(order))
    rank = rank.reshape(e.segments.shape)[..., None]
    cuts = [k * rank.size // steps for k in range(steps + 1)]
    batch = [np.where(rank < cut, hidden, shown) for cut in cuts]
    batch += [np.where(rank < cut, shown, hidden) for cut in cuts]
    scores = model(np.array(batch).reshape(-1, *e.scene.shown.shape))[:, e.target]
    halves = scores.astype(np.float64).reshape(2, -1)
    return np.asarray((halves[:, 1:] + halves[:, :-1]).mean(axis=1) / 2)


def hiding_summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Means over the inputs, for each way to cut and to hide."""
    settings = rows.groupby(["cut", "hide"], sort=False)
    table = settings[[name for name in MEASURES if name in rows]].mean()
    table.insert(0, "inputs", settings["item"].nunique())
    return table


def page_tables(found: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """The tables of the measurement page, from the stored rows of each data set."""
    known = {name: hiding_summary(rows) for name, rows in found.items()}
    columns = {}
    for name, title in (("tiles", "tiles"), ("ultrasonic", "scans")):
        table = known[name]
        for measure in ("located", "touched", "deletion", "r2"):
            columns[f"{title}: {'R²' if measure == 'r2' else measure}"] = table[measure]
    signals = known["signals"][["located", "touched", "r2"]].rename(columns={"r2": "R²"})
    images = pd.DataFrame(columns).reset_index()
    return {"hiding-images": images, "hiding-signals": signals.reset_index()}
