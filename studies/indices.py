"""Every index from the same answers: how often 95 % intervals cover the exact value.

Photos with 11 to 13 superpixels, whose answers are known for all 2^p masks. For each photo and seed
N masks in complementary pairs, both ends among them, are drawn without replacement; one fit of
`Quadrature` gives LIME's importances at three kernel widths (half, once and twice the default),
Banzhaf and Shapley values, and the Banzhaf interactions of all pairs. "top 1" is the feature or
pair that is truly largest. Error and interval score (width plus 2 / 0.05 times the miss) are
relative to the root mean square of the exact values.

    python -m studies indices                  # 200 masks, all photos, 1 minute
    python -m studies indices --seeds 4
    python -m studies indices --n 100 400 --seeds 3
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

import numpy as np

from eblime.answers import Answers
from eblime.core.indices import Index, banzhaf, shapley
from eblime.core.quadrature import exact_values
from eblime.kernels import ExponentialKernel
from eblime.methods.quadrature import Quadrature, fit_indices
from studies.data.stored import stored_photos
from studies.intervals import interval_measures
from studies.populations import all_masks, run_cases
from studies.runner import Row, add_run_options, positive
from studies.tables import frame_table


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
    fitted = fit_indices(answers, list(indices.values()), estimands)
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
    parser.add_argument("--n", type=positive, nargs="+", default=[200], help="numbers of masks")
    parser.add_argument("--seeds", type=positive, default=1)
    add_run_options(parser, seed=False)


def run(options: argparse.Namespace) -> None:
    """Run the study and print one row per index and number of masks."""
    settings = {"n": options.n, "seeds": options.seeds}
    rows = run_cases(index_rows, settings, ["p13"], options)
    print(frame_table(rows.groupby(["masks", "index"], sort=False).mean(numeric_only=True)))


def index_rows(settings: Mapping[str, Any], number: int) -> list[Row]:
    """All seeds and numbers of masks for one photo."""
    scores = stored_photos()[number]
    return [
        {"masks": n, **row}
        for n in settings["n"]
        for seed in range(settings["seeds"])
        for row in rows_of(scores, n, 1000 * seed + number)
    ]
