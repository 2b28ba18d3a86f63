"""The inputs of `calls.py`: populations of answers, and masks that are asked in rounds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from eblime.answers import Answers
from eblime.designs.rounds import in_rounds
from eblime.kernels import ExponentialKernel
from eblime.protocols import Method
from eblime.stopping.rule import next_total
from studies.populations import best_fit, german_rows, mask_numbers, photos_13, photos_40

__all__ = ["CASES", "Population", "rounds"]


@dataclass(frozen=True)
class Population:
    """Masks of one photo and the model's answers, the truth among them."""

    masks: np.ndarray
    scores: np.ndarray
    weights: np.ndarray
    truth: np.ndarray
    all_masks: bool
    paired: bool = False  # whether each mask is followed by its complement

    def ask(self, masks: np.ndarray) -> np.ndarray:
        """The scores of masks, by number."""
        return self.scores[mask_numbers(masks)]


def photos(name: str) -> Iterator[Population]:
    """The photos of a table; where not all masks are known, each is followed by its complement."""
    for found in photos_13() if name == "p13" else photos_40():
        rows = np.arange(len(found.masks))
        if name == "p40":
            rows = rows.reshape(2, -1).T.ravel()
        parts = [part[rows] for part in found]
        masks, scores, weights = parts
        truth = best_fit(masks, scores, weights)
        yield Population(masks, scores, weights, truth, name == "p13", name == "p40")


def german_credit(name: str) -> Iterator[Population]:
    """Rows of German credit, with 20,000 perturbed rows around each; boosted trees."""
    for found in german_rows():
        masks, scores, weights = found
        yield Population(masks, scores, weights, best_fit(*found), False)


CASES = {"p13": photos, "p40": photos, "german": german_credit}


def rounds(
    population: Population, design: str, method: Method, max_masks: int, rng: np.random.Generator
) -> Iterator[Answers]:
    """The answers after each round, as the loop has them.

    Where not all masks are known, the design is to take pairs of the population without
    replacement ("paired"), or single masks with replacement (any other).
    """
    p = population.masks.shape[1]
    known = Answers.none([str(j) for j in range(p)])
    if population.all_masks:
        settings = {"exact": True, "next_total": next_total, "method": method}
        asked: Any = in_rounds(rng, design, max_masks, p, **settings)
    else:
        asked = FromPopulation(population, design == "paired" and population.paired, max_masks)
    while (wanted := asked.next(rng, known)) is not None:
        room = max_masks - known.n_masks
        masks = getattr(wanted, "masks", wanted)[:room]
        if not len(masks):
            return
        if population.all_masks:
            scores, weights = population.ask(masks), ExponentialKernel()(masks)
        else:
            scores, weights = asked.answers(len(masks))
        more = {}
        if hasattr(wanted, "sampling_weights"):
            more = {"sampling": wanted.sampling_weights[:room]}
            weights = weights * more["sampling"]
        known = known.append(masks, scores, weights, **more)
        yield known


class FromPopulation:
    """A design that takes masks of a population whose other masks have no answer."""

    def __init__(self, population: Population, pairs: bool, max_masks: int) -> None:
        self.population, self.pairs, self.n_masks = population, pairs, max_masks
        self.rows: np.ndarray | None = None

    def next(self, rng: np.random.Generator, answers: Answers) -> np.ndarray | None:
        """Masks of the next round."""
        count = len(self.population.masks)
        if self.rows is None:
            half = rng.permutation(count // 2)
            pairs = np.stack([2 * half, 2 * half + 1], axis=1).ravel()
            self.rows = pairs if self.pairs else rng.integers(count, size=self.n_masks)
        p, known = answers.n_features, answers.n_masks
        total = min(self.n_masks, count, next_total(known, 3 * p))
        if known >= total:
            return None
        self.asked = self.rows[known:total]
        return self.population.masks[self.asked]

    def answers(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """The scores and weights of the first masks of this round."""
        rows = self.asked[:count]
        return self.population.scores[rows], self.population.weights[rows]
