"""Localisation: how often the most important superpixels cover the defect (table 1).

On simulated ultrasonic scans (the authors' are not public), on real magnetic tiles, and on real
ultrasonic scans of drilled holes, where each hole is explained by a network that was not trained on
it. Hidden superpixels are black and masks are random ("bernoulli"), as in the paper, or they have
the mean colour and masks come in pairs, the default of the library; both mixtures are run, too. In
each setting all methods use the same images and masks, so they are compared by the images on which
they differ.

    python -m studies localisation --dataset ultrasonic
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

import eblime
from eblime import measures, registry
from studies.data import sources
from studies.data.faulty_parts import PARTS, faulty_parts
from studies.intervals import mean_interval
from studies.pairs import design_named
from studies.runner import Row, add_run_options, positive, run_study, study_generator
from studies.tables import frame_table

__all__ = ["PAIRS", "SETTINGS", "counts", "localisation", "mcnemar"]

METHODS = ("lime", "bayeslime", "eblime-paper", "eblime-ridge", "eblime")
SETTINGS = {  # hidden superpixels and design
    "the paper's setting": ("black", "bernoulli"),
    "mean colour, pairs": ("mean", "paired"),
    "black, pairs": ("black", "paired"),
    "mean colour, random masks": ("mean", "bernoulli"),
}
_HIDE: dict[str, Any] = {"black": 0, "mean": "mean"}
PAIRS = (("eblime", "lime"), ("eblime", "bayeslime"), ("eblime-paper", "lime"))


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the study."""
    parser.add_argument("--dataset", default="ultrasonic", choices=PARTS)
    parser.add_argument("--n", type=positive, default=200, help="masks per image")
    parser.add_argument("--top", type=positive, default=5, help="superpixels that count")
    parser.add_argument("--superpixels", type=positive, default=40, help="of an image, about")
    parser.add_argument(
        "--methods", nargs="+", default=list(METHODS), choices=registry.names("methods")
    )
    parser.add_argument("--hide", nargs="+", default=list(_HIDE), choices=_HIDE)
    parser.add_argument("--design", nargs="+", default=["paired", "bernoulli"])
    add_run_options(parser)


def run(options: argparse.Namespace) -> None:
    """Run the study; print the share of defects found, and compare the methods."""
    rows = localisation(**vars(options))
    print(
        f"\n{options.dataset}: defects with at least half of their area under the top "
        f"{options.top} superpixels\n"
    )
    for (hide, design), part in rows.groupby(["hide", "design"], sort=False):
        found = counts(part).drop(columns=["dataset", "found_loosely"])
        print(f"hidden: {hide}, design: {design}\n\n{frame_table(found)}\n")
        for first, second in PAIRS:
            if {first, second} <= set(options.methods):
                print(f"{first} against {second}: {comparison(mcnemar(part, first, second))}")
        print()


def comparison(test: Mapping[str, float]) -> str:
    """The result of `mcnemar` as a sentence."""
    return (
        f"better on {test['first']:.0f}, worse on {test['second']:.0f} of {test['of']:.0f}, "
        f"exact p = {test['p']:.2g}, difference {100 * test['difference']:+.1f} points "
        f"({100 * test['low']:+.1f} to {100 * test['high']:+.1f})."
    )


def localisation(
    dataset: str = "ultrasonic",
    *,
    n: int = 200,
    top: int = 5,
    superpixels: int = 40,
    items: int | None = None,
    methods: Sequence[str] = METHODS,
    hide: Sequence[str] = ("black", "mean"),
    design: Sequence[str] = ("paired", "bernoulli"),
    seed: int = 0,
    jobs: int = 1,
    **how: Any,
) -> pd.DataFrame:
    """One row per image, hiding, design and method: how the explanation locates the defect.

    A defect counts as found if the `top` superpixels with the largest positive importances cover at
    least half of it; for `found_loosely` any overlap is enough. `lambda_mean` is missing for a
    method without a ridge parameter. Both hidings have the same masks. `how` are the other settings
    of `run_study`.
    """
    parts = faulty_parts(dataset)
    numbers = range(min(items or len(parts.images), len(parts.images)))
    if jobs > 1:  # train once, here, and not in every process
        for number in np.unique(parts.numbers[: len(numbers)]):
            parts.network(int(number))
    settings = {
        "dataset": dataset,
        "n": n,
        "top": top,
        "superpixels": superpixels,
        "methods": list(methods),
        "hide": list(hide),
        "design": list(design),
        "seed": seed,
    }
    inputs = sources(dataset)
    return run_study(localisation_rows, settings, numbers, inputs=inputs, jobs=jobs, **how)


def localisation_rows(settings: Mapping[str, Any], number: int) -> list[Row]:
    """All rows of one image."""
    part = faulty_parts(settings["dataset"]).part(number)
    about = {"dataset": settings["dataset"], "item": number, "part": part.number}
    rows = []
    for hide, design in product(settings["hide"], settings["design"]):
        explainer = eblime.ImageExplainer(
            part.model,
            segmentation=("slic", {"n_segments": settings["superpixels"], "compactness": 100.0}),
            n_masks=settings["n"],
            hide=_HIDE[hide],
            design=design_named(design),
            calls=eblime.Calls(batch_size=50),
            progress=False,
        )
        asked = explainer.explain(part.image, target=1, rng=study_generator(settings, number))
        head = {**about, "hide": hide, "design": design}
        for name in settings["methods"]:
            refitted = asked.refit(name)
            share = measures.covered_share(refitted, part.defect, top=settings["top"])
            found = {"covered": share, "found": share >= 0.5, "found_loosely": share > 0}
            lam = refitted.posterior.extras.get("lam")
            fit = {
                "r2": refitted.posterior.r2,
                "lambda_mean": None if lam is None else float(lam.mean),
            }
            rows.append({**head, "method": name, **found, "score": asked.prediction, **fit})
    return rows


def counts(table: pd.DataFrame) -> pd.DataFrame:
    """Number of defects found by each method, with 95 % intervals of the share.

    Images that the model classifies as free of defects are left out. The intervals are those of
    Clopper and Pearson. If several images show the same part, they are not independent: the
    interval is then that of the mean over parts (Student's t).

    Examples
    --------
    >>> import pandas as pd
    >>> from studies.localisation import counts
    >>> table = pd.DataFrame(
    ...     {
    ...         "dataset": "ultrasonic",
    ...         "part": [0, 1, 2, 3],
    ...         "method": "eblime",
    ...         "found": [True, True, True, False],
    ...         "found_loosely": True,
    ...         "score": 0.9,
    ...     }
    ... )
    >>> counts(table)[["method", "found", "of", "low", "high"]].round(2).values.tolist()
    [['eblime', 3, 4, 0.19, 0.99]]
    """
    rows = []
    for (dataset, name), part in _classified_faulty(table).groupby(
        ["dataset", "method"], sort=False
    ):
        hit, total = int(part["found"].sum()), len(part)
        exact = stats.binomtest(hit, total).proportion_ci()
        share, low, high = hit / total, float(exact.low), float(exact.high)
        by_part = part.groupby("part")["found"].mean().to_numpy(dtype=float)
        if len(by_part) < total:
            share, (low, high) = float(by_part.mean()), mean_interval(by_part)
        rows.append(
            {
                "dataset": dataset,
                "method": name,
                "found": hit,
                "of": total,
                "parts": len(by_part),
                "share": share,
                "low": max(0.0, low),
                "high": min(1.0, high),
                "found_loosely": int(part["found_loosely"].sum()),
            }
        )
    return pd.DataFrame(rows)


def mcnemar(table: pd.DataFrame, first: str, second: str) -> dict[str, float]:
    """Compare two methods on the same images: exact test and interval of the difference.

    Only images on which one method succeeds and the other fails tell them apart. Without a
    difference, each of these favours either method with probability one half (McNemar 1947). The
    interval combines exact 97.5 % intervals of the two shares, and is conservative. If several
    images show the same part, parts are compared instead: a sign test over parts, and Student's
    interval of their mean.

    Examples
    --------
    One method finds all four defects, the other one of them:

    >>> import pandas as pd
    >>> from studies.localisation import mcnemar
    >>> table = pd.DataFrame(
    ...     {
    ...         "part": [0, 1, 2, 3] * 2,
    ...         "item": [0, 1, 2, 3] * 2,
    ...         "method": ["eblime"] * 4 + ["lime"] * 4,
    ...         "found": [True] * 4 + [True, False, False, False],
    ...         "score": 0.9,
    ...     }
    ... )
    >>> found = mcnemar(table, "eblime", "lime")
    >>> found["first"], found["second"], found["p"], found["difference"]
    (3, 0, 0.25, 0.75)
    """
    wide = _classified_faulty(table).pivot(index=["part", "item"], columns="method", values="found")
    gap = wide[first].astype(float) - wide[second].astype(float)
    by_part = np.asarray(gap.groupby(level="part").mean(), dtype=np.float64)
    more, less, total = int((by_part > 0).sum()), int((by_part < 0).sum()), len(by_part)
    p = float(stats.binomtest(more, more + less).pvalue) if more + less else 1.0
    if total < len(gap):
        low, high = mean_interval(by_part)
    else:
        ours, theirs = (
            stats.binomtest(count, total).proportion_ci(0.975) for count in (more, less)
        )
        low, high = ours.low - theirs.high, ours.high - theirs.low
    return {
        "first": more,
        "second": less,
        "of": total,
        "p": p,
        "difference": float(by_part.mean()),
        "low": float(low),
        "high": float(high),
    }


def _classified_faulty(table: pd.DataFrame) -> pd.DataFrame:
    """Rows of images that the model classifies as faulty."""
    found = table[table["score"] > 0.5]
    if found.empty:
        raise ValueError(
            "The model classifies none of these images as faulty, so there is no defect to locate."
        )
    return found
