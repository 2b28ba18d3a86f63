"""Answers that are all known: photos of the stored tables and rows of tables, and their truth.

`imagenet-p13.npz` has the answers of EfficientNet-Lite0 for every mask of photos with 11 to 13
superpixels, and `imagenet-p40.npz` those for 5,000 masks and their complements of photos with 28
to 45. A population is what a study draws masks from, so that nothing else is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import eblime
from eblime.answers import Answers, Proposal
from eblime.designs.masks import exhaustive
from eblime.kernels import ExponentialKernel
from eblime.protocols import Design, Kernel
from studies.data.stored import answers_file

__all__ = [
    "Population",
    "all_masks",
    "ask",
    "best_fit",
    "german_rows",
    "half_of_masks",
    "mask_numbers",
    "perturbed_rows",
    "photo_count",
    "photos_13",
    "photos_40",
]


class Population(NamedTuple):
    """Masks with their scores and weights."""

    masks: np.ndarray
    scores: np.ndarray
    weights: np.ndarray


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
    return answers


def photo_count(name: str) -> int:
    """Number of photos of a table, "p13" or "p40"."""
    return len(np.load(answers_file(f"imagenet-{name}.npz"))["names"])


def photos_13() -> Iterator[Population]:
    """Photos whose answers are known for every mask."""
    stored = np.load(answers_file("imagenet-p13.npz"))
    for i in range(len(stored["names"])):
        scores = stored[f"scores_{i}"].astype(float)
        masks = all_masks(scores)
        yield Population(masks, scores, ExponentialKernel()(masks))


def photos_40() -> Iterator[Population]:
    """Photos whose answers are known for 5,000 masks, and then for their complements."""
    stored = np.load(answers_file("imagenet-p40.npz"))
    for i in range(len(stored["names"])):
        half = half_of_masks(stored, i)
        masks = np.vstack([half, 1 - half])
        yield Population(masks, stored[f"scores_{i}"].astype(float), ExponentialKernel()(masks))


def half_of_masks(stored: Any, number: int) -> np.ndarray:
    """The 5,000 masks of a photo in `imagenet-p40.npz`, without their complements."""
    p = int(stored["segments"][number].max()) + 1
    return np.unpackbits(stored[f"masks_{number}"], axis=1)[:, :p].astype(float)


def perturbed_rows(
    model: object, data: object, rows: Sequence[Any], target: int
) -> Iterator[Population]:
    """20,000 perturbed rows around each of some rows."""
    explainer = eblime.TabularExplainer(model, data, n_masks=20_000, method="lime")
    for number, row in enumerate(rows):
        e = explainer.explain(row, target=target, rng=1_000 + number)
        yield Population(e.masks, e.scores, e.weights)


def german_rows() -> Iterator[Population]:
    """German credit with boosted trees, 20 rows that they have not seen."""
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import GradientBoostingClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    from studies.data.tabular import german

    table = german()
    words = [name for name in table.data if table.data[name].dtype.kind not in "uif"]
    encode = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), words), remainder="passthrough"
    )
    order = np.random.default_rng(0).permutation(len(table.data))
    model = make_pipeline(encode, GradientBoostingClassifier(random_state=0))
    model.fit(table.data.iloc[order[:800]], table.target[order[:800]])
    return perturbed_rows(model, table.data, [table.data.iloc[k] for k in order[800:820]], 1)
