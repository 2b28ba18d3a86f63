"""The posterior of lambda: fixed, or on a grid; `lambda_quadrature` has the half-line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from eblime._checks import as_floats, as_generator, check_count, check_prob
from eblime._types import FloatArray, RNGLike
from eblime.core.evidence import Evidence
from eblime.core.priors import log_half_cauchy

__all__ = ["FixedLambda", "GridLambda", "LambdaLaw", "grid_lambda"]


class LambdaLaw(Protocol):
    """A law of lambda as a rule of nodes and weights, with its own summaries."""

    @property
    def nodes(self) -> FloatArray:
        """Values of lambda at which expectations are summed, shape (L,)."""
        ...

    @property
    def weights(self) -> FloatArray:
        """Their weights, summing to one, shape (L,)."""
        ...

    @property
    def mean(self) -> float:
        """Posterior mean of lambda, `inf` where it does not exist."""
        ...

    @property
    def log_mean(self) -> float:
        """Posterior mean of log(lambda)."""
        ...

    @property
    def median(self) -> float:
        """Posterior median of lambda."""
        ...

    def quantile(self, q: ArrayLike) -> FloatArray:
        """Quantiles of lambda, in the shape of `q`."""
        ...

    def cdf(self, x: ArrayLike) -> FloatArray:
        """P(lambda <= x | Y), in the shape of `x`."""
        ...

    def sample(self, n: int, rng: RNGLike = None) -> FloatArray:
        """Draw i.i.d. values, shape (n,)."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedLambda:
    """Lambda set by hand, as in LIME and BayesLIME."""

    value: float

    @property
    def nodes(self) -> FloatArray:
        """The one value."""
        return np.array([self.value])

    @property
    def weights(self) -> FloatArray:
        """All the weight."""
        return np.ones(1)

    @property
    def mean(self) -> float:
        """The value."""
        return self.value

    @property
    def log_mean(self) -> float:
        """The log of the value."""
        return float(np.log(self.value))

    @property
    def median(self) -> float:
        """The value."""
        return self.value

    def quantile(self, q: ArrayLike) -> FloatArray:
        """The value, in the shape of `q`."""
        return np.full_like(check_prob("q", q), self.value)

    def cdf(self, x: ArrayLike) -> FloatArray:
        """A step at the value."""
        return np.heaviside(as_floats("x", x) - self.value, 1.0)

    def sample(self, n: int, rng: RNGLike = None) -> FloatArray:
        """Repeat the value n times."""
        check_count("n", n)
        return np.full(n, self.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class GridLambda:
    """Lambda on a finite grid, as in Proposition 2 and Algorithm 2."""

    nodes: FloatArray  # (L,) increasing
    weights: FloatArray  # (L,) P(lambda_l | Y), summing to one

    @property
    def mean(self) -> float:
        """E(lambda | Y) on the grid: Proposition 2 with the normalising sum it lacks in print."""
        return float(self.weights @ self.nodes)

    @property
    def log_mean(self) -> float:
        """E(log lambda | Y) on the grid."""
        return float(self.weights @ np.log(self.nodes))

    @property
    def median(self) -> float:
        """The first grid value at or below which half the mass lies."""
        return float(self.quantile(0.5))

    def quantile(self, q: ArrayLike) -> FloatArray:
        """The first grid values whose cumulated weight reaches `q`."""
        total = np.cumsum(self.weights)
        index = np.searchsorted(total, check_prob("q", q) * total[-1])
        return np.asarray(self.nodes[np.minimum(index, len(total) - 1)])

    def cdf(self, x: ArrayLike) -> FloatArray:
        """Cumulated weight of the grid values up to and including `x`."""
        values = as_floats("x", x)
        total = np.concatenate([[0.0], np.cumsum(self.weights)])
        index = np.searchsorted(self.nodes, values, side="right")
        return np.where(np.isnan(values), np.nan, total[index] / total[-1])

    def sample(self, n: int, rng: RNGLike = None) -> FloatArray:
        """Draw grid values by the inverse cdf: Algorithm 2's law at a fraction of its cost."""
        check_count("n", n)
        uniform = as_generator(rng).random(n)
        index = np.searchsorted(np.cumsum(self.weights), uniform, side="right")
        return self.nodes[np.minimum(index, len(self.nodes) - 1)]


def grid_lambda(evidence: Evidence, grid: FloatArray, *, scale: float = 1.0) -> GridLambda:
    """Posterior of lambda on a grid: Proposition 2, normalised."""
    log_weights = evidence.log_likelihood(grid) + log_half_cauchy(grid, scale=scale)
    weights = np.exp(log_weights - log_weights.max())
    return GridLambda(nodes=grid, weights=weights / weights.sum())
