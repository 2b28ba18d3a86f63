"""Answers that are all known: photos of the stored tables and rows of tables, and their truth.

A population has the answers for every mask of a photo with 11 to 13 superpixels ("p13") or of a
game, for 5,000 masks and their complements of a photo with 28 to 45 ("p40"), or for 20,000
perturbed rows around a row of a table. It is what a study draws masks from, so that nothing else is
unknown.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import eblime
from eblime.answers import Answers, Proposal
from eblime.designs import exhaustive, orthogonal
from eblime.kernels import ExponentialKernel
from eblime.protocols import Design, Kernel
from studies.binned import binned_rows
from studies.data import sources
from studies.data.photos import photo_classifier
from studies.data.stored import answers_file, stored_games, stored_photos
from studies.data.tabular import boosted_trees, german
from studies.games import AnswerTable, cached_answers
from studies.runner import Task, run_study

__all__ = [
    "TITLES",
    "Population",
    "all_masks",
    "ask",
    "asked",
    "best_fit",
    "count_inputs",
    "mask_numbers",
    "pairs_together",
    "population",
    "run_cases",
    "truth_of",
]

TITLES = {
    "p13": "photos, p = 11-13",
    "p40": "photos, p = 28-45",
    "german": "German credit, p = 20",
    "breast-cancer": "breast cancer, standardised, p = 30",
    "breast-cancer-raw": "breast cancer, as it is, p = 30",
    "sparse": "linear, 5 of p = 100",
    "games": "games of shapiq, p = 12-16",
}
_ROWS = 20  # of each table
_GAMES = 40
_TRUTH = 1 << 15  # masks of an array that stand for all of them


class Population(NamedTuple):
    """Masks with their scores and weights."""

    masks: np.ndarray
    scores: np.ndarray
    weights: np.ndarray

    def take(self, rows: np.ndarray) -> Population:
        """Some of them."""
        return Population(*(part[rows] for part in self))


def population(case: str, number: int) -> Population:
    """An input of a case; of photos in "p40", the masks come first and then their complements."""
    if case in ("p13", "games"):
        scores = stored_photos()[number] if case == "p13" else _games()[number]
        masks = all_masks(scores)
        return Population(masks, scores, ExponentialKernel()(masks))
    if case == "p40":
        with np.load(answers_file("imagenet-p40.npz")) as stored:
            p = int(stored["segments"][number].max()) + 1
            half = np.unpackbits(stored[f"masks_{number}"], axis=1)[:, :p].astype(float)
            scores = stored[f"scores_{number}"].astype(float)
        masks = np.vstack([half, 1 - half])
        return Population(masks, scores, ExponentialKernel()(masks))
    model, data, rows, target = _table(case)
    table = pd.DataFrame(data)
    own = pd.Series(rows[number], index=table.columns)
    masks, drawn = binned_rows(np.random.default_rng(1_000 + number), table, own, 20_000)
    asked = drawn if isinstance(data, pd.DataFrame) else drawn.to_numpy()
    scores = getattr(model, "predict_proba", model)(asked)[:, target]
    return Population(masks, scores, ExponentialKernel()(masks))


def asked(case: str, number: int, n: int, draw: int) -> Population:
    """What an explainer asks about an input by default, n masks, with the answers.

    Photos of "p40" ask the network, once for each draw.
    """
    rng = np.random.default_rng([number, draw])
    if case in ("p13", "games"):
        whole = population(case, number)
        masks = orthogonal(rng, n, whole.masks.shape[1])
        return whole.take(mask_numbers(masks))
    if case == "p40":
        return _asked_photo(number, n, draw)
    model, data, rows, target = _table(case)
    explainer = eblime.TabularExplainer(model, data, n_masks=n, method="lime", progress=False)
    found = explainer.explain(rows[number], target=target, rng=rng).answers
    return Population(found.masks, found.scores, found.weights)


def truth_of(case: str, number: int) -> np.ndarray:
    """The importances that `asked` estimates: the fit to all masks that are known, (p,).

    For rows of tables, that is the fit to 32,768 masks of an array.
    """
    photo = case in ("p13", "p40", "games")
    return best_fit(*(population(case, number) if photo else asked(case, number, _TRUTH, 1_000)))


def _asked_photo(number: int, n: int, draw: int) -> Population:
    """Answers of the network to orthogonal masks; they are kept in the cache folder."""
    with np.load(answers_file("imagenet-p40.npz")) as stored:
        image, labels, target = (stored[name][number] for name in ("images", "segments", "labels"))
    masks = orthogonal(np.random.default_rng([number, draw]), n, int(labels.max()) + 1)

    def ask_network() -> AnswerTable:
        explainer = eblime.ImageExplainer(
            photo_classifier(), segmentation=labels, hide=0, n_masks=n, design=lambda *_: masks
        )
        return AnswerTable(scores=explainer.explain(image, target=int(target)).scores)

    identity = (image, labels, masks, "EfficientNet-Lite0")
    scores = cached_answers("p40", f"{number}-{draw}", identity, ask_network).scores
    return Population(masks, scores, ExponentialKernel()(masks))


@lru_cache(maxsize=1)
def _games() -> list[np.ndarray]:
    """The first of the stored games that have at least 12 features."""
    return [scores for scores in stored_games().values() if len(scores) >= 4096][:_GAMES]


def pairs_together(case: str, whole: Population) -> Population:
    """A photo with each mask followed by its complement; of "p13", pair k has the mask of k."""
    rows = np.arange(len(whole.masks)).reshape(2, -1)
    if case == "p13":
        rows[1] = rows[1, ::-1].copy()
    return whole.take(rows.T.ravel())


def count_inputs(case: str) -> int:
    """Number of inputs of a case."""
    if case in ("p13", "games"):
        return len(stored_photos()) if case == "p13" else len(_games())
    if case == "p40":
        with np.load(answers_file("imagenet-p40.npz")) as stored:
            return len(stored["names"])
    return _ROWS


@lru_cache(maxsize=1)
def _table(case: str) -> tuple[Any, Any, Sequence[Any], int]:
    """A model, its background, the rows to explain and the target.

    German credit has boosted trees, and breast cancer a logistic regression; neither has seen the
    rows. The sparse model is a linear function of 100 normal columns that uses 5 of them.
    """
    from sklearn.datasets import load_breast_cancer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if case == "sparse":
        data = np.random.default_rng(0).normal(size=(1000, 100))
        slopes = np.zeros((100, 1))
        slopes[:5, 0] = [3, -2, 2, -1, 1]
        return lambda rows: np.asarray(rows, float) @ slopes, data, data[:_ROWS], 0
    if case == "german":
        table = german()
        order = np.random.default_rng(0).permutation(len(table.data))
        rows = [table.data.iloc[k] for k in order[800 : 800 + _ROWS]]
        return boosted_trees(table, order[:800]), table.data, rows, 1
    data, target = load_breast_cancer(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(data))
    logistic = LogisticRegression(max_iter=20_000)
    model = logistic if case.endswith("raw") else make_pipeline(StandardScaler(), logistic)
    model.fit(data[order[:450]], target[order[:450]])
    return model, data, data[order[450 : 450 + _ROWS]], 1


def run_cases(
    task: Task, settings: Mapping[str, Any], cases: Sequence[str], options: argparse.Namespace
) -> pd.DataFrame:
    """The rows of a study of the inputs of several cases, `options.items` of each at most."""
    tables = []
    for case in cases:
        count = count_inputs(case)
        rows = run_study(
            task,
            {"case": case, **settings},
            range(min(options.items or count, count)),
            inputs=sources(case),
            out=options.out,
            jobs=options.jobs,
            progress=options.progress,
        )
        tables.append(rows)
    return pd.concat(tables, ignore_index=True)


def best_fit(masks: np.ndarray, scores: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The weighted least squares slopes, intercept free: what LIME estimates."""
    columns = np.column_stack([np.ones(len(masks)), masks])
    root = np.sqrt(weights)
    return np.linalg.lstsq(columns * root[:, None], scores * root, rcond=None)[0][1:]


def all_masks(scores: np.ndarray) -> np.ndarray:
    """The masks of a table of all scores: mask k shows feature j if bit j of k is set."""
    return exhaustive(np.random.default_rng(0), 0, len(scores).bit_length() - 1)


def mask_numbers(masks: np.ndarray) -> np.ndarray:
    """The number of each mask in a table of all scores."""
    return (masks @ 2.0 ** np.arange(masks.shape[1])).astype(np.int64)


def ask(
    design: Design, scores: np.ndarray, rng: np.random.Generator, kernel: Kernel | None = None
) -> Answers:
    """The answers that a design gets from a table of all scores; without a kernel, even weights."""
    answers = Answers.none([str(j) for j in range(len(scores).bit_length() - 1)])
    following: Any = design.next  # masks, or a proposal
    while (wanted := following(rng, answers)) is not None:
        even = not isinstance(wanted, Proposal)
        masks = wanted if even else wanted.masks
        sampling = np.ones(len(masks)) if even else wanted.sampling_weights
        weights = sampling if kernel is None else kernel(masks) * sampling
        found = scores[mask_numbers(masks)].astype(float)
        answers = answers.append(masks, found, weights, sampling)
    return answers if np.ptp(answers.sampling) else replace(answers, sampling=None)
