"""UnRAVEL: a Gaussian process that chooses which rows to ask about (Saini and Prasad, 2022).

The process, scikit-learn's, has a length scale for each column:

    cov(f(x), f(x')) = variance exp(-sum_j (x_j - x'_j)^2 / (2 length_j^2)) + bias

Parameters maximise the marginal likelihood, with weak normal priors on their logarithms.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import linalg, optimize

from eblime._checks import as_generator, check_count
from eblime._lazy import import_extra
from eblime._types import FloatArray, RNGLike
from eblime.answers import Answers
from eblime.engine.drive import score_of_input
from eblime.explainers.base import BaseExplainer
from eblime.family.systems import NumberRows, explanation_like, spread
from eblime.laws import normal_law
from eblime.posterior import Posterior
from eblime.results.explanation import Explanation
from eblime.scores import Target

_CANDIDATES = 1000
_REFIT = 5  # points between fits of the parameters
_LIMITS = (1e-3, 1e3)  # of variance, length scales and bias
_NOISE_LIMITS = (1e-6, 1.0)  # its least value keeps the matrix regular
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
    1 / length scale, the largest being 1. It needs scikit-learn.

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
        process = fit_process(points, np.zeros(1))
        points = np.concatenate([points, next_point(process, 2, generator)[None]])
        reference = known.explain(explainer, known.row + unit * points[1:], target, rng)
        scores, middle, scale = reference.scores, float(reference.scores[0]), 1.0
        process = fit_process(points, scores - middle)
        for step in range(3, n_calls + 1):
            points = np.concatenate([points, next_point(process, step, generator)[None]])
            subject = explainer.subject(known.rows_of((known.row + unit * points[-1])[None]))
            score = score_of_input(explainer.loop, subject)[reference.target]
            scores = np.append(scores, float(score))
            anew = step % _REFIT == 0 or step == n_calls
            if anew:
                middle, scale = float(scores.mean()), float(scores.std()) or 1.0
            process = fit_process(points, (scores - middle) / scale, process, anew=anew)
        mean, cov = slopes(process, np.zeros(len(unit)))
        posterior = Posterior.from_law(
            normal_law(scale * mean, scale**2 * cov),
            Answers(masks=points, scores=scores, weights=np.ones(n_calls)),
            method="UnRAVEL",
            estimand="slopes at the row, per standard deviation",
        )
        found = explanation_like(reference, posterior, known.row + unit * points, scores, n_calls)
        lengths = process.kernel_.k1.k1.k2.length_scale
        relevance = (lengths.min() / lengths).tolist()
        return replace(found, provenance={**found.provenance, "relevance": relevance})


def next_point(process: Any, step: int, rng: np.random.Generator) -> FloatArray:
    """The candidate in the box with the largest faithful uncertainty reduction."""
    p = process.X_train_.shape[1]
    shift = rng.standard_normal(p) / np.log(step)
    far = rng.uniform(-1, 1, size=(_CANDIDATES, p))
    near = np.clip(shift + 0.2 * rng.standard_normal((_CANDIDATES, p)), -1, 1)
    candidates = np.concatenate([far, near])
    sd = process.predict(candidates, return_std=True)[1]
    return np.asarray(candidates[np.argmax(sd - np.linalg.norm(candidates - shift, axis=1))])


def fit_process(
    points: FloatArray, values: FloatArray, before: Any = None, *, anew: bool = False
) -> Any:
    """The process given values (n,) at points (n, p).

    It has the parameters of the process before, or prior ones; `anew` fits them, starting there.
    """
    sklearn = import_extra("sklearn.gaussian_process", "sklearn")
    if before is None:
        kernels, lengths = sklearn.kernels, np.full(points.shape[1], 2.0)
        kernel = kernels.ConstantKernel(1.0, _LIMITS) * kernels.RBF(lengths, _LIMITS)
        kernel += kernels.ConstantKernel(0.1, _LIMITS)
        kernel += kernels.WhiteKernel(1e-4, _NOISE_LIMITS)
    else:
        kernel = before.kernel_
    optimizer = _maximise if anew else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # parameters may be at their limits
        return sklearn.GaussianProcessRegressor(kernel, optimizer=optimizer).fit(points, values)


def _maximise(
    loss: Callable[[FloatArray], tuple[float, FloatArray]], start: FloatArray, bounds: FloatArray
) -> tuple[FloatArray, float]:
    """The logarithms of the parameters with the largest likelihood times prior."""
    centre = np.log([1.0, *[2.0] * (len(start) - 3), 0.1, 1e-4])

    def penalised(logs: FloatArray) -> tuple[float, FloatArray]:
        value, slope = loss(logs)
        away = (logs - centre) / _PRIOR_SD
        return value + 0.5 * float(away @ away), slope + away / _PRIOR_SD

    found = optimize.minimize(penalised, start, jac=True, method="L-BFGS-B", bounds=bounds)
    return found.x, found.fun


def slopes(process: Any, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean (p,) and covariance (p, p) of the gradient of a process at a point (p,)."""
    smooth, points = process.kernel_.k1.k1, process.X_train_
    squares = smooth.k2.length_scale**2
    cross = (points - x).T / squares[:, None] * smooth(x[None], points)  # (p, n)
    left = linalg.solve_triangular(process.L_, cross.T, lower=True)
    return cross @ process.alpha_, np.diag(smooth.k1.constant_value / squares) - left.T @ left
