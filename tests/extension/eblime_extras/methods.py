"""Two methods: one has a normal law, the other has draws."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eblime.answers import Answers
from eblime.laws import Draws, DrawsLaw, normal_law
from eblime.posterior import Posterior

_RIDGE = 1e-6  # keeps the equations solvable when there are fewer masks than features


@dataclass(frozen=True)
class LeastSquares:
    """Weighted least squares with the usual normal law of its estimate."""

    name: str = "least squares"

    def fit(self, rng: np.random.Generator, answers: Answers) -> Posterior:
        """The estimate and its covariance."""
        design = _with_intercept(answers.masks)
        beta, inverse = _solve(design, answers.scores, answers.weights)
        missed = answers.scores - design @ beta
        freedom = max(1, answers.n_masks - len(beta))
        variance = float(answers.weights @ missed**2) / freedom
        law = normal_law(beta[1:], variance * inverse[1:, 1:])
        return Posterior.from_law(law, answers, method=self.name)


@dataclass(frozen=True)
class Bootstrap:
    """Weighted least squares on resampled answers; the estimates are the draws of the law."""

    n_draws: int = 300
    name: str = "bootstrap"

    def fit(self, rng: np.random.Generator, answers: Answers) -> Posterior:
        """One estimate for each resample."""
        design, n = _with_intercept(answers.masks), answers.n_masks
        draws = np.empty((self.n_draws, answers.n_features))
        for row in draws:
            weights = answers.weights * rng.multinomial(n, np.full(n, 1 / n))
            row[:] = _solve(design, answers.scores, weights)[0][1:]
        return Posterior.from_law(DrawsLaw(draws=Draws(beta=draws)), answers, method=self.name)


def _with_intercept(masks: np.ndarray) -> np.ndarray:
    """The masks with a column of ones before them."""
    return np.column_stack([np.ones(len(masks)), masks])


def _solve(
    design: np.ndarray, scores: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients, and the inverse of the normal equations' matrix."""
    weighted = design.T * weights
    inverse = np.linalg.inv(weighted @ design + _RIDGE * np.eye(design.shape[1]))
    return inverse @ weighted @ scores, inverse
