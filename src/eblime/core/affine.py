"""The law of importances that are a linear function of fewer coefficients."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eblime._types import FloatArray
from eblime.core.draws import Draws, summarize
from eblime.core.mixture import Mixture
from eblime.core.student import StudentMixture

__all__ = ["AffineLaw"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AffineLaw:
    """The law of `offset + matrix @ coefficients`, exact where that of the coefficients is."""

    base: Mixture  # law of m coefficients
    matrix: FloatArray  # (p, m)
    offset: FloatArray  # (p,)

    @property
    def has_spread(self) -> bool:
        """Always True."""
        return True

    @property
    def n_features(self) -> int:
        """Number of features, p."""
        return len(self.matrix)

    @property
    def mean(self) -> FloatArray:
        """E(beta | Y), (p,)."""
        return np.asarray(self.offset + self.matrix @ self.base.mean)

    @property
    def sd(self) -> FloatArray:
        """Posterior standard deviations, (p,)."""
        return self._marginals().sd

    @property
    def cov(self) -> FloatArray:
        """Posterior covariance, (p, p); NaN off the diagonal where it does not exist."""
        cov = self.base.cov
        if not np.isfinite(cov).all():
            return np.where(np.eye(self.n_features) > 0, self.sd**2, np.nan)
        return np.asarray(self.matrix @ cov @ self.matrix.T)

    def summary(self, prob: float) -> dict[str, FloatArray]:
        """The columns `sd`, `low`, `high` and `prob_positive` of a table, each (p,)."""
        return summarize(self, prob)

    def quantile(self, q: FloatArray) -> FloatArray:
        """Marginal quantiles, (K,) -> (K, p)."""
        return self.offset + self._marginals().quantile(q[:, None])

    def hdi(self, prob: float) -> FloatArray:
        """Marginal highest-density intervals, (p, 2)."""
        return self.offset[:, None] + self._marginals().hdi(prob)

    def pdf(self, x: FloatArray) -> FloatArray:
        """Marginal densities."""
        return self._marginals().pdf(x - self.offset)

    def cdf(self, x: FloatArray) -> FloatArray:
        """Marginal distribution functions."""
        return self._marginals().cdf(x - self.offset)

    def prob_positive(self) -> FloatArray:
        """P(beta_j > 0 | Y), (p,)."""
        return self._above_zero(self.matrix, self.offset)

    def prob_greater(self) -> FloatArray:
        """P(beta_i > beta_j | Y), (p, p), with one half on the diagonal."""
        p, out = self.n_features, np.full((self.n_features, self.n_features), 0.5)
        first, second = np.triu_indices(p, 1)
        if first.size:
            matrix = self.matrix[first] - self.matrix[second]
            out[first, second] = self._above_zero(matrix, self.offset[first] - self.offset[second])
            out[second, first] = 1 - out[first, second]
        return out

    def draw(self, rng: np.random.Generator, n: int) -> Draws:
        """Draw beta i.i.d., with the extras of the coefficients' law."""
        draws = self.base.draw(rng, n)
        return Draws(beta=self.offset + draws.beta @ self.matrix.T, extras=draws.extras)

    def _marginals(self) -> StudentMixture:
        """The law of each importance without its offset."""
        return self.base.combined(self.matrix)

    def _above_zero(self, matrix: FloatArray, offset: FloatArray) -> FloatArray:
        """P(offset + matrix @ coefficients > 0), one half where that is exactly zero."""
        if not self.base.unit:
            return np.heaviside(offset, 0.5)
        return self.base.combined(-matrix).cdf(offset)
