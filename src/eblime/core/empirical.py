"""Laws of beta that are not exact: a finite set of draws, and a point estimate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from eblime._types import FloatArray
from eblime.core.mixture import Draws, Mixture
from eblime.core.student import broadcast_rows

__all__ = ["Empirical", "NoSpreadError", "PointMass"]


class NoSpreadError(ValueError):
    """A point estimate was asked for a statement about its uncertainty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Empirical:
    """The s draws of Algorithm 1, summarised; further draws come from the law they came from."""

    draws: Draws
    source: Mixture

    @property
    def n_features(self) -> int:
        """Number of features, p."""
        return int(self.draws.beta.shape[1])

    @property
    def mean(self) -> FloatArray:
        """Mean of the draws, (p,)."""
        return np.asarray(self.draws.beta.mean(axis=0))

    @property
    def sd(self) -> FloatArray:
        """Standard deviation of the draws, (p,)."""
        return np.asarray(self.draws.beta.std(axis=0, ddof=1))

    @property
    def cov(self) -> FloatArray:
        """Covariance of the draws, (p, p)."""
        return np.atleast_2d(np.cov(self.draws.beta, rowvar=False))

    def quantile(self, q: FloatArray) -> FloatArray:
        """Quantiles of the draws, (K,) -> (K, p), interpolated as `np.quantile` does."""
        place = q * (len(self.draws.beta) - 1)
        below = np.floor(place).astype(np.intp)
        above = np.minimum(below + 1, len(self.draws.beta) - 1)
        ordered = self._sorted()
        low, high = ordered[:, below], ordered[:, above]
        return np.asarray((low + (place - below) * (high - low)).T)

    def hdi(self, prob: float) -> FloatArray:
        """Shortest intervals between two draws that hold a share `prob` of them, (p, 2)."""
        ordered = self._sorted()
        p, n = ordered.shape
        held = min(n - 1, int(np.ceil(prob * n)))
        first = np.argmin(ordered[:, held:] - ordered[:, : n - held], axis=1)
        return np.stack([ordered[np.arange(p), first], ordered[np.arange(p), first + held]], axis=1)

    def pdf(self, x: FloatArray) -> FloatArray:
        """Density at x of the exact law that the draws came from."""
        return self.source.pdf(x)

    def cdf(self, x: FloatArray) -> FloatArray:
        """Share of the draws at or below x, which broadcasts against the features."""
        rows, shape = broadcast_rows(x, self.n_features)
        places = [
            np.searchsorted(column, row, side="right")
            for column, row in zip(self._sorted(), rows.T, strict=True)
        ]
        shares = np.stack(places, axis=1) / len(self.draws.beta)
        return np.where(np.isnan(rows), np.nan, shares).reshape(shape)

    def prob_positive(self) -> FloatArray:
        """Share of positive draws, zeros counting one half, (p,)."""
        return np.asarray(np.heaviside(self.draws.beta, 0.5).mean(axis=0))

    def prob_greater(self) -> FloatArray:
        """Share of draws with beta_i > beta_j, ties counting one half, (p, p)."""
        beta = self.draws.beta
        return np.stack(
            [np.heaviside(column[:, None] - beta, 0.5).mean(axis=0) for column in beta.T]
        )

    def draw(self, rng: np.random.Generator, n: int) -> Draws:
        """Draw afresh, i.i.d., from the law that the stored draws came from."""
        return self.source.draw(rng, n)

    def _sorted(self) -> FloatArray:
        """Each feature's draws in order, (p, s): rows in one piece sort twice as fast."""
        return np.sort(np.ascontiguousarray(self.draws.beta.T), axis=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class PointMass:
    """A point estimate: it has a mean and nothing to say about how sure it is."""

    mean: FloatArray  # (p,)
    method: str  # name of the method that gave it

    @property
    def n_features(self) -> int:
        """Number of features, p."""
        return len(self.mean)

    @property
    def sd(self) -> FloatArray:
        """Refused: a point estimate has no spread."""
        self._refuse()

    @property
    def cov(self) -> FloatArray:
        """Refused: a point estimate has no spread."""
        self._refuse()

    def quantile(self, q: FloatArray) -> FloatArray:
        """Refused: a point estimate has no spread."""
        self._refuse()

    def hdi(self, prob: float) -> FloatArray:
        """Refused: a point estimate has no spread."""
        self._refuse()

    def pdf(self, x: FloatArray) -> FloatArray:
        """Refused: a point estimate has no spread."""
        self._refuse()

    def cdf(self, x: FloatArray) -> FloatArray:
        """Refused: a point estimate has no spread."""
        self._refuse()

    def prob_positive(self) -> FloatArray:
        """Refused: a point estimate has no spread."""
        self._refuse()

    def prob_greater(self) -> FloatArray:
        """Refused: a point estimate has no spread."""
        self._refuse()

    def draw(self, rng: np.random.Generator, n: int) -> Draws:
        """Refused: a point estimate has no spread."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise NoSpreadError(
            f"{self.method} gives a point estimate, which has a mean and no spread. For intervals, "
            'probabilities and draws fit with method="eblime", "eblime-paper" or "bayeslime".'
        )
