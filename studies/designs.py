"""Designs compared at equal numbers of masks: error, coverage and interval score.

The truth is the weighted linear fit, default kernel and free intercept, to a whole population of
answers of EfficientNet-Lite0: all masks of photos with 11 to 13 superpixels, and 5,000 masks with
their complements of photos with about 36. For the second kind only designs that draw evenly can be
compared: "bernoulli" draws from the stored masks, "paired" from the stored pairs. Texts are the
sentiment games of shapiq, 14 words, with lime's cosine kernel; "sizes" is compared with the fit
under its own law of masks, and errors are divided by the root mean square of the importances.

For each design and number of masks: the root mean square error, how often 95 % intervals hold the
truth (all features, the one with the largest true importance, and the next two), and the mean
interval score. Then squared error and score of orthogonal masks, relative to `EBLIME()` with pairs
as it was before orthogonal masks (`finite=False`), beside what was aimed at; and the same where 30
to 98 % of all masks of eight features are asked, relative to `finite=False`.

    python -m studies designs                 # five minutes on one core
    python -m studies designs --items 5 --seeds 1
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

import eblime
from eblime import registry
from eblime.answers import Answers
from eblime.designs.rounds import as_design
from eblime.kernels import ExponentialKernel
from eblime.methods.regression import as_method
from studies.data import sources
from studies.data.stored import answers_file
from studies.intervals import interval_score
from studies.pairs import design_named
from studies.populations import all_masks, ask, best_fit, count_inputs, population
from studies.runner import Row, add_run_options, positive, run_study
from studies.tables import table

SIZES = (64, 128, 256)
TEXTS = ExponentialKernel(distance="cosine")
METHODS = {
    "EBLIME()": eblime.EBLIME(),
    "EBLIME(local=False)": eblime.EBLIME(local=False),
    "BayesLIME()": eblime.BayesLIME(),
    "LIME()": eblime.LIME(),
    "Quadrature()": eblime.Quadrature(),
}
BEFORE = "EBLIME(finite=False)"
AIMS = {  # at most, with 64, 128 and 256 masks; coverage between .93 and .975, by rank at least .92
    ("EBLIME()", "square"): (0.60, 0.40, 0.18),
    ("EBLIME()", "score"): (0.85, 0.70, 0.45),
    ("Quadrature()", "score"): (0.80, 0.55, 0.42),
}
SHARES = {0.3: 0.93, 0.6: 0.76, 0.9: 0.45, 0.98: 0.25}  # of all masks -> the score aimed at
FEATURES = 8

# the truth under a design with a number of masks, and the answers that the design gets
Truth = Callable[[str, int], np.ndarray]
Draw = Callable[[str, int, np.random.Generator], Answers]


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the study."""
    parser.add_argument("--sizes", type=positive, nargs="+", default=list(SIZES), help="of masks")
    parser.add_argument("--seeds", type=positive, default=3)
    add_run_options(parser, items=20, seed=False)


def run(options: argparse.Namespace) -> None:
    """Run the study and print a table for each kind of input."""
    left_out = ("sizes", "exhaustive", "adaptive")
    every = ["paired", *(n for n in registry.names("designs") if n not in left_out)]
    for kind, title, designs in (
        ("p13", "p = 11 to 13", every),
        ("p40", "p = 28 to 45", ["bernoulli", "paired"]),
        ("texts", "texts, p = 14", ["sizes", "bernoulli", "paired", "orthogonal"]),
    ):
        rows = run_study(
            design_rows,
            {"kind": kind, "designs": designs, "sizes": options.sizes, "seeds": options.seeds},
            inputs_of(kind, options.items),
            inputs=sources("stored-games" if kind == "texts" else kind),
            out=options.out,
            jobs=options.jobs,
            progress=options.progress,
        )
        means = rows.groupby(["method", "design", "N"], sort=False).mean()
        means["error"] = np.sqrt(means.pop("square"))
        print(f"\n{title}\n\n{results_table(means, options.sizes)}", flush=True)
        if kind == "p13":
            print(f"\n{aims_table(means)}", flush=True)
    rows = run_study(
        share_rows,
        {"seeds": options.seeds},
        inputs_of("p13", options.items),
        inputs=sources("p13"),
        out=options.out,
        jobs=options.jobs,
        progress=options.progress,
    )
    print(f"\nMany of all masks\n\n{shares_table(rows)}")


def aims_table(means: pd.DataFrame) -> str:
    """Orthogonal masks relative to pairs, beside what was aimed at."""
    rows = []
    for (method, measure), aims in AIMS.items():
        for n, aim in zip(SIZES, aims, strict=True):
            if n not in means.index.get_level_values("N"):
                continue
            found, before = means.loc[(method, "orthogonal", n)], means.loc[(BEFORE, "paired", n)]
            power = 2 if measure == "square" else 1
            name = "error" if measure == "square" else measure
            ratio = (found[name] / before[name]) ** power
            shares = [f"{found[key]:.3f}" for key in ("all", "top 1", "top 2-3")]
            rows.append([f"`{method}`", measure, n, f"{ratio:.2f}", f"{aim:.2f}", *shares])
    return table(["method", "measure", "N", "ratio", "aim", "all", "top 1", "top 2-3"], rows)


def share_rows(settings: Mapping[str, Any], number: int) -> list[Row]:
    """One photo, cut to eight features, with many of all masks."""
    scores = population("p13", number).scores
    scores = scores[np.arange(2**FEATURES) + len(scores) - 2**FEATURES]  # the others are shown
    masks = all_masks(scores)
    truth = best_fit(masks, scores, ExponentialKernel()(masks))
    rows = []
    for share in SHARES:
        n = 2 * round(share * len(masks) / 2)
        for seed in range(settings["seeds"]):
            rng, design = np.random.default_rng([number, n, seed]), as_design("orthogonal", n, 8)
            answers = ask(design, scores, rng, ExponentialKernel())
            for finite in (True, False):
                found = judge(truth, answers, eblime.EBLIME(finite=finite))
                rows.append({"share": share, "finite": finite, **found})
    return rows


def shares_table(rows: pd.DataFrame) -> str:
    """Coverage, and the interval score relative to that without the finite population."""
    means = rows.groupby(["share", "finite"]).mean()
    lines = []
    for share, aim in SHARES.items():
        now, before = means.loc[(share, True)], means.loc[(share, False)]
        shares = [f"{now['all']:.3f}", f"{now['top 1']:.3f}", f"{before['all']:.3f}"]
        lines.append(
            [f"{share:.0%}", *shares, f"{now['score'] / before['score']:.2f}", f"{aim:.2f}"]
        )
    return table(["share", "all", "top 1", "all before", "score", "aim"], lines)


def inputs_of(kind: str, most: int) -> range:
    """The numbers of the inputs."""
    return range(min(most, len(text_names()) if kind == "texts" else count_inputs(kind)))


def text_names() -> list[str]:
    """The names of the stored texts whose sentiment is not constant."""
    with np.load(answers_file("games-dev.npz")) as stored:
        return [name for name in stored.files if name.startswith("sent/") and np.ptp(stored[name])]


def design_rows(settings: Mapping[str, Any], number: int) -> list[Row]:
    """One input with every design, number of masks, seed and method."""
    truth, draw = {"p13": photo_13, "p40": photo_40, "texts": text}[settings["kind"]](number)
    return [
        {"method": name, "design": design, "N": n, **judge(truth(design, n), answers, method)}
        for n in settings["sizes"]
        for design in settings["designs"]
        for seed in range(settings["seeds"])
        for answers in [draw(design, n, np.random.default_rng([number, n, seed]))]
        for name, method in {**METHODS, BEFORE: eblime.EBLIME(finite=False)}.items()
        if (name != "Quadrature()" or (design == "orthogonal" and settings["kind"] == "p13"))
        and (name != BEFORE or design == "paired")
    ]


def photo_13(number: int) -> tuple[Truth, Draw]:
    """A photo whose answers are known for every mask."""
    found = population("p13", number)
    truth, p = best_fit(*found), found.masks.shape[1]
    return (
        lambda name, n: truth,
        lambda name, n, rng: ask(
            as_design(design_named(name), n, p), found.scores, rng, ExponentialKernel()
        ),
    )


def photo_40(number: int) -> tuple[Truth, Draw]:
    """A photo whose answers are known for 5,000 masks and their complements."""
    found = population("p40", number)
    truth, half = best_fit(*found), len(found.masks) // 2

    def draw(name: str, n: int, rng: np.random.Generator) -> Answers:
        if name == "bernoulli":
            rows = rng.choice(2 * half, n, replace=False)
        else:
            pairs = rng.choice(half, n // 2, replace=False)
            rows = np.stack([pairs, pairs + half], axis=1).ravel()
        return Answers(**found.take(rows)._asdict())

    return lambda name, n: truth, draw


def text(number: int) -> tuple[Truth, Draw]:
    """A text of 14 words whose sentiment is known for every mask, in units of its importances."""
    with np.load(answers_file("games-dev.npz")) as stored:
        scores = stored[text_names()[number]].astype(float)
    masks = all_masks(scores)
    scores = scores / np.sqrt(np.mean(best_fit(masks, scores, TEXTS(masks)) ** 2))
    p = masks.shape[1]
    hidden = p - masks.sum(axis=1).astype(int)
    by_size = np.where(hidden > 0, 1 / p / np.bincount(hidden)[hidden], 0.0)

    def truth(design: str, n: int) -> np.ndarray:
        counts = np.ones(len(masks))
        if design == "sizes":
            counts = (n - 1) * by_size
            counts[-1] = 1
        return best_fit(masks, scores, counts * TEXTS(masks))

    return truth, lambda name, n, rng: ask(as_design(design_named(name), n, p), scores, rng, TEXTS)


def judge(truth: np.ndarray, answers: Answers, method: object) -> dict[str, float]:
    """One fit against the truth."""
    post = as_method(method).fit(np.random.default_rng(0), answers)
    found = {"square": float(np.mean((post.mean - truth) ** 2))}
    if post.has_spread:
        ends = post.interval(0.95)
        inside = (ends[:, 0] <= truth) & (truth <= ends[:, 1])
        found["all"] = float(inside.mean())
        ranked = inside[np.argsort(-np.abs(truth), kind="stable")]
        found["top 1"], found["top 2-3"] = float(ranked[0]), float(ranked[1:3].mean())
        found["score"] = float(interval_score(ends, truth, 0.95).mean())
    return found


def results_table(means: pd.DataFrame, sizes: list[int]) -> str:
    """The table as Markdown, numbers of masks side by side."""
    forms = {
        "error": "{:.4f}",
        "all": "{:.3f}",
        "top 1": "{:.2f}",
        "top 2-3": "{:.2f}",
        "score": "{:.4f}",
    }
    heads = [f"error, N = {' / '.join(map(str, sizes))}", *list(forms)[1:]]
    rows = []
    for (method, design), part in means.groupby(level=["method", "design"], sort=False):
        cells = [
            " / ".join("-" if np.isnan(v) else forms[key].format(v).lstrip("0") for v in part[key])
            for key in forms
        ]
        rows.append([f"`{method}`", design, *cells])
    return table(["method", "design", *heads], rows, right=None)
