"""Designs compared at equal numbers of masks: error, coverage and interval score.

The truth is the weighted linear fit, default kernel and free intercept, to a whole population of
answers of EfficientNet-Lite0: all masks of photos with 11 to 13 superpixels, and 5,000 masks with
their complements of photos with about 36. For the second kind only designs that draw evenly can be
compared: "bernoulli" draws from the stored masks, "paired" from the stored pairs. Texts are the
sentiment games of shapiq, 14 words, with lime's cosine kernel; "sizes" is compared with the fit
under its own law of masks, and errors are divided by the root mean square of the importances.

For each design and number of masks: the root mean square error, how often 95 % intervals hold the
truth (all features, and the one with the largest true importance), and the mean interval score.

    python -m studies designs                 # five minutes on one core
    python -m studies designs --photos 5 --seeds 1
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from itertools import islice

import numpy as np
import pandas as pd

import eblime
from eblime import registry
from eblime.answers import Answers
from eblime.designs.rounds import as_design
from eblime.kernels import ExponentialKernel
from eblime.methods.regression import as_method
from eblime.protocols import Kernel
from studies import populations
from studies.data.stored import answers_file
from studies.intervals import interval_score
from studies.populations import all_masks, ask, best_fit
from studies.tables import table

SIZES = (100, 200, 500)
PHOTOS, TEXTS = ExponentialKernel(), ExponentialKernel(distance="cosine")
METHODS = {
    "EBLIME()": eblime.EBLIME(),
    "EBLIME(local=False)": eblime.EBLIME(local=False),
    "BayesLIME()": eblime.BayesLIME(),
    "LIME()": eblime.LIME(),
}


def asked(
    name: str, n: int, scores: np.ndarray, rng: np.random.Generator, kernel: Kernel = PHOTOS
) -> Answers:
    """The answers that a design with that name gets from a table of all masks."""
    return ask(as_design(name, n, len(scores).bit_length() - 1), scores, rng, kernel)


# the truth under a design with a number of masks, and the answers that the design gets
Truth = Callable[[str, int], np.ndarray]
Photo = tuple[Truth, Callable[[str, int, np.random.Generator], Answers]]


def photos_13(count: int) -> Iterator[Photo]:
    """Photos whose answers are known for every mask."""
    for found in islice(populations.photos_13(), count):
        truth = best_fit(*found)
        yield (
            lambda name, n, truth=truth: truth,
            lambda name, n, rng, scores=found.scores: asked(name, n, scores, rng),
        )


def photos_40(count: int) -> Iterator[Photo]:
    """Photos whose answers are known for 5,000 masks and their complements."""
    for found in islice(populations.photos_40(), count):

        def draw(name, n, rng, found=found):
            half = len(found.masks) // 2
            if name == "bernoulli":
                rows = rng.choice(2 * half, n, replace=False)
            else:
                pairs = rng.choice(half, n // 2, replace=False)
                rows = np.stack([pairs, pairs + half], axis=1).ravel()
            parts = [part[rows] for part in found]
            return Answers(masks=parts[0], scores=parts[1], weights=parts[2])

        truth = best_fit(*found)
        yield lambda name, n, truth=truth: truth, draw


def texts(count: int) -> Iterator[Photo]:
    """Texts of 14 words whose sentiment is known for every mask, in units of their importances."""
    stored = np.load(answers_file("games-dev.npz"))
    names = [name for name in stored.files if name.startswith("sent/") and np.ptp(stored[name])]
    for name in names[:count]:
        scores = stored[name].astype(float)
        masks = all_masks(scores)
        even = best_fit(masks, scores, TEXTS(masks))
        scores = scores / np.sqrt(np.mean(even**2))
        hidden = masks.shape[1] - masks.sum(axis=1).astype(int)
        by_size = np.where(hidden > 0, 1 / masks.shape[1] / np.bincount(hidden)[hidden], 0.0)

        def truth(design, n, masks=masks, scores=scores, by_size=by_size):
            counts = np.ones(len(masks))
            if design == "sizes":
                counts = (n - 1) * by_size
                counts[-1] = 1
            return best_fit(masks, scores, counts * TEXTS(masks))

        yield truth, lambda name, n, rng, scores=scores: asked(name, n, scores, rng, TEXTS)


def judge(truth: np.ndarray, answers: Answers, method: object) -> dict[str, float]:
    """One fit against the truth."""
    post = as_method(method).fit(np.random.default_rng(0), answers)
    found = {"square": float(np.mean((post.mean - truth) ** 2))}
    if post.has_spread:
        ends = post.interval(0.95)
        inside = (ends[:, 0] <= truth) & (truth <= ends[:, 1])
        found["all"] = float(inside.mean())
        found["top 1"] = float(inside[np.argmax(np.abs(truth))])
        found["score"] = float(interval_score(ends, truth, 0.95).mean())
    return found


def study(photos: list[Photo], designs: list[str], sizes: list[int], seeds: int) -> pd.DataFrame:
    """Means over photos and seeds, one row for each method, design and number of masks."""
    rows = []
    for number, (truth, draw) in enumerate(photos):
        for n in sizes:
            for design in designs:
                for seed in range(seeds):
                    answers = draw(design, n, np.random.default_rng([number, n, seed]))
                    right = truth(design, n)
                    rows += [
                        {"method": name, "design": design, "N": n, **judge(right, answers, method)}
                        for name, method in METHODS.items()
                    ]
    means = pd.DataFrame(rows).groupby(["method", "design", "N"], sort=False).mean()
    means["error"] = np.sqrt(means.pop("square"))
    return means


def printed(means: pd.DataFrame, sizes: list[int]) -> str:
    """The table as Markdown, numbers of masks side by side."""
    forms = {"error": "{:.4f}", "all": "{:.3f}", "top 1": "{:.2f}", "score": "{:.4f}"}
    heads = [f"error, N = {' / '.join(map(str, sizes))}", *list(forms)[1:]]
    rows = []
    for (method, design), part in means.groupby(level=["method", "design"], sort=False):
        cells = [
            " / ".join("-" if np.isnan(v) else forms[key].format(v).lstrip("0") for v in part[key])
            for key in forms
        ]
        rows.append([f"`{method}`", design, *cells])
    return table(["method", "design", *heads], rows, right=None)


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the study."""
    parser.add_argument("--photos", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--sizes", type=int, nargs="*", default=list(SIZES))


def run(options: argparse.Namespace) -> None:
    """Print a table for each kind of photo."""
    every = [n for n in registry.names("designs") if n not in ("sizes", "exhaustive", "adaptive")]
    for title, photos, designs in (
        ("p = 11 to 13", photos_13, every),
        ("p = 28 to 45", photos_40, ["bernoulli", "paired"]),
        ("texts, p = 14", texts, ["sizes", "bernoulli", "paired", "stratified"]),
    ):
        inputs = list(photos(options.photos))
        print(f"\n{title}\n", flush=True)
        print(printed(study(inputs, designs, options.sizes, options.seeds), options.sizes))
