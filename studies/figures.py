"""The paper's figures 1, 2, 4 and 5: the pictures, and the numbers that the page quotes.

Every image is explained twice: with the paper's masks (hidden superpixels are black, each is hidden
with probability one half) and with the library's (mean colour, complementary pairs). Photos are
also explained with the paper's masks of at most 13 superpixels. All methods are fitted to the same
masks. Pictures go to docs/images, numbers to docs/results. The photos of dogs may be used for
research only, so figure 2 shows an outline of each dog, drawn by hand, instead of the photo;
`--photos FILE` draws it with the photos.

    python -m studies figures --figure 2
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

import eblime
from eblime._types import FloatArray, IntArray
from eblime.domains.image.scene import SEGMENTER
from studies.charts.paper import GROUPS, good_explanations
from studies.charts.style import COLOURS, NAMES, RESULTS, save
from studies.data import sources
from studies.data.faulty_parts import faulty_parts
from studies.data.photos import cut_coarsely, photo_classifier, photo_set, read_square
from studies.pairs import paired
from studies.runner import Row, add_run_options, positive, run_study, study_generator
from studies.tables import write_csv

__all__ = ["figure_numbers", "superpixels"]

TOP = 5  # superpixels that are highlighted
CERTAIN = 0.9  # photos of figure 2 are recognised with at least this probability
GREEN, ORANGE = "#009E73", "#D55E00"
FIGURES = {1: (), 2: ("french-bulldog",), 4: ("ultrasonic",), 5: ("french-bulldog", "ultrasonic")}
MASKS: dict[str, dict[str, Any]] = {
    "paper": {"hide": 0, "design": "bernoulli"},
    "library": {"hide": "mean", "design": paired},
}
MASKS["coarse"] = MASKS["paper"]  # with the superpixels of the coverage study, at most 13
_SCAN = ("slic", {"n_segments": 40, "compactness": 100.0})
CUTS: dict[str, dict[str, Any]] = {
    "french-bulldog": {"paper": "quickshift", "library": "slic", "coarse": cut_coarsely},
    "ultrasonic": {"paper": _SCAN, "library": _SCAN},
}
_PRINTED: dict[str, Any] = {"a": 1.0, "b": 1.0, "intercept": "none", "standardize": False}
METHODS: dict[str, Any] = {
    "bayeslime": eblime.BayesLIME(),
    "eblime-paper": eblime.EBLIME.paper(),
    "eblime-half-line": eblime.EBLIME(**_PRINTED, local=False),  # the paper's, all of lambda
    "eblime-ridge": eblime.EBLIME(local=False),
    "eblime": eblime.EBLIME(),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the figures."""
    every = list(FIGURES)
    parser.add_argument("--figure", type=int, nargs="+", default=every, choices=every)
    parser.add_argument("--n", type=positive, default=200, help="masks per image (figures 2, 4, 5)")
    parser.add_argument("--photos", type=Path, help="picture of figure 2 with the photos")
    add_run_options(parser)


def run(options: argparse.Namespace) -> None:
    """Explain what the figures need; write pictures and numbers."""
    how = {"n": options.n, "items": options.items, "seed": options.seed}
    how |= {"jobs": options.jobs, "out": options.out, "progress": options.progress}
    if 1 in options.figure:
        intervals = cat_intervals(options.seed)
        write_csv(intervals, RESULTS / "figure-1.csv", digits=5)
        save(cat_figure(intervals), "figure-1", dpi=90)
    found = {
        name: superpixels(name, **how)
        for name in CUTS
        if any(name in FIGURES[number] for number in options.figure)
    }
    for name, rows in found.items():
        numbers = figure_numbers(rows)
        write_csv(numbers, RESULTS / f"figures-{name}.csv", digits=5)
        number, items = pictured(name, numbers)
        if number in options.figure:
            save(maps_figure(rows, items), f"figure-{number}", dpi=100)
            if name == "french-bulldog" and options.photos:
                maps_figure(rows, items, photos=True).savefig(options.photos, dpi=90)
    if 5 in options.figure:
        numbers = pd.concat([figure_numbers(rows) for rows in found.values()])
        save(ridge_figure(numbers), "figure-5", dpi=90)


def superpixels(
    dataset: str, *, n: int = 200, items: int | None = None, seed: int = 0, **how: Any
) -> pd.DataFrame:
    """One row per image, kind of masks, method and superpixel: the posterior and the region.

    `inside` is the number of pixels of the superpixel in the region, the dog or the defect; it is
    missing for photos without an outline. The columns of lambda are missing for BayesLIME. `how`
    are the other settings of `run_study`.
    """
    settings = {"dataset": dataset, "n": n, "seed": seed}
    numbers = range(min(items or 10**9, count_images(dataset)))
    inputs = [*sources(dataset), outlines()]
    return run_study(superpixel_rows, settings, numbers, inputs=inputs, **how)


def superpixel_rows(settings: Mapping[str, Any], number: int) -> list[Row]:
    """All rows of one image."""
    dataset = settings["dataset"]
    model, image, target, region = load_image(dataset, number)
    rows = []
    for masks, cut in CUTS[dataset].items():
        explainer = eblime.ImageExplainer(
            model,
            segmentation=cut,
            n_masks=settings["n"],
            calls=eblime.Calls(batch_size=8 if dataset == "french-bulldog" else 50),
            progress=False,
            **MASKS[masks],
        )
        asked = explainer.explain(image, target=target, rng=study_generator(settings, number))
        pixels = np.bincount(asked.segments.ravel())
        inside = (
            None if region is None else np.bincount(asked.segments[region], minlength=len(pixels))
        )
        head = {"dataset": dataset, "item": number, "masks": masks, "score": asked.prediction}
        for method, fit in METHODS.items():
            post = asked.refit(fit).posterior
            common = {**head, "method": method, **ridge_columns(post, method), "r2": post.r2}
            for j, size in enumerate(pixels):
                share = None if inside is None else int(inside[j])
                place = {"feature": j, "pixels": int(size), "inside": share}
                rows.append({**common, **place, "mean": post.mean[j], "sd": post.sd[j]})
    return rows


def ridge_columns(post: Any, method: str) -> Row:
    """What the posterior says about lambda: log E on the published grid, median, P(lambda > 1)."""
    if method == "bayeslime":
        return {"log_mean": None, "median": None, "above": None}
    printed = method == "eblime-paper"
    return {
        "log_mean": float(np.log(post.lam.mean)) if printed else None,
        "median": float(post.lam.quantile(0.5)),
        "above": None if printed else float(1 - post.lam.cdf(1.0)),
    }


def count_images(dataset: str) -> int:
    """Number of images of a dataset."""
    if dataset == "french-bulldog":
        return len(photo_set(dataset))
    return len(faulty_parts(dataset).images)


def load_image(dataset: str, number: int) -> tuple[Any, NDArray[np.uint8], int, Any]:
    """Model, image, target, and the region where the dog or the defect is; None if unknown."""
    if dataset != "french-bulldog":
        part = faulty_parts(dataset).part(number)
        return part.model, part.image, 1, part.defect
    from skimage.draw import polygon2mask

    photo = photo_set(dataset)[number]
    image = read_square(photo.path)
    outline = outlines().get(photo.name)
    region = None if outline is None else polygon2mask(image.shape[:2], np.array(outline)[:, ::-1])
    return photo_classifier(), image, photo.target, region


def outlines() -> dict[str, list[list[int]]]:
    """Outlines of the dogs of figure 2, drawn by hand: corners (x, y) in the square photo."""
    path = Path(__file__).parent / "data" / "bulldogs.json"
    return dict(json.loads(path.read_text()))


def figure_numbers(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per image, kind of masks and method.

    `sd_ratio` is the median over superpixels of the sd, relative to BayesLIME's with the same
    masks; `shared` counts the superpixels that are in both top fives. `scaled_top` and
    `scaled_region` are variances scaled from their minimum to their maximum, averaged over the top
    five and over the pixels of the region; `certainty` is the median of |mean| / sd in the top
    five. The next three count superpixels of the top five: on the region (at least half of their
    pixels) and positive, elsewhere and positive, elsewhere and negative. `covered` is the share of
    the region under the top five.
    """
    found = []
    keys = ["dataset", "item", "masks"]
    for key, some in rows.groupby(keys, sort=False):
        base = some[some["method"] == "bayeslime"]
        for method, part in some.groupby("method", sort=False):
            same = ["score", "log_mean", "median", "above", "r2"]
            about = dict(zip(keys, key, strict=True)) | {"method": method, "p": len(part)}
            about |= {name: part[name].iloc[0] for name in same}
            found.append({**about, **_measures(part, base)})
    return pd.DataFrame(found)


def _measures(part: pd.DataFrame, base: pd.DataFrame) -> dict[str, float]:
    """The measures of one method; `base` has the rows of BayesLIME."""
    mean, sd, inside = (part[name].to_numpy(dtype=float) for name in ("mean", "sd", "inside"))
    top, scaled = top_superpixels(part), scaled_variance(part)
    on = inside[top] >= 0.5 * part["pixels"].to_numpy()[top]
    known = inside.sum() > 0
    return {
        "sd_ratio": float(np.median(sd / base["sd"].to_numpy())),
        "shared": len({*top} & {*top_superpixels(base)}),
        "scaled_top": float(scaled[top].mean()) if len(top) else np.nan,
        "scaled_region": float(scaled @ inside / inside.sum()) if known else np.nan,
        "certainty": float(np.median(np.abs(mean[top]) / sd[top])) if len(top) else np.nan,
        "region_positive": float(np.sum(on & (mean[top] > 0))) if known else np.nan,
        "elsewhere_positive": float(np.sum(~on & (mean[top] > 0))) if known else np.nan,
        "elsewhere_negative": float(np.sum(~on & (mean[top] < 0))) if known else np.nan,
        "covered": float(inside[top].sum() / inside.sum()) if known else np.nan,
    }


def top_superpixels(part: pd.DataFrame) -> IntArray:
    """The top five: of photos by absolute mean, of scans the largest positive ones."""
    mean = part["mean"].to_numpy()
    if part["dataset"].iloc[0] == "french-bulldog":
        return np.argsort(-np.abs(mean), kind="stable")[:TOP]
    order = np.argsort(-mean, kind="stable")[:TOP]
    return order[mean[order] > 0]


def scaled_variance(part: pd.DataFrame) -> FloatArray:
    """The variances of one method, scaled from their minimum, 0, to their maximum, 1."""
    variance = part["sd"].to_numpy() ** 2
    return np.asarray((variance - variance.min()) / np.ptp(variance))


def pictured(dataset: str, numbers: pd.DataFrame) -> tuple[int, list[int]]:
    """The figure of a dataset, and the images that it shows.

    The first three photos that are recognised with at least .9; the first scan whose defect both
    methods of the paper find with the paper's masks.
    """
    if dataset == "french-bulldog":
        return 2, [*numbers[numbers["score"] >= CERTAIN]["item"].unique()[:3]]
    part = numbers[(numbers["masks"] == "paper") & (numbers["covered"] >= 0.5)]
    both = [set(part[part["method"] == name]["item"]) for name in ("bayeslime", "eblime-paper")]
    return 4, sorted(both[0] & both[1])[:1]


def maps_figure(rows: pd.DataFrame, items: Sequence[int], *, photos: bool = False) -> Figure:
    """Figures 2 and 4: top five superpixels and scaled variances, by methods in columns."""
    columns = [("paper", "bayeslime"), ("paper", "eblime-paper"), ("library", "eblime")]
    figure = Figure(figsize=(10, 1.45 * len(items) + 0.6), layout="constrained")
    panels = figure.subplots(len(items), 7, squeeze=False)
    for axes, item in zip(panels, items, strict=True):
        dataset = rows["dataset"].iloc[0]
        _, image, _, region = load_image(dataset, item)
        some = rows[rows["item"] == item]
        hidden = dataset == "french-bulldog" and not photos
        shown = np.where(region, 90, 255) if hidden else image
        axes[0].imshow(shown, cmap="gray", vmin=0, vmax=255)
        axes[0].set_xlabel(f"score {some['score'].iloc[0]:.2f}")
        for k, (masks, method) in enumerate(columns):
            part = some[(some["masks"] == masks) & (some["method"] == method)]
            labels = SEGMENTER.segment(np.atleast_3d(image), CUTS[dataset][masks])
            left, right = axes[1 + 2 * k], axes[2 + 2 * k]
            draw_top(left, labels, part, None if hidden else image)
            drawn = right.imshow(scaled_variance(part)[labels], cmap="viridis", vmin=0, vmax=1)
            if item == items[0]:
                left.set_title(f"{NAMES[method]},\n{masks}'s masks", loc="left", fontsize="medium")
                right.set_title("\nvariance", fontsize="medium")
        for ax in axes:
            ax.contour(
                region, levels=[0.5], colors="black" if ax in axes[1::2] else "white", linewidths=1
            )
            ax.set(xticks=[], yticks=[])
    figure.colorbar(drawn, ax=panels[:, -1], shrink=0.8)
    return figure


def draw_top(ax: Any, labels: NDArray[np.intp], part: pd.DataFrame, image: Any) -> None:
    """The top superpixels in green (positive) and orange; stronger where they matter more."""
    from matplotlib.colors import to_rgb
    from skimage.segmentation import find_boundaries

    mean = part["mean"].to_numpy()
    shown = np.ones((*labels.shape, 3))
    if image is not None:
        grey = (image if image.ndim == 2 else image.mean(axis=2)) / 255
        shown = 0.35 * grey[..., None].repeat(3, axis=2) + 0.65
    shown[find_boundaries(labels, mode="inner")] = 0.8
    for j in top_superpixels(part):
        strength = 0.25 + 0.6 * abs(mean[j]) / np.abs(mean).max()
        tint = np.array(to_rgb(GREEN if mean[j] > 0 else ORANGE))
        inside = labels == j
        shown[inside] = (1 - strength) * shown[inside] + strength * tint
    ax.imshow(shown)


def ridge_figure(numbers: pd.DataFrame) -> Figure:
    """Figure 5: log E(lambda | Y) on the published grid, and medians on the whole half-line."""
    good = good_explanations(numbers)
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    ticks = []
    for k, (dataset, masks) in enumerate(GROUPS):
        part = good[(good["dataset"] == dataset) & (good["masks"] == masks)]
        ticks.append(fill(f"{part['item'].nunique()} {GROUPS[dataset, masks]}", 12))
        drawing = [(left, "eblime-paper", part["log_mean"], 0.0)]
        drawing += [
            (right, method, np.log10(part["median"]), side)
            for method, side in (("eblime-half-line", -0.18), ("eblime-ridge", 0.18))
        ]
        for ax, method, values, side in drawing:
            box = ax.boxplot(
                values[part["method"] == method],
                positions=[k + side],
                widths=0.28,
                patch_artist=True,
            )
            box["boxes"][0].set(facecolor=COLOURS.get(method, COLOURS["eblime-paper"]), alpha=0.5)
            box["medians"][0].set(color="#222222")
    for ax in (left, right):
        ax.set_xticks(range(len(ticks)), ticks, fontsize=8.5)
        ax.grid(axis="y", alpha=0.3)
    left.set_ylabel("log E(λ | Y), published grid, λ ≤ 1")
    right.set_ylabel("log₁₀ of the median of λ, all λ > 0")
    right.axhline(0, color="#222222", linewidth=0.8, linestyle="--")
    for method, name in (
        ("eblime-paper", "the paper's model"),
        ("eblime-ridge", NAMES["eblime-ridge"]),
    ):
        right.plot([], [], "s", color=COLOURS[method], alpha=0.5, label=name)
    right.legend(frameon=False, fontsize="small", loc="lower right")
    return figure


def cat_intervals(seed: int = 0, sizes: Sequence[int] = (20, 200)) -> pd.DataFrame:
    """Figure 1: one row per kind of masks, number of masks and superpixel of a photo of a cat.

    The score is the sum of the network's five classes of domestic cats. `truth` is the mean of the
    same method with all masks; `largest` is the probability that no importance is larger.
    """
    image = cat_photo()
    labels = cut_coarsely(image, most=8)
    network = photo_classifier()
    rows = []
    for masks, method in (("paper", "eblime-paper"), ("library", "eblime")):
        explainer = eblime.ImageExplainer(
            lambda batch: np.asarray(network(batch))[:, 281:286].sum(axis=1),
            segmentation=labels,
            method=METHODS[method],
            calls=eblime.Calls(batch_size=8),
            progress=False,
            **MASKS[masks],
        )
        every = dataclasses.replace(explainer, n_masks=2 ** (int(labels.max()) + 1))
        truth = dataclasses.replace(every, design="exhaustive").explain(image, rng=seed)
        for n in sizes:
            post = dataclasses.replace(explainer, n_masks=n).explain(image, rng=seed).posterior
            largest = post.top_k_probability(1, by="value")
            for j, (low, high) in enumerate(post.interval(0.95)):
                head = {"masks": masks, "method": method, "n": n, "feature": j}
                ends = {"mean": post.mean[j], "low": low, "high": high, "largest": largest[j]}
                rows.append({**head, **ends, "truth": truth.posterior.mean[j]})
    return pd.DataFrame(rows).assign(score=truth.prediction)


def cat_photo() -> NDArray[np.uint8]:
    """The middle of scikit-image's photo of a cat (public domain), 224 by 224."""
    from PIL import Image
    from skimage.data import chelsea

    square = Image.fromarray(chelsea()[:, 75:375])
    return np.asarray(square.resize((224, 224), Image.Resampling.BICUBIC))


def cat_figure(rows: pd.DataFrame) -> Figure:
    """Figure 1: the superpixels, and their intervals with few and with many masks."""
    from scipy.ndimage import center_of_mass
    from skimage.segmentation import mark_boundaries

    image = cat_photo()
    labels = cut_coarsely(image, most=8)
    figure = Figure(figsize=(11, 5.2), layout="constrained")
    panels = figure.subplots(2, 3, sharex="col", width_ratios=[1, 1.4, 1.4])
    panels[1, 0].axis("off")
    panels[0, 0].imshow(mark_boundaries(image, labels, color=(1, 1, 1)))
    panels[0, 0].set(xticks=[], yticks=[])
    panels[0, 0].set_title(f"cat: {rows['score'].iloc[0]:.2f}", fontsize="medium", loc="left")
    for j in range(labels.max() + 1):
        y, x = center_of_mass(labels == j)
        box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 1.5}
        panels[0, 0].text(x, y, str(j), ha="center", va="center", bbox=box)
    for (masks, n), part in rows.groupby(["masks", "n"], sort=False):
        line = panels[list(MASKS).index(masks)]
        ax = line[1 if n == rows["n"].min() else 2]
        colours = [GREEN if mean > 0 else ORANGE for mean in part["mean"]]
        ax.bar(
            part["feature"], part["high"] - part["low"], 0.7, part["low"], color=colours, alpha=0.35
        )
        ax.hlines(
            part["mean"], part["feature"] - 0.35, part["feature"] + 0.35, colours, linewidth=2
        )
        ax.plot(part["feature"], part["truth"], "k_", markersize=9, label="all 256 masks")
        ax.axhline(0, color="#222222", linewidth=0.8)
        title = f"{NAMES[part['method'].iloc[0]]}, {masks}'s masks: N = {n}"
        ax.set_title(title, fontsize="medium", loc="left")
        ax.set_xticks(part["feature"])
        ax.use_sticky_edges = False
        ax.sharey(line[1])
    panels[0, 1].legend(frameon=False, fontsize="small")
    for ax in panels[1, 1:]:
        ax.set_xlabel("superpixel")
    for ax in panels[:, 1]:
        ax.set_ylabel("importance, 95 % interval")
    return figure
