"""Coverage where residuals are unequal: tables with interactions and rare states, and photos.

A table has 8 binary columns, the model a linear part of random coefficients and

- interactions: products of two columns;
- rare states: two columns with one value in 10 % of the rows, each in a product with another;
- equal noise: no product, but a random number for each row, so that residuals are equal.

Rows are perturbed within bins as in lime, and fitted once with `EBLIME(noise="equal")` and once
with the default, which allows for unequal noise. The truth is the fit to 200,000 masks. For photos
with at most 13 superpixels, all masks are known: pairs of masks are drawn from the stored tables.

    EBLIME_DATA=... python -m studies unequal-noise            # three minutes
    python -m studies unequal-noise --cases interactions       # without photos
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd

import eblime
from eblime.kernels import ExponentialKernel
from studies.binned import binned_rows
from studies.intervals import interval_measures
from studies.populations import best_fit, count_inputs, mask_numbers, population
from studies.runner import positive
from studies.tables import head, row

CASES = ("interactions", "rare states", "equal noise", "photos")
SIZES = (100, 300, 1000)
INPUTS = 12
METHODS = {"equal": eblime.EBLIME(noise="equal"), "unequal": eblime.EBLIME()}
GROUPS = ("all", "top 1", "top 2-3", "rare 1", "rare 2", "score")
Draw = tuple[np.ndarray, list[eblime.Posterior]]  # the truth, and a posterior of each method


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the study."""
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=CASES)
    parser.add_argument("--fits", type=positive, default=144, help="in each cell, at least")
    parser.add_argument("--sizes", type=positive, nargs="+", default=list(SIZES), help="of masks")


def run(options: argparse.Namespace) -> None:
    """Print a line for each case, number of masks and method, as they come."""
    print(head(["case", "N", "noise", *GROUPS]))
    for case in options.cases:
        for n in options.sizes:
            found = [measures(*draw) for draw in draws(case, n, options.fits)]
            means = np.mean(found, axis=0)  # (methods, groups)
            for name, values in zip(METHODS, means, strict=True):
                *shares, score = values
                cells = ["" if np.isnan(share) else f"{share:.3f}" for share in shares]
                print(row([case, n, name, *cells, f"{score / means[0, -1]:.3f}"]), flush=True)


def measures(truth: np.ndarray, posteriors: list[eblime.Posterior]) -> np.ndarray:
    """Coverage of each group and the interval score, a row for each method."""
    lines = []
    for post in posteriors:
        ends = post.interval(0.95)
        found = interval_measures(ends, truth, 0.95)
        inside = (ends[:, 0] <= truth) & (truth <= ends[:, 1])
        rare = inside[[1, 4]] if len(truth) == 8 else [np.nan, np.nan]
        lines.append([found["coverage"], found["top_1"], found["top_2_3"], *rare, found["score"]])
    return np.array(lines, dtype=float)


def draws(case: str, n: int, fits: int) -> Iterator[Draw]:
    """Explanations with n masks of several inputs, each with its truth."""
    if case == "photos":
        yield from photo_draws(n, fits)
        return
    for number in range(INPUTS):
        rng = np.random.default_rng([CASES.index(case), number])
        model, data = table(rng, case)
        x = rng.integers(len(data))
        truth = eblime.fit(*row_answers(model, data, x, 200_000, seed=number)).mean
        for draw in range(-(-fits // INPUTS)):
            answers = row_answers(model, data, x, n, seed=1000 + draw)
            yield truth, [eblime.fit(*answers, method=method) for method in METHODS.values()]


def row_answers(
    model: Callable[..., np.ndarray], data: np.ndarray, x: int, n: int, *, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Masks, scores and weights of n rows around one row of a table."""
    frame = pd.DataFrame(data)
    masks, rows = binned_rows(np.random.default_rng(seed), frame, frame.iloc[x], n)
    return masks, model(rows), ExponentialKernel()(masks)


def table(rng: np.random.Generator, case: str) -> tuple[Callable[..., np.ndarray], np.ndarray]:
    """A model of 8 binary columns, and 2,000 rows of them."""
    share = np.full(8, 0.5)
    if case == "rare states":
        share[[1, 4]] = 0.9, 0.1
    data = (rng.random((2000, 8)) < share).astype(float)
    beta = rng.normal(size=8) * [1.5, 1.0, 0.7, 0.5, 0.3, 0.2, 0.1, 0.0]
    noise = rng.normal(size=256)

    def model(rows: np.ndarray) -> np.ndarray:
        z = np.asarray(rows, dtype=float)
        if case == "equal noise":
            return z @ beta + noise[(z @ 2 ** np.arange(8)).astype(int)]
        products = 1.2 * z[:, 0] * z[:, 3] - 0.8 * z[:, 1] * z[:, 2]
        if case == "interactions":
            return z @ beta + products + 1.5 * z[:, 1] * z[:, 5]
        return z @ beta + products + 2 * (1 - z[:, 1]) * z[:, 5] + 1.5 * z[:, 4] * z[:, 2]

    return model, data


def photo_draws(n: int, fits: int) -> Iterator[Draw]:
    """Pairs of masks of photos whose answers for every mask are known."""
    count = count_inputs("p13")
    for number in range(fits):
        whole = population("p13", number % count)
        rng = np.random.default_rng([number, n])
        half = rng.integers(0, 2, size=(n // 2, whole.masks.shape[1]))
        asked = np.stack([half, 1 - half], axis=1).reshape(n, -1)
        place = np.argsort(mask_numbers(whole.masks))[mask_numbers(asked)]
        parts = whole.take(place)
        yield best_fit(*whole), [eblime.fit(*parts, method=m) for m in METHODS.values()]
