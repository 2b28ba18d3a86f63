"""Coverage of `TextExplainer` as it is, by rank: short texts whose masks can all be asked.

Texts have 8 to 14 different words. The truth is what `Explanation.estimand` says: the weighted
linear fit, free intercept and default kernel, to the scores of all masks. Every fit goes through
`TextExplainer(model, n_masks=N).explain(text)`; fits that used all masks are left out, because
nothing is unknown then. For each case and number of masks this prints how often 95 % intervals
contain the truth for all words, the most important one and the next two, with the mean interval
score, divided by the root mean square of the true importances. Other settings of the method are
fitted to the same answers.

- logistic, forest: TF-IDF and a logistic regression or extremely randomised trees, trained on
  sentences of rt-polarity; sentences that they have not seen;
- transformer: the sentiment games of shapiq, 14 words;
- interactions, rare: functions of the words, the logistic function of effects and interactions of
  two, and a few effects of which one needs three words.

    EBLIME_DATA=... EBLIME_TABLES=... python -m studies coverage-texts    # two minutes on two cores
    EBLIME_DATA=... python -m studies coverage-texts --cases logistic --fits 24
    EBLIME_DATA=... python -m studies all --only coverage-texts    # and store it for the page
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

import eblime
from eblime.designs import exhaustive
from eblime.domains.text import read_text
from eblime.kernels import ExponentialKernel
from studies.data import sources
from studies.data.stored import answers_file
from studies.data.text import rt_polarity
from studies.intervals import interval_measures
from studies.populations import best_fit
from studies.runner import Row, add_run_options, positive, run_study
from studies.tables import frame_table

__all__ = ["coverage_texts"]

SIZES = (100, 200, 1000)
CASES = ("logistic", "forest", "transformer", "interactions", "rare")
LENGTHS = (8, 9, 10, 11, 12, 13, 14)
TEXTS = 21  # of a case, three of each length
METHODS = {
    "as it is": None,
    'EBLIME(noise="equal")': eblime.EBLIME(noise="equal"),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the study."""
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=CASES)
    parser.add_argument("--fits", type=positive, default=126, help="in each cell, about")
    parser.add_argument("--sizes", type=positive, nargs="+", default=list(SIZES), help="of masks")
    add_run_options(parser, items=TEXTS, seed=False)


def run(options: argparse.Namespace) -> None:
    """Run the study and print a line for each case, number of masks and method."""
    print(frame_table(coverage_texts(**vars(options))))


def coverage_texts(
    *,
    cases: Sequence[str] = CASES,
    fits: int = 126,
    sizes: Sequence[int] = SIZES,
    items: int = TEXTS,
    **how: Any,
) -> pd.DataFrame:
    """One row per case, number of masks and method: means over texts and draws.

    `how` are the other settings of `run_study`.
    """
    parts = [
        run_study(
            text_rows,
            {"case": case, "sizes": list(sizes), "seeds": -(-fits // TEXTS)},
            range(items),
            inputs=sources("stored-games" if case == "transformer" else "rt-polarity"),
            **how,
        )
        for case in cases
    ]
    groups = pd.concat(parts).groupby(["case", "N", "method"], sort=False)
    means = groups[["all", "top 1", "top 2-3", "score"]].mean()
    return means.assign(fits=groups.size()).reset_index()


def text_rows(settings: Mapping[str, Any], number: int) -> list[Row]:
    """One text with every number of masks and seed."""
    case = settings["case"]
    text, every, scores = answered_text(case, number)
    truth = best_fit(every, scores, ExponentialKernel()(every))
    size = float(np.sqrt(np.mean(truth**2)))
    known = dict(zip(read_text(text).inputs(every), scores, strict=True))
    explainer = eblime.TextExplainer(lambda texts: [known[t] for t in texts], progress=False)
    rows = []
    for n in settings["sizes"]:
        # where all masks of some texts are used, the others get more seeds
        seeds = settings["seeds"] * (1 if n < 2 ** LENGTHS[0] else 2)
        for seed in range(seeds if n < len(every) else 0):
            first = explainer.explain(text, rng=1000 * number + seed, n_masks=n)
            for name, method in METHODS.items():
                post = (first if method is None else first.refit(method)).posterior
                found = interval_measures(post.interval(0.95), truth, 0.95)
                row = {"case": case, "item": number, "p": len(truth), "N": n, "method": name}
                row |= {"all": found["coverage"], "top 1": found["top_1"]}
                rows.append(row | {"top 2-3": found["top_2_3"], "score": found["score"] / size})
    return rows


def answered_text(case: str, number: int) -> tuple[str, np.ndarray, np.ndarray]:
    """A text, all its masks and their scores."""
    if case == "transformer":
        with np.load(answers_file("games-dev.npz")) as stored:
            names = [n for n in stored.files if n.startswith("sent/") and np.ptp(stored[n])]
            scores = stored[names[number % len(names)]].astype(float)
        p = len(scores).bit_length() - 1
        return " ".join(f"word{j}" for j in range(p)), every_mask(p), scores
    text = short_texts()[number]
    p = read_text(text).n_features
    masks = every_mask(p)
    if case in ("interactions", "rare"):
        return text, masks, function_scores(case, masks, np.random.default_rng([number, p]))
    model = trained(case)
    return text, masks, model.predict_proba(read_text(text).inputs(masks))[:, 1]


def every_mask(p: int) -> np.ndarray:
    """All masks of p words."""
    return exhaustive(np.random.default_rng(0), 0, p)


def function_scores(case: str, masks: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The scores of a function of the words that are shown."""
    p = masks.shape[1]
    if case == "rare":
        a, b, c = rng.permutation(p)[:3]
        slopes = np.where(rng.random(p) < 0.3, rng.normal(size=p), 0.0)
        return masks @ slopes + 2 * masks[:, a] * masks[:, b] * masks[:, c]
    pairs = np.triu(rng.normal(size=(p, p)), 1) * (rng.random((p, p)) < 0.3)
    drive = masks @ rng.normal(size=p) + np.einsum("ij,jk,ik->i", masks, pairs, masks)
    return 1 / (1 + np.exp(-(drive - np.median(drive))))


@lru_cache(maxsize=1)
def short_texts() -> list[str]:
    """Sentences that no model was trained on, of all lengths in turn."""
    texts = rt_polarity()[0][::2]
    by_length: dict[int, list[str]] = {p: [] for p in LENGTHS}
    for text in texts:
        if text.strip() and (p := len(set(text.split()))) <= 2 * LENGTHS[-1]:
            p = read_text(text).n_features
            if p in by_length and len(by_length[p]) < TEXTS:
                by_length[p].append(text)
    return [by_length[p][k] for k in range(TEXTS) for p in LENGTHS]


@lru_cache(maxsize=2)
def trained(case: str) -> Any:
    """A pipeline trained on every second sentence."""
    from sklearn.ensemble import ExtraTreesClassifier
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    texts, labels = (part[1::2] for part in rt_polarity())
    if case == "logistic":
        model = make_pipeline(TfidfVectorizer(), LogisticRegression(C=4))
    else:
        trees = ExtraTreesClassifier(50, min_samples_leaf=3, random_state=0)
        model = make_pipeline(TfidfVectorizer(max_features=2_000), trees)
    return model.fit(texts, labels)
