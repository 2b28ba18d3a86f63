"""A Gaussian process with a length scale for each column, for a few hundred points.

    cov(f(x), f(x')) = variance exp(-sum_j (x_j - x'_j)^2 / (2 length_j^2)) + bias

Parameters maximise the marginal likelihood, with weak normal priors on their logarithms.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg, optimize

from eblime._types import FloatArray

__all__ = [
    "GaussianProcess",
    "condition",
    "fit_process",
    "penalised_likelihood",
    "prior_logs",
    "with_value",
]

_LIMITS = (-7.0, 7.0)  # of the logarithms of variance, length scales and bias
_LEAST_NOISE = np.log(1e-6)  # of the noise, which keeps the matrix regular
_PRIOR_SD = 2.0  # of the logarithms


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GaussianProcess:
    """A process conditioned on n points."""

    points: FloatArray  # (n, p)
    values: FloatArray  # (n,)
    logs: FloatArray  # (p + 3,) logarithms of variance, bias, noise and the length scales
    root: FloatArray  # (n, n) lower Cholesky factor of the covariance of the values
    solved: FloatArray  # (n,) inverse covariance times values

    @property
    def lengths(self) -> FloatArray:
        """Length scales, (p,)."""
        return np.asarray(np.exp(self.logs[3:]))

    def predict(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of the function at points (m, p); each (m,)."""
        cross = _smooth(x, self.points, self.logs) + np.exp(self.logs[1])
        left = linalg.solve_triangular(self.root, cross.T, lower=True)
        variance = np.exp(self.logs[0]) + np.exp(self.logs[1]) - np.sum(left**2, axis=0)
        return cross @ self.solved, np.sqrt(np.maximum(variance, 0.0))

    def slopes(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean (p,) and covariance (p, p) of the gradient at a point (p,)."""
        smooth = _smooth(x[None], self.points, self.logs)[0]
        cross = (self.points - x).T / self.lengths[:, None] ** 2 * smooth  # (p, n)
        left = linalg.solve_triangular(self.root, cross.T, lower=True)
        prior = np.diag(np.exp(self.logs[0]) / self.lengths**2)
        return cross @ self.solved, prior - left.T @ left


def condition(points: FloatArray, values: FloatArray, logs: FloatArray) -> GaussianProcess:
    """The process with these parameters, given values at points."""
    root = linalg.cholesky(_covariance(points, logs), lower=True)
    solved = linalg.cho_solve((root, True), values)
    return GaussianProcess(points=points, values=values, logs=logs, root=root, solved=solved)


def fit_process(points: FloatArray, values: FloatArray, logs: FloatArray) -> GaussianProcess:
    """The process with the parameters that maximise the likelihood, from a start."""
    p = points.shape[1]
    limits = [_LIMITS, _LIMITS, (_LEAST_NOISE, 0.0), *[_LIMITS] * p]
    found = optimize.minimize(
        penalised_likelihood,
        logs,
        args=(points, values),
        jac=True,
        method="L-BFGS-B",
        bounds=limits,
    )
    return condition(points, values, found.x)


def with_value(process: GaussianProcess, point: FloatArray, value: float) -> GaussianProcess:
    """The process with one more point, and the same parameters."""
    points = np.concatenate([process.points, point[None]])
    return condition(points, np.append(process.values, value), process.logs)


def penalised_likelihood(
    logs: FloatArray, points: FloatArray, values: FloatArray
) -> tuple[float, FloatArray]:
    """Minus the logarithm of likelihood times prior, and its gradient."""
    process = condition(points, values, logs)
    smooth = _smooth(points, points, logs)
    inverse = linalg.cho_solve((process.root, True), np.eye(len(values)))
    weight = inverse - np.outer(process.solved, process.solved)
    inner = weight * smooth
    squares = (points[:, None] - points) ** 2 / process.lengths**2  # (n, n, p)
    gradient = 0.5 * np.concatenate(
        [
            [inner.sum(), np.exp(logs[1]) * weight.sum(), np.exp(logs[2]) * np.trace(weight)],
            np.einsum("ab,abj->j", inner, squares),
        ]
    )
    fit = 0.5 * values @ process.solved + np.log(np.diag(process.root)).sum()
    centre = prior_logs(points.shape[1])
    fit += 0.5 * np.sum((logs - centre) ** 2) / _PRIOR_SD**2
    return float(fit), gradient + (logs - centre) / _PRIOR_SD**2


def prior_logs(p: int) -> FloatArray:
    """The centres of the priors: variance 1, bias 0.1, noise 0.0001 and length scales 2."""
    return np.asarray(np.log(np.array([1.0, 0.1, 1e-4, *[2.0] * p])))


def _smooth(x: FloatArray, other: FloatArray, logs: FloatArray) -> FloatArray:
    """Covariances without bias and noise, (m, n)."""
    lengths = np.exp(logs[3:])
    gaps = x[:, None] / lengths - other / lengths
    return np.asarray(np.exp(logs[0] - 0.5 * np.sum(gaps**2, axis=2)))


def _covariance(points: FloatArray, logs: FloatArray) -> FloatArray:
    """The covariance of noisy values at points, (n, n)."""
    noise = np.exp(logs[2]) * np.eye(len(points))
    return np.asarray(_smooth(points, points, logs) + np.exp(logs[1]) + noise)
