"""UnRAVEL: a Gaussian process that chooses which rows to ask about (Saini and Prasad, 2022).

The process has a length scale for each column:

    cov(f(x), f(x')) = variance exp(-sum_j (x_j - x'_j)^2 / (2 length_j^2)) + bias

Parameters maximise the marginal likelihood, with weak normal priors on their logarithms.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg, optimize

from eblime._checks import as_generator, check_count
from eblime._types import FloatArray, RNGLike
from eblime.answers import Answers
from eblime.engine.drive import score_of_input
from eblime.explainers.base import BaseExplainer
from eblime.family.systems import NumberRows, explanation_like, spread
from eblime.laws import normal_law
from eblime.posterior import Posterior
from eblime.results.explanation import Explanation
from eblime.scores import Target

_CANDIDATES = 400
_REFIT = 5  # points between fits of the parameters
_LIMITS = (-7.0, 7.0)  # of the logarithms of variance, length scales and bias
_LEAST_NOISE = np.log(1e-6)  # of the noise, which keeps the matrix regular
_PRIOR_SD = 2.0  # of the logarithms


@dataclass(frozen=True, slots=True, kw_only=True)
class UnRAVEL:
    """UnRAVEL: slopes of a Gaussian process, which chooses one row after the other to ask about.

    Parameters
    ----------
    n_calls
        How many rows to ask about, the explained one included; at most the explainer's `n_masks`.

    Notes
    -----
    The next row is that of the largest "faithful uncertainty reduction", among rows within one
    standard deviation of the background. With s the standard deviation of the process, t the number
    of the step, d a draw from N(0, 1) for each column, and columns in standard deviations, it is
    `s(z) - |z - x - d / log(t)|`: the row is uncertain and near, and nearer as time goes on. The
    published code has one draw for all columns: the rows then lie along a diagonal, and slopes
    cannot be separated. `provenance["relevance"]` has the importances without sign as published,
    1 / length scale, the largest being 1.

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> rows = np.random.default_rng(0).normal(size=(100, 3))
    >>> explainer = eblime.TabularExplainer(lambda z: 2 * z[:, 0] - z[:, 1], rows)
    >>> e = eblime.family.UnRAVEL(n_calls=25).explain(explainer, [0.0, 0.0, 0.0])
    >>> (e.posterior.mean / rows.std(axis=0)).round(1) + 0.0
    array([ 2., -1.,  0.])
    """

    n_calls: int = 60

    def check(self, explainer: BaseExplainer, x: object) -> None:
        """Refuse inputs other than rows of numbers, and settings that cannot work."""
        NumberRows.of(explainer, x, "UnRAVEL")
        check_count("n_calls", self.n_calls, minimum=3)
        check_count("n_masks", explainer.loop.masks_for(), minimum=3)

    def explain(
        self, explainer: BaseExplainer, x: object, target: Target = None, rng: RNGLike = 0
    ) -> Explanation:
        """Explain the row by the slopes of the process, per standard deviation of a column."""
        self.check(explainer, x)
        known, generator = NumberRows.of(explainer, x, "UnRAVEL"), as_generator(rng)
        unit, n_calls = spread(known.background), min(self.n_calls, explainer.loop.masks_for())
        points = np.zeros((1, len(unit)))
        process = condition(points, np.zeros(1), prior_logs(len(unit)))
        points = np.concatenate([points, next_point(process, 2, generator)[None]])
        reference = known.explain(explainer, known.row + unit * points[1:], target, rng)

        def ask(point: FloatArray) -> float:
            subject = explainer.subject(known.rows_of((known.row + unit * point)[None]))
            return float(score_of_input(explainer.loop, subject)[reference.target])

        process, middle, scale = search(ask, points, reference.scores, n_calls, generator)
        mean, cov = process.slopes(np.zeros(len(unit)))
        scores = middle + scale * process.values
        posterior = Posterior.from_law(
            normal_law(scale * mean, scale**2 * cov),
            Answers(masks=process.points, scores=scores, weights=np.ones(n_calls)),
            method="UnRAVEL",
            estimand="slopes at the row, per standard deviation",
        )
        rows = known.row + unit * process.points
        found = explanation_like(reference, posterior, rows, scores, n_calls)
        relevance = (process.lengths.min() / process.lengths).tolist()
        return replace(found, provenance={**found.provenance, "relevance": relevance})


def search(
    ask: Callable[[FloatArray], float],
    points: FloatArray,
    scores: FloatArray,
    n_calls: int,
    rng: np.random.Generator,
) -> tuple[GaussianProcess, float, float]:
    """The process after all calls, and the mean and the unit of its values."""
    middle, unit = float(scores[0]), 1.0
    process = condition(points, (scores - middle) / unit, prior_logs(points.shape[1]))
    for step in range(3, n_calls + 1):
        point = next_point(process, step, rng)
        scores = np.append(scores, ask(point))
        points = np.concatenate([points, point[None]])
        if step % _REFIT and step < n_calls:
            process = condition(points, (scores - middle) / unit, process.logs)
        else:
            middle, unit = float(scores.mean()), float(scores.std()) or 1.0
            process = fit_process(points, (scores - middle) / unit, process.logs)
    return process, middle, unit


def next_point(process: GaussianProcess, step: int, rng: np.random.Generator) -> FloatArray:
    """The point of the box with the largest faithful uncertainty reduction."""
    p = process.points.shape[1]
    shift = rng.standard_normal(p) / np.log(step)
    far = rng.uniform(-1, 1, size=(_CANDIDATES, p))
    near = np.clip(shift + 0.2 * rng.standard_normal((_CANDIDATES, p)), -1, 1)
    candidates = np.concatenate([far, near])

    def gain(z: FloatArray) -> FloatArray:
        return np.asarray(process.predict(z)[1] - np.linalg.norm(z - shift, axis=1))

    values = gain(candidates)
    start = candidates[np.argmax(values)]
    found = optimize.minimize(
        lambda z: -float(gain(z[None])[0]),
        start,
        method="L-BFGS-B",
        bounds=[(-1, 1)] * p,
        options={"maxiter": 10},
    )
    return np.asarray(found.x if found.fun <= -values.max() else start)


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
    noise = np.exp(logs[2]) * np.eye(len(points))
    root = linalg.cholesky(_smooth(points, points, logs) + np.exp(logs[1]) + noise, lower=True)
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
