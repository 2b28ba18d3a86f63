"""Maps of mean and variance of three photos, BayesLIME beside EBLIME as printed (figure 2).

python -m studies figure-2 --file figure-2.png
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

import eblime
from studies.data.photos import photo_classifier, photo_set, read_square
from studies.runner import positive

__all__ = ["bulldogs_figure"]

_METHODS = {"bayeslime": "BayesLIME", "eblime-paper": "EBLIME as printed"}


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the figure."""
    parser.add_argument("--n", type=positive, default=200, help="masks per photo")
    parser.add_argument("--file", type=Path, default=Path("figure-2.png"), help="the picture")


def run(options: argparse.Namespace) -> None:
    """Explain the photos and draw them."""
    found = []
    for photo in photo_set("french-bulldog")[:3]:
        explainer = eblime.ImageExplainer(photo_classifier(), n_masks=options.n, progress=True)
        found.append(explainer.explain(read_square(photo.path), target=photo.target))
    bulldogs_figure(found).savefig(options.file, dpi=90)
    print(f"Wrote {options.file}.")


def bulldogs_figure(explanations: Sequence[eblime.Explanation]) -> Figure:
    """Photos with their top five superpixels and posterior variances, for two methods."""
    figure = Figure(figsize=(15, 3.1 * len(explanations)), layout="constrained")
    panels = figure.subplots(len(explanations), 5, squeeze=False)
    for axes, e in zip(panels, explanations, strict=True):
        scene: Any = e.scene
        axes[0].imshow(scene.photo())
        axes[0].set_xticks([])
        axes[0].set_yticks([])
        axes[0].set_title(f"{e.label}: {e.prediction:.2f}", fontsize="medium", loc="left")
        for k, (method, name) in enumerate(_METHODS.items()):
            refitted = e.refit(method)
            refitted.plot("map", ax=axes[1 + 2 * k])
            axes[1 + 2 * k].set_title(f"{name}: top 5", fontsize="medium", loc="left")
            refitted.plot("uncertainty", ax=axes[2 + 2 * k])
    return figure
