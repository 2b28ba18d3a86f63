"""A law given by a finite set of draws."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from eblime._types import FloatArray
from eblime.core.student import broadcast_rows, point_density

if TYPE_CHECKING:
    from eblime.protocols import Law

__all__ = ["Draws", "DrawsLaw", "summarize"]

_BLOCK = 1 << 21  # numbers held at once


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Draws:
    """Joint draws from a posterior, one row per draw.

    Examples
    --------
    >>> import numpy as np
    >>> from eblime.laws import Draws
    >>> Draws(beta=np.zeros((100, 3))).beta.shape
    (100, 3)
    """

    beta: FloatArray  # (n, p)
    extras: Mapping[str, FloatArray] = field(default_factory=dict)  # (n,) each, by name

    @property
    def sigma2(self) -> FloatArray:
        """Draws of sigma^2, (n,)."""
        return self._extra("sigma2")

    @property
    def lam(self) -> FloatArray:
        """Draws of lambda, (n,)."""
        return self._extra("lam")

    def _extra(self, name: str) -> FloatArray:
        if name not in self.extras:
            raise AttributeError(f"These draws have no {name!r}: their method does not model it.")
        return self.extras[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawsLaw:
    """A law known by its draws.

    Parameters
    ----------
    draws
        The draws that all summaries are computed from.
    source
        The law that they came from, for densities and further draws. Without it, densities are
        kernel estimates and further draws are drawn again from the given ones.

    Examples
    --------
    >>> import numpy as np
    >>> from eblime.laws import Draws, DrawsLaw
    >>> law = DrawsLaw(draws=Draws(beta=np.array([[0.0], [1.0], [2.0]])))
    >>> law.mean, law.quantile(np.array([0.5]))
    (array([1.]), array([[1.]]))
    """

    draws: Draws
    source: Law | None = None

    def __post_init__(self) -> None:
        """Refuse draws that have no spread to summarise."""
        shape = np.shape(self.draws.beta)
        if len(shape) != 2 or shape[0] < 2:
            raise ValueError(
                f"`draws.beta` must have shape (n, p) with at least 2 draws; got shape {shape}."
            )

    @property
    def has_spread(self) -> bool:
        """Always True."""
        return True

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

    def summary(self, prob: float) -> dict[str, FloatArray]:
        """The columns `sd`, `low`, `high` and `prob_positive` of a table, each (p,)."""
        return summarize(self, prob)

    def quantile(self, q: FloatArray) -> FloatArray:
        """Quantiles of the draws, (K,) -> (K, p), interpolated as `np.quantile` does."""
        place = q * (len(self.draws.beta) - 1)
        below = np.floor(place).astype(np.intp)
        above = np.minimum(below + 1, len(self.draws.beta) - 1)
        ordered = self._sorted()
        low, high = ordered[:, below], ordered[:, above]
        return np.asarray((low + (place - below) * (high - low)).T)

    def hdi(self, prob: float) -> FloatArray:
        """Shortest intervals between two draws that contain a share `prob` of them, (p, 2)."""
        ordered = self._sorted()
        p, n = ordered.shape
        held = min(n - 1, int(np.ceil(prob * n)))
        first = np.argmin(ordered[:, held:] - ordered[:, : n - held], axis=1)
        return np.stack([ordered[np.arange(p), first], ordered[np.arange(p), first + held]], axis=1)

    def pdf(self, x: FloatArray) -> FloatArray:
        """Densities at x: of the law the draws came from, else a Gaussian kernel estimate."""
        return self._kernel_density(x) if self.source is None else self.source.pdf(x)

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
        """Draw n times: from the law the draws came from, else from the draws themselves."""
        if self.source is not None:
            return self.source.draw(rng, n)
        rows = rng.integers(0, len(self.draws.beta), size=n)
        extras = {name: values[rows] for name, values in self.draws.extras.items()}
        return Draws(beta=self.draws.beta[rows], extras=extras)

    def _kernel_density(self, x: FloatArray) -> FloatArray:
        """Gaussian kernels with Scott's bandwidth; a point mass where all draws are equal."""
        rows, shape = broadcast_rows(x, self.n_features)
        beta, n = self.draws.beta, len(self.draws.beta)
        width = self.sd * n**-0.2
        out = point_density(rows, beta[0])
        moving = np.flatnonzero(width > 0)
        step = max(1, _BLOCK // n)
        for j in moving:
            for start in range(0, len(rows), step):
                z = (rows[start : start + step, j, None] - beta[:, j]) / width[j]
                out[start : start + step, j] = np.exp(-0.5 * z**2).mean(axis=1)
            out[:, j] /= width[j] * np.sqrt(2 * np.pi)
        return out.reshape(shape)

    def _sorted(self) -> FloatArray:
        """Each feature's draws in order, (p, n): contiguous rows sort twice as fast."""
        return np.sort(np.ascontiguousarray(self.draws.beta.T), axis=1)


def summarize(law: Law, prob: float) -> dict[str, FloatArray]:
    """The columns `sd`, `low`, `high` and `prob_positive` of a table, from a law's marginals."""
    tail = (1 - prob) / 2
    low, high = law.quantile(np.array([tail, 1 - tail]))
    return {"sd": law.sd, "low": low, "high": high, "prob_positive": law.prob_positive()}
