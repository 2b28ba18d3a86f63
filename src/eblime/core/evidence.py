"""What the data say about lambda: Q and the marginal likelihood along a grid, O(L r).

With `W^1/2 Z = U D V'` and `k = U' W^1/2 Y`, the printed N x N forms become sums over the spectrum:
`log|M_lam| = sum log(1 + d_j / lam)` up to a constant,
`Q_lam = 2 b + residual + sum k_j^2 lam / (d_j + lam)`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eblime._types import FloatArray

__all__ = ["Evidence"]

_BLOCK = 1 << 15  # numbers held at once: the work stays in the processor's cache


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The likelihood of lambda with beta and sigma^2 (and a flat intercept) integrated out."""

    d: FloatArray  # (r,) squared singular values of the weighted masks
    k: FloatArray  # (r,) weighted scores in the left singular basis
    floor: float  # 2 b + the residual that no beta can reach
    df: float  # degrees of freedom, 2 a + N, one less for a flat intercept

    def q(self, lambdas: FloatArray) -> FloatArray:
        """`Q_lam` of Proposition 1 at every lambda of an (L,) array."""
        return self._q_and_log_det(lambdas)[0]

    def log_likelihood(self, lambdas: FloatArray) -> FloatArray:
        """Log of Proposition 2 without P(lambda), up to a constant."""
        q, log_det = self._q_and_log_det(lambdas)
        return -0.5 * (log_det + self.df * np.log(q))

    def _q_and_log_det(self, lambdas: FloatArray) -> tuple[FloatArray, FloatArray]:
        """`Q_lam` and `log|M_lam|`, in blocks."""
        q, log_det = np.empty_like(lambdas), np.empty_like(lambdas)
        step = max(1, _BLOCK // max(1, len(self.d)))
        power, ones = self.k**2, np.ones(len(self.d))
        for start in range(0, len(lambdas), step):
            block = slice(start, start + step)
            ratio = self.d / lambdas[block, None]
            log_det[block] = np.log1p(ratio) @ ones  # a product with ones: sums at BLAS speed
            ratio += 1
            q[block] = self.floor + np.reciprocal(ratio, out=ratio) @ power
        return q, log_det
