"""Quadrature on photos: coverage, interval score and error beside the regressions.

EfficientNet-Lite0 on the photos of the stored tables: `imagenet-p13.npz` (11 to 13 superpixels, all
masks known) and `imagenet-p40.npz` (28 to 45, 5,000 pairs of masks known, which are the
population). All estimate the weighted linear fit, default kernel and free intercept, to the
population, except `EBLIME.paper()`, which has no intercept and is judged by the fit without one.

- `Quadrature()`: pairs at random, without replacement; and in rounds, which choose among the known
  pairs where not all masks are known;
- `EBLIME.paper()` and `EBLIME(local=False)`: masks by coin tosses; `EBLIME()`: the same pairs.

"score / paper" is the interval score over that of `EBLIME.paper()`, "ratio" the root mean square
error over that of `EBLIME(local=False)`. `--clock` prints the seconds of a fit instead.

    python -m studies quadrature --jobs 2
    python -m studies all --only quadrature    # and store it for the page
    python -m studies quadrature --fits 20 --cases p13 --designs pairs rounds
    OMP_NUM_THREADS=2 python -m studies quadrature --clock
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from eblime import EBLIME, Quadrature
from eblime.answers import Answers
from eblime.core.quadrature import read_table
from eblime.designs.adaptive import Adaptive, choose
from eblime.kernels import ExponentialKernel
from studies.intervals import interval_measures
from studies.pairs import paired
from studies.populations import (
    Population,
    best_fit,
    count_inputs,
    mask_numbers,
    pairs_together,
    population,
    run_cases,
)
from studies.runner import Row, add_run_options, positive
from studies.tables import frame_table

__all__ = ["quadrature"]

SIZES = {"p13": (100, 200, 400), "p40": (100, 200, 500)}
PAPER, COMMON = "EBLIME.paper(), coin tosses", "EBLIME(local=False), coin tosses"
POOL = 600  # pairs that compete in a round


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the study."""
    parser.add_argument("--cases", nargs="+", default=list(SIZES), choices=list(SIZES))
    parser.add_argument("--sizes", type=positive, nargs="+", help="of masks")
    parser.add_argument("--fits", type=positive, default=120, help="in each cell, at least")
    parser.add_argument("--designs", nargs="+", default=list(ASKED), choices=list(ASKED))
    parser.add_argument("--clock", action="store_true", help="seconds of a fit instead")
    add_run_options(parser, seed=False)


def run(options: argparse.Namespace) -> None:
    """Print the table, or the seconds of a fit."""
    if options.clock:
        clock()
    else:
        sizes = dict.fromkeys(SIZES, options.sizes) if options.sizes else SIZES
        settings = {"fits": options.fits, "sizes": sizes, "designs": options.designs}
        print(frame_table(summary(run_cases(quadrature_rows, settings, options.cases, options))))


def quadrature(*, items: int | None = None, **how: Any) -> pd.DataFrame:
    """One row per case, number of masks and method, with all cases, sizes and designs.

    `how` are the other settings of `run_study`.
    """
    settings = {"fits": 120, "sizes": SIZES, "designs": list(ASKED)}
    options = argparse.Namespace(items=items, **how)
    return summary(run_cases(quadrature_rows, settings, list(SIZES), options))


@dataclass(frozen=True)
class Photo:
    """The masks of a photo, each followed by its complement, with their answers."""

    known: Population
    all_masks: bool

    @property
    def masks(self) -> np.ndarray:
        """The masks whose answers are known."""
        return self.known.masks

    def rows(self, chosen: np.ndarray) -> Answers:
        """The answers of some rows."""
        return Answers(**self.known.take(chosen)._asdict())


def truths(photo: Photo) -> tuple[np.ndarray, np.ndarray]:
    """The weighted fit to the population with a free intercept, and equation (1) without one."""
    masks, scores, weights = photo.known
    gram = masks.T * weights @ masks + np.eye(masks.shape[1])
    return best_fit(*photo.known), np.linalg.solve(gram, masks.T * weights @ scores)


def coin_tosses(photo: Photo, n: int, rng: np.random.Generator) -> Answers:
    """Masks by coin tosses, with replacement."""
    return photo.rows(rng.integers(len(photo.masks), size=n))


def in_pairs(photo: Photo, n: int, rng: np.random.Generator) -> Answers:
    """Pairs at random, without replacement; the two ends among them where they are known."""
    if photo.all_masks:
        return photo.rows(_rows_of(photo, paired(rng, n, photo.masks.shape[1]).masks))
    pairs = rng.choice(len(photo.masks) // 2, n // 2, replace=False)
    return photo.rows(_both(pairs))


def in_turns(photo: Photo, n: int, rng: np.random.Generator) -> Answers:
    """Pairs chosen in rounds."""
    p = photo.masks.shape[1]
    answers = Answers.none([str(j) for j in range(p)])
    if photo.all_masks:
        design = Adaptive(n_masks=n)
        while (masks := design.next(rng, answers)) is not None:
            found = photo.rows(_rows_of(photo, masks))
            answers = answers.append(found.masks, found.scores, found.weights)
        return answers
    return _known_in_turns(photo, n, rng)


def _known_in_turns(photo: Photo, n: int, rng: np.random.Generator) -> Answers:
    """Rounds of the same sizes as `Adaptive`, among the pairs whose answers are known."""
    p = photo.masks.shape[1]
    order = rng.permutation(len(photo.masks) // 2)
    first = min(n // 2, max(2 * p, min(n // 6, 64)))
    asked, left, index = order[:first], order[first:], Quadrature().functional(p)
    answers = photo.rows(_both(asked))
    while (wanted := min(n // 2 - answers.n_masks // 2, max(4, answers.n_masks // 8))) > 0:
        pool = rng.permutation(left)[:POOL]
        known = read_table(answers.masks, answers.scores)
        chosen = choose(known, index, photo.masks[2 * pool], wanted)
        matches = (photo.masks[2 * pool][:, None] == chosen[None]).all(axis=2)
        rows = pool[matches.argmax(axis=0)]
        found, left = photo.rows(_both(rows)), np.setdiff1d(left, rows)
        answers = answers.append(found.masks, found.scores, found.weights)
    return answers


def _both(pairs: np.ndarray) -> np.ndarray:
    """The rows of pairs."""
    return np.stack([2 * pairs, 2 * pairs + 1], axis=1).ravel()


def _rows_of(photo: Photo, masks: np.ndarray) -> np.ndarray:
    """The rows of masks where all masks are known: pair k is the mask of the bits of k."""
    number = mask_numbers(masks)
    other = len(photo.masks) - 1 - number
    return np.where(number < other, 2 * number, 2 * other + 1)


ASKED: dict[str, Callable[[Photo, int, np.random.Generator], Answers]] = {
    "coin tosses": coin_tosses,
    "pairs": in_pairs,
    "rounds": in_turns,
}
METHODS: dict[str, Any] = {
    PAPER: EBLIME.paper(),
    COMMON: EBLIME(local=False),
    "EBLIME(), pairs": EBLIME(),
    "Quadrature(), pairs": Quadrature(),
    "Quadrature(), rounds": Quadrature(),
}


def quadrature_rows(settings: Mapping[str, Any], number: int) -> list[Row]:
    """All fits of one photo."""
    case, rows = settings["case"], []
    photo = Photo(pairs_together(case, population(case, number)), case == "p13")
    free, none = truths(photo)
    for n in settings["sizes"][case]:
        for seed in range(-(-settings["fits"] // count_inputs(case))):
            for name, method in METHODS.items():
                rng, design = np.random.default_rng([number, n, seed]), name.split(", ")[-1]
                if design not in settings["designs"]:
                    continue
                answers = ASKED[design](photo, n, rng)
                post = method.fit(rng, answers)
                truth = none if name == PAPER else free
                row = {"case": case, "N": n, "method": name, "photo": number, "seed": seed}
                row |= interval_measures(post.interval(0.95), truth, 0.95)
                rows.append(row | {"square": float(np.mean((post.mean - truth) ** 2))})
    return rows


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Means by case, number of masks and method; ratios to the published setting and the ridge."""
    keys = ["case", "N", "method"]
    measures = ["coverage", "top_1", "top_2_3", "score", "square"]
    means = rows.groupby(keys, sort=False)[measures].mean()
    means["error"] = np.sqrt(means.pop("square"))
    for name, ratio, base in (("score", "score / paper", PAPER), ("error", "ratio", COMMON)):
        if base in means.index.unique("method"):
            other = means[name].xs(base, level="method")
            means[ratio] = means[name] / other.reindex(means.index.droplevel("method")).to_numpy()
    means["fits"] = rows.groupby(keys, sort=False).size()
    return means.reset_index()


def clock() -> None:
    """Print the seconds of a fit, the least of five."""
    for n, p in ((400, 13), (1000, 50)):
        rng = np.random.default_rng(0)
        masks = paired(rng, n, p).masks
        scores = 1 / (1 + np.exp(-(masks - 0.5) @ rng.normal(size=p) - masks[:, 0] * masks[:, 1]))
        answers = Answers(masks=masks, scores=scores, weights=ExponentialKernel()(masks))
        times = []
        for _ in range(5):
            start, busy = time.perf_counter(), time.process_time()
            Quadrature().fit(rng, answers).interval(0.95)
            times.append((time.perf_counter() - start, time.process_time() - busy))
        wall, processor = np.min(times, axis=0)
        print(f"N = {n}, p = {p}: {wall:.2f} s, {processor:.2f} s of processor time")
