"""A joint law with given marginals: a Gaussian copula, tabulated.

`beta_j = g_j(z_j)` with z normal, its correlation given, and `g_j = F_j^-1(Phi)`. Then the
marginals are exact, and covariances and order probabilities are one-dimensional integrals.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from eblime._types import FloatArray

__all__ = ["GaussianCopula"]

_FAR = 8.0  # the normal law beyond this many standard deviations weighs 1e-15
_NODES = np.linspace(-_FAR, _FAR, 161)
_WEIGHTS = np.exp(-0.5 * _NODES**2) / np.sum(np.exp(-0.5 * _NODES**2))
_DEGREE = 24  # Hermite polynomials in a covariance


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianCopula:
    """The functions g_j as tables to interpolate in, and the correlation of z."""

    x: FloatArray  # (G, p) values of beta_j, increasing
    z: FloatArray  # (G, p) their normal scores, ndtri(F_j(x))
    correlation: FloatArray  # (p, p)

    def values(self, z: FloatArray) -> FloatArray:
        """Beta at normal scores, (n, p) -> (n, p)."""
        columns = [np.interp(*each) for each in zip(z.T, self.z.T, self.x.T, strict=True)]
        return np.stack(columns, axis=1)

    def draw(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Draw beta i.i.d., (n, p)."""
        size, vectors = np.linalg.eigh(self.correlation)
        root = vectors * np.sqrt(np.maximum(size, 0.0))
        return self.values(rng.standard_normal((n, len(root))) @ root.T)

    def covariance(self) -> FloatArray:
        """Cov(beta_i, beta_j), (p, p), by Mehler's formula.

        With `c_jk` the Hermite coefficients of g_j it is `sum_k c_ik c_jk correlation_ij^k`.
        """
        polynomials = [np.ones_like(_NODES), _NODES]
        for k in range(1, _DEGREE):
            last = _NODES * polynomials[k] - np.sqrt(k) * polynomials[k - 1]
            polynomials.append(last / np.sqrt(k + 1))
        coefficients = (np.stack(polynomials) * _WEIGHTS) @ self._on_nodes()
        cov, power = np.zeros_like(self.correlation), np.ones_like(self.correlation)
        for row in coefficients[1:]:
            power = power * self.correlation
            cov += np.outer(row, row) * power
        return cov

    def prob_greater(self) -> FloatArray:
        """P(beta_i > beta_j), (p, p), with one half on the diagonal: an integral over z_i."""
        p = len(self.correlation)
        values, out = self._on_nodes(), np.empty((p, p))
        for j in range(p):
            other = np.interp(values, self.x[:, j], self.z[:, j])  # (161, p) scores on j's scale
            rho = self.correlation[j]
            rest = np.sqrt(np.maximum(1 - rho**2, 1e-12))
            out[:, j] = _WEIGHTS @ special.ndtr((other - rho * _NODES[:, None]) / rest)
        out = (out + 1 - out.T) / 2
        out[np.diag_indices(p)] = 0.5
        return out

    def _on_nodes(self) -> FloatArray:
        """Every g_j on the quadrature nodes, (161, p)."""
        return self.values(np.repeat(_NODES[:, None], len(self.correlation), axis=1))
