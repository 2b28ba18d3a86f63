"""The inputs of the paper's coverage study: photos, digits and table rows, with real models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

import eblime
from eblime._types import FloatArray
from eblime.kernels import ExponentialKernel
from studies.binned import binned_rows
from studies.data import mnist, photos, stored, tabular
from studies.data.networks import weights_digest
from studies.games import AnswerTable, ask_all_masks, cached_answers

__all__ = ["CASES", "MOST_ITEMS", "TRUTHS", "Item", "count_items", "item", "truth_of"]

MOST_ITEMS = 40  # of a study whose number of items is not given
TRUTHS = ("exact", "lime", "paper")
Sampled = tuple[FloatArray, FloatArray, FloatArray]  # masks, scores, weights


class Item(Protocol):
    """One input of a study, with the model's scores of its masks."""

    def sample(self, rng: np.random.Generator, n: int) -> Sampled:
        """N masks, drawn as in lime, with their scores and weights."""
        ...

    def question(self, n: int) -> tuple[Any, Any, int]:
        """An explainer with n masks, its input and its target."""
        ...

    def whole(self) -> Sampled:
        """All masks; 10,000 random ones if there are infinitely many."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowItem:
    """A row of a table.

    `sample` draws rows within bins as the paper does. `question` is the default of the library, in
    which rows of the background hide the columns.
    """

    model: Any
    table: Any  # the background
    row: Any

    def sample(self, rng: np.random.Generator, n: int) -> Sampled:
        """N perturbed rows."""
        masks, rows = binned_rows(rng, self.table, self.row, n)
        return masks, self.model.predict_proba(rows)[:, 1], ExponentialKernel()(masks)

    def question(self, n: int) -> tuple[Any, Any, int]:
        """An explainer with n masks, its input and its target."""
        settings: Any = {"n_masks": n, "method": "lime", "progress": False}
        return eblime.TabularExplainer(self.model, self.table, **settings), self.row, 1

    def whole(self) -> Sampled:
        """10,000 perturbed rows, from a seed of their own."""
        return self.sample(np.random.default_rng(987_654_321), 10_000)


def truth_of(found: Item, kind: str) -> FloatArray:
    """The importances that the intervals should contain.

    "exact": lime's ridge with a free intercept, on all masks. "lime": the same on 10,000 random
    masks, as in the paper. "paper": equation (1), which has no intercept, on 10,000 random masks.
    """
    if kind == "exact":
        return eblime.fit(*found.whole(), method="lime").mean
    masks, scores, weights = found.sample(np.random.default_rng(123_456_789), 10_000)
    if kind == "lime":
        return eblime.fit(masks, scores, weights, method="lime").mean
    weighted = masks * weights[:, None]
    gram = weighted.T @ masks + np.eye(masks.shape[1])
    return np.asarray(np.linalg.solve(gram, weighted.T @ scores))


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A row of the paper's table: its title, how many inputs it has, and how to load one.

    Both functions get the name of the case.
    """

    title: str
    count: Callable[[str], int]
    load: Callable[[str, int], Item]


def item(case: str, number: int) -> Item:
    """One input of a case."""
    return CASES[case].load(case, number)


def count_items(case: str, wanted: int | None) -> int:
    """How many inputs of a case a study takes: as many as wanted, else all, at most 40."""
    return min(wanted or MOST_ITEMS, CASES[case].count(case))


def _photo(case: str, number: int) -> AnswerTable:
    """A photo with at most 13 superpixels; hidden ones are black, as in BayesLIME's code."""
    photo = photos.photo_set(case)[number]
    image = photos.read_square(photo.path)
    labels = photos.cut_coarsely(image)

    def ask() -> AnswerTable:
        return ask_all_masks(photos.photo_classifier(), image, labels, photo.target)

    return cached_answers(case, photo.name, (image, labels, "EfficientNet-Lite0"), ask)


def _digit(case: str, number: int) -> AnswerTable:
    """A digit of the test set with at most 13 superpixels; hidden ones are black."""
    digit, model = int(case.split("-")[1]), mnist.network()
    image = mnist.digits(digit)[number]
    labels = photos.cut_coarsely(image)

    def ask() -> AnswerTable:
        return ask_all_masks(model, image, labels, digit)

    return cached_answers(case, str(number), (image, labels, weights_digest(model)), ask)


def _row(case: str, number: int) -> RowItem:
    """A row that the forest was not trained on."""
    table, model, rows = tabular.table_and_forest(case)
    return RowItem(model=model, table=table.data, row=table.data.iloc[rows[number]])


def _stored(case: str) -> list[FloatArray]:
    """The stored answers of all inputs."""
    return stored.stored_photos() if case == "stored-photos" else [*stored.stored_games().values()]


_PHOTOS = {
    "french-bulldog": "French bulldog",
    "broccoli": "Broccoli",
    "corn": "Corn",
    "scuba-diver": "Scuba diver",
    "mixed": "Other photos",
}
_DIGITS = {f"digit-{digit}": f"Digit {digit}" for digit in range(1, 10)}
_ROWS = {"compas": "Compas", "german": "German credit"}
_STORED = {"stored-photos": "Photos, stored answers", "stored-games": "Games of shapiq"}
_LOADERS: list[tuple[dict[str, str], Callable[[str], int], Callable[[str, int], Item]]] = [
    (_PHOTOS, lambda case: len(photos.photo_set(case)), _photo),
    (_DIGITS, lambda case: len(mnist.digits(int(case.split("-")[1]))), _digit),
    (_ROWS, lambda case: len(tabular.table_and_forest(case)[2]), _row),
    (
        _STORED,
        lambda case: len(_stored(case)),
        lambda case, number: AnswerTable(scores=_stored(case)[number]),
    ),
]
CASES = {
    name: Case(title=title, count=count, load=load)
    for titles, count, load in _LOADERS
    for name, title in titles.items()
}
