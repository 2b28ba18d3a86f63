"""The figures of the paper, drawn from the result tables of the studies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from eblime._types import FloatArray

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from eblime.results.explanation import Explanation

__all__ = ["bulldogs_figure", "coverage_figure", "lambda_figure"]

_COLOURS = {
    "bayeslime": "#D55E00",
    "eblime-paper": "#0072B2",
    "eblime": "#009E73",
    "eblime-ridge": "#56B4E9",
}
_NAMES = {
    "lime": "LIME",
    "bayeslime": "BayesLIME",
    "eblime-paper": "EBLIME as printed",
    "eblime": "EBLIME",
    "eblime-ridge": "EBLIME, common ridge",
}
_TRUTHS = {
    "exact": "truth: lime's ridge, all masks",
    "lime": "truth: lime's ridge, 10,000 masks",
    "paper": "truth: equation (1), no intercept",
}


def coverage_figure(table: pd.DataFrame, title: str = "") -> Figure:
    """Fig. 3: coverage against the number of masks, as boxes over seeds; one panel per truth."""
    from matplotlib.figure import Figure

    truths = list(dict.fromkeys(table["truth"]))
    methods = list(dict.fromkeys(table["method"]))
    counts = sorted(table["n"].unique())
    step = 0.7 / len(methods)  # between the boxes of one number of masks
    figure = Figure(figsize=(5.6 * len(truths), 3.8), layout="constrained")
    panels = np.atleast_1d(figure.subplots(1, len(truths), sharey=True))
    for axes, truth in zip(panels, truths, strict=True):
        for k, method in enumerate(methods):
            part = table[(table["truth"] == truth) & (table["method"] == method)]
            boxes = [_by_seed(part[part["n"] == n]) for n in counts]
            positions = np.arange(len(counts)) + step * (k - (len(methods) - 1) / 2)
            colour = _COLOURS.get(method, "#767676")
            drawn = axes.boxplot(boxes, positions=positions, widths=0.8 * step, patch_artist=True)
            for part_of in drawn["boxes"]:
                part_of.set(facecolor=colour, alpha=0.55, edgecolor=colour)
            for line in drawn["medians"]:
                line.set(color="#222222")
            axes.plot([], [], "s", color=colour, alpha=0.55, label=_NAMES.get(method, method))
        axes.axhline(0.95, color="#222222", linewidth=0.8, linestyle="--")
        axes.set_xticks(range(len(counts)), [str(n) for n in counts])
        axes.set_xlabel("masks")
        axes.set_title(f"{title}{': ' if title else ''}{_TRUTHS[truth]}", fontsize="medium")
        axes.grid(axis="y", alpha=0.3)
    panels[0].set_ylabel("share of 95 % intervals that contain the truth")
    panels[-1].legend(frameon=False, fontsize="small", loc="lower left")
    return figure


def _by_seed(part: pd.DataFrame) -> FloatArray:
    """Coverage for each seed, over all features."""
    weighted = part.assign(hit=part["coverage"] * part["features"])
    sums = weighted.groupby("seed")[["hit", "features"]].sum()
    return (sums["hit"] / sums["features"]).to_numpy()


def lambda_figure(tables: Mapping[str, pd.DataFrame]) -> Figure:
    """Fig. 5: boxes of log E(lambda | Y) for several studies."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2, 3.6), layout="constrained")
    axes = figure.subplots()
    names = list(tables)
    drawn = axes.boxplot(
        [tables[name]["log_mean"].to_numpy() for name in names], widths=0.4, patch_artist=True
    )
    for box in drawn["boxes"]:
        box.set(facecolor="#0072B2", alpha=0.4)
    axes.set_xticks(range(1, len(names) + 1), names)
    axes.set_ylabel("log E(λ | Y), published grid")
    axes.grid(axis="y", alpha=0.3)
    return figure


def bulldogs_figure(explanations: Sequence[Explanation]) -> Figure:
    """Fig. 2: photos with their top five superpixels and posterior variances, for two methods."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(15, 3.1 * len(explanations)), layout="constrained")
    panels = figure.subplots(len(explanations), 5, squeeze=False)
    for axes, e in zip(panels, explanations, strict=True):
        scene: Any = e.scene
        axes[0].imshow(scene.photo())
        axes[0].set_xticks([])
        axes[0].set_yticks([])
        axes[0].set_title(f"{e.label}: {e.prediction:.2f}", fontsize="medium", loc="left")
        for k, method in enumerate(("bayeslime", "eblime-paper")):
            refitted = e.refit(method)
            refitted.plot("map", ax=axes[1 + 2 * k])
            axes[1 + 2 * k].set_title(f"{_NAMES[method]}: top 5", fontsize="medium", loc="left")
            refitted.plot("uncertainty", ax=axes[2 + 2 * k])
    return figure
