"""Strata: features that seldom vary get a minimum share of the perturbed rows.

A random row of the background shows a category of 1 % of the rows once in a hundred draws. So some
perturbed rows are forced into the rare state of such a feature, and sampling weights undo this: a
weighted average over the perturbed rows estimates the same quantity as before.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eblime._types import BoolArray, FloatArray, IntArray

__all__ = ["Strata", "find_strata"]

LEAST = 0.1  # share of the perturbed rows in either state of a feature, at least
MOST = 0.5  # share of the perturbed rows that are forced, at most

_GOLDEN = (np.sqrt(5) - 1) / 2  # multiples of it, modulo one, are spread evenly


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Strata:
    """The rare states of k features, and how often each is forced."""

    features: IntArray  # (k,)
    states: BoolArray  # (k,) True where it is rare to be in the row's bin
    chances: FloatArray  # (k,) probability of the rare state in a row that is not forced
    shares: FloatArray  # (k,) share of the rows that are forced into the rare state

    def assign(self, start: float, rows: IntArray) -> IntArray:
        """The stratum of each row, by its number; k where a row is not forced.

        Every run of rows has nearly the right number of each stratum. If `start` is uniform on
        (0, 1), each row on its own is in a stratum with exactly the probability of its share.
        """
        place = (start + _GOLDEN * rows) % 1.0
        return np.asarray(np.searchsorted(np.cumsum(self.shares), place, side="right"))

    def weights(self, masks: FloatArray) -> FloatArray:
        """Sampling weights, (N, p) -> (N,): the chance of a row without forcing over that with it.

        The chance of a row with forcing is a mixture over the strata, so no weight is above
        `1 / (1 - MOST)`.
        """
        rare = (masks[:, self.features] > 0.5) == self.states
        return np.asarray(1 / (1 - self.shares.sum() + rare @ (self.shares / self.chances)))


def find_strata(same: NDArray[np.bool_], features: IntArray) -> Strata:
    """The strata of a row, none of them if every state of every feature is frequent enough.

    Parameters
    ----------
    same
        Whether each row of the background is in the row's bins, by feature, (p, n).
    features
        The features that are binary and have both states in the background.
    """
    inside = same[features].mean(axis=1)
    chances = np.minimum(inside, 1 - inside)
    rare = (chances > 0) & (chances < LEAST)
    shares = (LEAST - chances[rare]) / (1 - chances[rare])
    return Strata(
        features=features[rare],
        states=inside[rare] < 0.5,
        chances=chances[rare],
        shares=shares * min(1.0, MOST / shares.sum()) if rare.any() else shares,
    )
