"""The inputs of the paper's coverage study: photos, digits and table rows, with real models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from eblime._types import FloatArray
from eblime.evaluation.answers import AnswerTable, ask_all_masks, cached_answers
from eblime.evaluation.models import photo_classifier, table_and_forest
from eblime.explainers.base import BaseExplainer
from eblime.methods.regression import fit

__all__ = ["CASES", "TRUTHS", "Item", "item", "truth_of"]

TRUTHS = ("exact", "lime", "paper")
Sampled = tuple[FloatArray, FloatArray, FloatArray]  # masks, scores, weights


class Item(Protocol):
    """One input of a study, with the model's scores of its masks."""

    def sample(self, rng: np.random.Generator, n: int) -> Sampled:
        """N masks, drawn as in lime, with their scores and weights."""
        ...

    def question(self, n: int) -> tuple[BaseExplainer, Any, int]:
        """An explainer with n masks, its input and its target."""
        ...

    def whole(self) -> Sampled:
        """All masks; 10,000 random ones if there are infinitely many."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowItem:
    """A row of a table, perturbed within bins as in lime."""

    explainer: Any  # returns a TabularExplainer with n masks
    row: Any

    def sample(self, rng: np.random.Generator, n: int) -> Sampled:
        """N perturbed rows."""
        e = self.explainer(n).explain(self.row, target=1, rng=rng)
        return e.masks, e.scores, e.weights

    def question(self, n: int) -> tuple[BaseExplainer, Any, int]:
        """An explainer with n masks, its input and its target."""
        return self.explainer(n), self.row, 1

    def whole(self) -> Sampled:
        """10,000 perturbed rows, from a seed of their own."""
        return self.sample(np.random.default_rng(987_654_321), 10_000)


def truth_of(found: Item, kind: str) -> FloatArray:
    """The importances that the intervals should contain.

    "exact": lime's ridge with a free intercept, on all masks. "lime": the same on 10,000 random
    masks, as in the paper. "paper": equation (1), which has no intercept, on 10,000 random masks.
    """
    if kind == "exact":
        return fit(*found.whole(), method="lime").mean
    masks, scores, weights = found.sample(np.random.default_rng(123_456_789), 10_000)
    if kind == "lime":
        return fit(masks, scores, weights, method="lime").mean
    weighted = masks * weights[:, None]
    gram = weighted.T @ masks + np.eye(masks.shape[1])
    return np.asarray(np.linalg.solve(gram, weighted.T @ scores))


def item(case: str, number: int) -> Item:
    """One input of a case."""
    return CASES[case].load(case, number)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A row of the paper's table: its title, how many inputs it has, and how to load one.

    Both functions get the name of the case.
    """

    title: str
    count: Callable[[str], int]
    load: Callable[[str, int], Item]


def _photo_item(case: str, number: int) -> AnswerTable:
    """A photo with at most 13 superpixels; hidden ones are black, as in BayesLIME's code."""
    from eblime.datasets.imagenet import cut_coarsely, photo_set, read_square

    photo = photo_set(case)[number]
    image = read_square(photo.path)
    labels = cut_coarsely(image)

    def ask() -> AnswerTable:
        return ask_all_masks(photo_classifier(), image, labels, photo.target)

    return cached_answers(case, photo.name, (image, labels, "EfficientNet-Lite0"), ask)


def _photo_count(case: str) -> int:
    """Number of photos of a set."""
    from eblime.datasets.imagenet import photo_set

    return len(photo_set(case))


def _digit_item(case: str, number: int) -> AnswerTable:
    """A digit of the test set with at most 13 superpixels; hidden ones are black."""
    from eblime.datasets.imagenet import cut_coarsely
    from eblime.datasets.mnist import digits, network
    from eblime.datasets.networks import weights_digest

    digit = _digit(case)
    image = digits(digit)[number]
    labels = cut_coarsely(image)

    def ask() -> AnswerTable:
        return ask_all_masks(network(), image, labels, digit)

    return cached_answers(case, str(number), (image, labels, weights_digest(network())), ask)


def _digit_count(case: str) -> int:
    """Number of test images of a digit."""
    from eblime.datasets.mnist import digits

    return len(digits(_digit(case)))


def _digit(case: str) -> int:
    """The digit of a case such as "digit-3"."""
    return int(case.split("-")[1])


def _row_item(case: str, number: int) -> RowItem:
    """A row that the forest was not trained on."""
    from eblime.explainers.tabular import TabularExplainer

    table, model, rows = table_and_forest(case)

    def explainer(n: int) -> TabularExplainer:
        return TabularExplainer(model, table.data, n_masks=n, method="lime", progress=False)

    return RowItem(explainer=explainer, row=table.data.iloc[rows[number]])


def _row_count(case: str) -> int:
    """Number of rows that the forest was not trained on."""
    return len(table_and_forest(case)[2])


def _stored(case: str) -> list[FloatArray]:
    """The stored answers of all inputs."""
    from eblime.datasets.stored import stored_games, stored_photos

    return stored_photos() if case == "stored-photos" else stored_games()


def _stored_item(case: str, number: int) -> AnswerTable:
    """The stored answers to all masks of an input."""
    return AnswerTable(scores=_stored(case)[number])


def _stored_count(case: str) -> int:
    """Number of inputs with stored answers."""
    return len(_stored(case))


CASES = {
    **{
        name: Case(title=title, count=_photo_count, load=_photo_item)
        for name, title in (
            ("french-bulldog", "French bulldog"),
            ("broccoli", "Broccoli"),
            ("corn", "Corn"),
            ("scuba-diver", "Scuba diver"),
            ("mixed", "Other photos"),
        )
    },
    **{
        f"digit-{digit}": Case(title=f"Digit {digit}", count=_digit_count, load=_digit_item)
        for digit in range(1, 10)
    },
    "compas": Case(title="Compas", count=_row_count, load=_row_item),
    "german": Case(title="German credit", count=_row_count, load=_row_item),
    "stored-photos": Case(title="Photos, stored answers", count=_stored_count, load=_stored_item),
    "stored-games": Case(title="Games of shapiq", count=_stored_count, load=_stored_item),
}
