"""Mixtures of multivariate normal laws, with closed-form marginals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from eblime._checks import as_floats
from eblime._types import BoolArray, FloatArray
from eblime.core.draws import Draws, summarize
from eblime.core.quantiles import shortest_intervals, solve_quantiles
from eblime.core.student import broadcast_rows, point_density

__all__ = ["NormalMixture", "normal_law"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NormalMixture:
    """`unit` times a weighted mixture of L multivariate normal laws of p importances.

    Examples
    --------
    >>> import numpy as np
    >>> from eblime.laws import normal_law
    >>> law = normal_law(np.array([1.0, 0.0]), np.diag([0.25, 1.0]))
    >>> law.sd, law.quantile(np.array([0.975])).round(2)
    (array([0.5, 1. ]), array([[1.98, 1.96]]))
    """

    weights: FloatArray  # (L,) summing to one
    means: FloatArray  # (L, p)
    covs: FloatArray  # (L, p, p)
    unit: float = 1.0  # variances of very small or large numbers are not representable

    @property
    def has_spread(self) -> bool:
        """Always True."""
        return True

    @property
    def n_features(self) -> int:
        """Number of features, p."""
        return int(self.means.shape[1])

    @property
    def mean(self) -> FloatArray:
        """Mean of each importance, (p,)."""
        return np.asarray(self.unit * self._centre)

    @property
    def sd(self) -> FloatArray:
        """Standard deviation of each importance, (p,)."""
        centred = self.means - self._centre
        return np.asarray(self.unit * np.sqrt(self.weights @ (self._sds**2 + centred**2)))

    @property
    def cov(self) -> FloatArray:
        """Covariance of the importances, (p, p)."""
        centred = self.means - self._centre
        within = np.einsum("l,lij->ij", self.weights, self.covs)
        return np.asarray(self.unit**2 * (within + (centred * self.weights[:, None]).T @ centred))

    def summary(self, prob: float) -> dict[str, FloatArray]:
        """The columns `sd`, `low`, `high` and `prob_positive` of a table, each (p,)."""
        return summarize(self, prob)

    def quantile(self, q: FloatArray) -> FloatArray:
        """Quantiles, (K,) -> (K, p)."""
        levels = np.broadcast_to(q[:, None], (len(q), self.n_features))
        return np.asarray(self.unit * self._quantiles(levels))

    def hdi(self, prob: float) -> FloatArray:
        """Shortest intervals that contain `prob`, (p, 2)."""
        ends = shortest_intervals(self._quantiles, self._pdf, prob, self.n_features)
        return np.asarray(self.unit * ends.T)

    def pdf(self, x: FloatArray) -> FloatArray:
        """Densities at x, which broadcasts against the features."""
        rows, shape = broadcast_rows(x, self.n_features)
        known = ~self._moving
        density = self._pdf(rows / self.unit) / self.unit
        density[:, known] = point_density(rows[:, known], self.mean[known])
        return density.reshape(shape)

    def cdf(self, x: FloatArray) -> FloatArray:
        """Distribution functions at x, which broadcasts against the features."""
        rows, shape = broadcast_rows(x, self.n_features)
        return self._cdf(rows / self.unit).reshape(shape)

    def prob_positive(self) -> FloatArray:
        """P(beta_j > 0), (p,); one half for an importance that is exactly zero."""
        return np.asarray(self.weights @ _chance_positive(self.means, self._sds))

    def prob_greater(self) -> FloatArray:
        """P(beta_i > beta_j), (p, p), with one half on the diagonal."""
        out = np.zeros((self.n_features, self.n_features))
        for weight, mean, cov in zip(self.weights, self.means, self.covs, strict=True):
            variance = np.diag(cov)
            spread = np.sqrt(np.maximum(variance[:, None] + variance - 2 * cov, 0.0))
            out += weight * _chance_positive(mean[:, None] - mean, spread)
        return out

    def draw(self, rng: np.random.Generator, n: int) -> Draws:
        """Draw n times: a component first, then a normal draw from it."""
        counts = rng.multinomial(n, self.weights / self.weights.sum())
        parts = [
            mean + rng.standard_normal((count, self.n_features)) @ _root(cov).T
            for count, mean, cov in zip(counts, self.means, self.covs, strict=True)
        ]
        return Draws(beta=self.unit * rng.permutation(np.concatenate(parts)))

    @property
    def _centre(self) -> FloatArray:
        """Means in standard units, (p,)."""
        return np.asarray(self.weights @ self.means)

    @property
    def _sds(self) -> FloatArray:
        """Standard deviations of the components, (L, p)."""
        return np.sqrt(np.maximum(np.diagonal(self.covs, axis1=1, axis2=2), 0.0))

    @property
    def _moving(self) -> BoolArray:
        """Whether a feature has any spread in any component, (p,)."""
        return np.asarray((self._sds > 0).any(axis=0) | (np.ptp(self.means, axis=0) > 0))

    def _pdf(self, x: FloatArray) -> FloatArray:
        """Densities, (K, p) -> (K, p)."""
        sd = np.maximum(self._sds, np.finfo(float).tiny)
        z = np.clip((x[:, None] - self.means) / sd, -50, 50)  # beyond, the density is zero
        terms = np.exp(-0.5 * z**2) / (sd * np.sqrt(2 * np.pi))
        return np.asarray(np.einsum("l,klm->km", self.weights, terms))

    def _cdf(self, x: FloatArray) -> FloatArray:
        """Distribution functions, (K, p) -> (K, p)."""
        sd, gap = self._sds, x[:, None] - self.means
        safe = np.where(sd > 0, sd, 1.0)
        terms = np.where(sd > 0, special.ndtr(gap / safe), np.heaviside(gap, 1.0))
        return np.asarray(np.einsum("l,klm->km", self.weights, terms))

    def _quantiles(self, q: FloatArray, start: FloatArray | None = None) -> FloatArray:
        """Quantiles, (K, p) -> (K, p), between the least and the greatest of the components'."""
        with np.errstate(all="ignore"):
            ends = self.means + self._sds * special.ndtri(q)[:, None]
            low, high = ends.min(axis=1), ends.max(axis=1)
            if len(self.weights) == 1:
                return np.asarray(low)
            middle = np.einsum("l,klm->km", self.weights, ends) if start is None else start
            begin = np.clip(middle, low, high)
            width = np.maximum(self._sds.min(axis=0), np.finfo(float).tiny)
            return solve_quantiles(self._cdf, self._pdf, q, begin, (low, high), width)


def normal_law(mean: ArrayLike, cov: ArrayLike) -> NormalMixture:
    """One multivariate normal law, mean (p,) and covariance (p, p).

    Examples
    --------
    >>> import numpy as np
    >>> from eblime.laws import normal_law
    >>> normal_law(np.array([1.0, -1.0]), np.eye(2)).mean
    array([ 1., -1.])
    """
    centre, spread = as_floats("mean", mean), as_floats("cov", cov)
    if centre.ndim != 1 or spread.shape != (len(centre), len(centre)):
        raise ValueError(
            "`mean` must have shape (p,) and `cov` shape (p, p); got shapes "
            f"{centre.shape} and {spread.shape}."
        )
    return NormalMixture(weights=np.ones(1), means=centre[None], covs=spread[None])


def _chance_positive(mean: FloatArray, sd: FloatArray) -> FloatArray:
    """P(N(mean, sd^2) > 0), one half where both are zero."""
    safe = np.where(sd > 0, sd, 1.0)
    return np.where(sd > 0, special.ndtr(mean / safe), np.heaviside(mean, 0.5))


def _root(cov: FloatArray) -> FloatArray:
    """A matrix root of a covariance that may be singular."""
    values, vectors = np.linalg.eigh(cov)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))
