"""Every index from the same answers: how often 95 % intervals cover the exact value.

Photos with 11 to 13 superpixels, whose answers are known for all 2^p masks. For each photo and seed
N masks in complementary pairs, both ends among them, are drawn without replacement; one fit of
`Quadrature` gives LIME's importances at three kernel widths (half, once and twice the default),
Banzhaf and Shapley values, and the Banzhaf interactions of all pairs. "top 1" is the feature or
pair that is truly largest. Error and interval score (width plus 2 / 0.05 times the miss) are
relative to the root mean square of the exact values.

    python -m studies indices                  # 200 masks, all photos, 1 minute
    python -m studies indices --seeds 4
    python -m studies indices --masks 100 400 --seeds 3
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd

from eblime.answers import Answers
from eblime.core.indices import Index, banzhaf, shapley
from eblime.core.quadrature import exact_values
from eblime.kernels import ExponentialKernel
from eblime.methods.quadrature import Quadrature, fit_indices
from studies.data.stored import answers_file
from studies.intervals import interval_measures
from studies.populations import all_masks


def all_indices(p: int) -> dict[str, Index]:
    """The indices by name."""
    width = 0.75 * np.sqrt(p)
    found = {
        f"lime, {factor:g} x width": Quadrature(
            kernel=ExponentialKernel(width=factor * width)
        ).functional(p)
        for factor in (0.5, 1.0, 2.0)
    }
    return found | {
        "banzhaf": banzhaf(),
        "shapley": shapley(p),
        "banzhaf pairs": banzhaf().pairwise(),
    }


def draw_pairs(rng: np.random.Generator, p: int, n: int) -> np.ndarray:
    """Numbers of n masks in complementary pairs, none twice, both ends among them."""
    rows = 1 + rng.choice(2 ** (p - 1) - 1, size=n // 2 - 1, replace=False)
    half = np.concatenate([[0], rows])
    return np.concatenate([half, 2**p - 1 - half])


def rows_of(scores: np.ndarray, n: int, seed: int) -> list[dict[str, object]]:
    """Coverage, error and score of every index for one photo and seed."""
    p = len(scores).bit_length() - 1
    masks, indices = all_masks(scores), all_indices(p)
    asked = draw_pairs(np.random.default_rng(seed), p, n)
    answers = Answers(masks=masks[asked], scores=scores[asked], weights=np.ones(len(asked)))
    estimands = [""] * len(indices)
    fitted = fit_indices(np.random.default_rng(seed), answers, list(indices.values()), estimands)
    found: list[dict[str, object]] = []
    for (name, index), post in zip(indices.items(), fitted, strict=True):
        truth = exact_values(masks, scores, index)
        measures = interval_measures(post.interval(), truth, 0.95)
        unit = np.sqrt(np.mean(truth**2))
        found.append(
            {
                "index": name,
                "covered": measures["coverage"],
                "top 1": measures["top_1"],
                "error": np.sqrt(np.mean((post.mean - truth) ** 2)) / unit,
                "score": measures["score"] / unit,
            }
        )
    return found


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the study."""
    parser.add_argument("--photos", type=int, default=40)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--masks", type=int, nargs="+", default=[200])


def run(options: argparse.Namespace) -> None:
    """Print one row per index and number of masks."""
    stored = np.load(answers_file("imagenet-p13.npz"))
    rows: list[dict[str, object]] = []
    for n in options.masks:
        for photo in range(options.photos):
            scores = stored[f"scores_{photo}"].astype(float)
            for seed in range(options.seeds):
                rows += [{"masks": n} | row for row in rows_of(scores, n, 1000 * seed + photo)]
    table = pd.DataFrame(rows).groupby(["masks", "index"], sort=False).mean()
    print(table.round(3).to_string())
