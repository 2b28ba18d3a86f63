"""Parameters of the Walsh prior: their prior, the evidence with its gradient, and a normal law.

A parameter vector holds `log linear`, two more (see `Parameters`), and a logit for each `rho_j`.
The amplitude of the covariance is integrated out of the evidence under the prior `1 / amplitude`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import optimize, special
from scipy.linalg import lapack, solve_triangular

from eblime._types import FloatArray, IntArray
from eblime.core.walsh import CONSTANT, Part, Walsh, hyperbolic

__all__ = [
    "Parameters",
    "Prior",
    "Solved",
    "add_noise",
    "evidence",
    "fit_parameters",
    "information",
    "root_of_inverse",
    "solve",
]

LARGEST = 0.95  # of rho
_LEAD = 3  # parameters before the logits of rho
_FIRST_SUM = 4.0  # largest sum of rho that the search for the best parameters begins with
_ROUNDING = 1e-12  # of a variance
_MOST_ROWS = 250  # answers of a part that the information about the parameters is computed from


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Parameters:
    """A parameter vector, and the prior and nuggets that it stands for.

    With two parts the vector begins with `log linear`, `log nugget` of the odd part and `log
    nugget` of the even part; with one part that is both, with `log linear`, `log nugget` and the
    log of the even part's variance relative to the odd part's.
    """

    vector: FloatArray  # (p + 3,)
    split: bool  # whether odd and even part are two parts

    @property
    def walsh(self) -> Walsh:
        """The prior at these parameters."""
        return Walsh(
            rho=LARGEST * special.expit(self.vector[_LEAD:]),
            linear=float(np.exp(self.vector[0])),
            even=1.0 if self.split else float(np.exp(self.vector[2])),
        )

    def nugget(self, number: int) -> float:
        """The nugget of a part, by its number."""
        return float(np.exp(self.vector[1 + (number if self.split else 0)]))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Prior:
    """A normal prior of the parameter vector.

    The logits of `rho / 0.95` vary around a common mean, which is normal(-2, 1); `spread` is their
    standard deviation. `log linear` is normal(0, 1.5) and a `log nugget` normal(-7, 2), or
    normal(-1.5, 1.5) for noisy answers.
    """

    mean: FloatArray  # (p + 3,)
    cov: FloatArray  # (p + 3, p + 3)

    @classmethod
    def of(
        cls,
        p: int,
        *,
        split: bool,
        spread: float | None = None,
        chance: float | None = None,
        noisy: bool = False,
    ) -> Prior:
        """The prior for p features; a wider `spread` of relevance where there are more of them.

        `chance` is the noise of an answer, where it is known: the nugget is then near it. `noisy`
        says that there is noise, of unknown size.
        """
        if spread is None:
            spread = 0.65 * float(np.clip(np.sqrt(p / 16), 1.0, 1.5))
        mean = np.r_[0.0, -7.0, -7.0 if split else 0.0, np.full(p, -2.0)]
        cov = np.zeros((p + _LEAD, p + _LEAD))
        cov[range(_LEAD), range(_LEAD)] = 1.5**2, 2.0**2, 2.0**2 if split else 1.0
        cov[_LEAD:, _LEAD:] = 1.0 + spread**2 * np.eye(p)
        if chance or noisy:
            nuggets = [1, 2] if split else [1]
            mean[nuggets] = np.log(chance) if chance else -1.5
            cov[nuggets, nuggets] = 1.0 if chance else 1.5**2
        return cls(mean=mean, cov=cov)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Solved:
    """The covariance of a part's answers, inverted, in units of the amplitude."""

    inverse: FloatArray  # (n, n)
    log_det: float
    alpha: FloatArray  # (n,) the inverse times the scores
    fit: float  # scores' inverse scores; over n it estimates the amplitude

    @property
    def stretch(self) -> float:
        """Mean squared leave-one-out residual in standard deviations, at least 1."""
        squares = self.alpha**2 / np.diag(self.inverse)
        return max(1.0, float(squares.mean()) * len(self.alpha) / self.fit)


def add_noise(part: Part, covariance: FloatArray, nugget: float) -> None:
    """Add the noise of the answers to their covariance, in place.

    A tiny share of the variance is added too, so that rounding does not make the matrix singular.
    """
    diagonal = np.diag_indices_from(covariance)
    covariance[diagonal] += nugget * part.noise + _ROUNDING * float(covariance[0, 0])


def solve(part: Part, covariance: FloatArray, nugget: float) -> Solved:
    """Add the noise to a covariance, in place, and invert it."""
    add_noise(part, covariance, nugget)
    root, failed = lapack.dpotrf(covariance, lower=1, clean=0)
    if failed:
        raise np.linalg.LinAlgError("The covariance of the answers is not positive definite.")
    log_det = 2 * float(np.log(np.diag(root)).sum())
    inverse, _ = lapack.dpotri(root, lower=1, overwrite_c=1)
    inverse = np.tril(inverse)
    inverse += np.tril(inverse, -1).T
    alpha = inverse @ part.scores
    fit = float(part.scores @ alpha)
    if not (fit > 0 and np.isfinite(log_det)):
        raise np.linalg.LinAlgError("The covariance of the answers is not positive definite.")
    return Solved(inverse=inverse, log_det=log_det, alpha=alpha, fit=fit)


def evidence(parts: Sequence[Part], parameters: Parameters) -> tuple[float, FloatArray]:
    """Log marginal likelihood of the answers, up to a constant, and its gradient."""
    walsh, total = parameters.walsh, 0.0
    gradient = np.zeros_like(parameters.vector)
    for number, part in enumerate(parts):
        sinh, cosh = hyperbolic(walsh.rho, part.signs, part.signs)
        line = (part.signs * walsh.rho) @ part.signs.T
        nugget = parameters.nugget(number)
        solved = solve(part, walsh.combine(part, sinh, cosh, line), nugget)
        n = len(part.scores)
        total -= 0.5 * (solved.log_det + n * float(np.log(solved.fit)))
        pull = (n / solved.fit) * np.outer(solved.alpha, solved.alpha) - solved.inverse
        place = 1 + (number if parameters.split else 0)
        gradient[place] += 0.5 * nugget * float(np.diag(pull) @ part.noise)
        _add_gradient(gradient, part, walsh, pull, (sinh, cosh), split=parameters.split)
    return total, gradient


def _add_gradient(
    gradient: FloatArray,
    part: Part,
    walsh: Walsh,
    pull: FloatArray,
    terms: tuple[FloatArray, FloatArray],
    *,
    split: bool,
) -> None:
    """Add the derivatives of a part's evidence by the kernel's parameters."""
    s, rho = part.signs, walsh.rho
    sinh, cosh = (pull * term for term in terms)
    by_rho = np.zeros_like(rho)
    if part.odd:
        along = _quadratic(s, pull)
        gradient[0] += 0.5 * walsh.linear * float(rho @ along)
        by_rho += walsh.linear * along
        by_rho += (_quadratic(s, cosh) - rho * sinh.sum()) / (1 - rho**2)
    if part.even:
        by_rho += walsh.even * (_quadratic(s, sinh) - rho * cosh.sum()) / (1 - rho**2)
        if not split:
            gradient[2] += 0.5 * walsh.even * float(cosh.sum() + CONSTANT * pull.sum())
    gradient[_LEAD:] += 0.5 * by_rho * rho * (1 - rho / LARGEST)


def _quadratic(s: FloatArray, matrix: FloatArray) -> FloatArray:
    """`s_j' matrix s_j` for each column of s, (p,)."""
    return np.asarray(np.einsum("ij,ij->j", s, matrix @ s))


def fit_parameters(parts: Sequence[Part], prior: Prior) -> Parameters:
    """The parameters with the highest posterior density, by L-BFGS in units of the prior.

    Notes
    -----
    The search begins at the prior's mean, but with `sum rho_j` at most 4. With a larger sum most of
    the variance is in interactions of many features, and different masks are nearly independent:
    all answers look like noise, and the gradient is close to zero there.
    """
    split, root = len(parts) > 1, np.linalg.cholesky(prior.cov)

    def downhill(u: FloatArray) -> tuple[float, FloatArray]:
        parameters = Parameters(vector=prior.mean + root @ u, split=split)
        try:
            value, gradient = evidence(parts, parameters)
        except np.linalg.LinAlgError:
            return 1e10, np.zeros_like(u)
        return 0.5 * float(u @ u) - value, u - root.T @ gradient

    found = optimize.minimize(
        downhill,
        np.linalg.solve(root, _first(prior) - prior.mean),
        jac=True,
        method="L-BFGS-B",
        bounds=[(-6.0, 6.0)] * len(prior.mean),
        options={
            "maxiter": 100,
            "ftol": 1e-7,
            "gtol": 1e-3 * float(np.sqrt(len(parts[0].scores))),
        },
    )
    return Parameters(vector=prior.mean + root @ found.x, split=split)


def _first(prior: Prior) -> FloatArray:
    """The parameter vector that the search begins with."""
    share = _FIRST_SUM / (LARGEST * (len(prior.mean) - _LEAD))
    vector = prior.mean.copy()
    if share < 1:
        vector[_LEAD:] = np.minimum(vector[_LEAD:], special.logit(share))
    return vector


def information(parts: Sequence[Part], parameters: Parameters) -> FloatArray:
    """Fisher's information about the parameters, the amplitude integrated out, (p + 3, p + 3).

    Notes
    -----
    `tr(R^-1 dR_a R^-1 dR_b) / 2`, less `tr(R^-1 dR_a) tr(R^-1 dR_b) / (2 n)` for the amplitude. Of
    a part with more than 250 answers, an even selection of 250 stands for all.
    """
    found = np.zeros((len(parameters.vector), len(parameters.vector)))
    for number, part in enumerate(parts):
        n = len(part.scores)
        rows = np.unique(np.linspace(0, n - 1, min(n, _MOST_ROWS)).astype(np.intp))
        places, matrices = _derivatives(_take(part, rows), parameters, number)
        flat = np.stack([matrix.ravel() for matrix in matrices])
        turned = np.stack([matrix.T.ravel() for matrix in matrices])
        traces = np.array([np.trace(matrix) for matrix in matrices])
        inner = (flat @ turned.T - np.outer(traces, traces) / len(rows)) / 2
        found[np.ix_(places, places)] += inner * n / len(rows)
    return found


def _derivatives(
    part: Part, parameters: Parameters, number: int
) -> tuple[list[int], list[FloatArray]]:
    """`R^-1 dR` for each parameter that a part depends on, with the parameters' numbers."""
    walsh, nugget, s = parameters.walsh, parameters.nugget(number), part.signs
    rho, (sinh, cosh) = walsh.rho, hyperbolic(walsh.rho, s, s)
    line = (s * rho) @ s.T
    inverse = solve(part, walsh.combine(part, sinh, cosh, line), nugget).inverse
    places = [1 + (number if parameters.split else 0)]
    matrices = [inverse * (nugget * part.noise)]
    if part.odd:
        places.append(0)
        matrices.append(inverse @ (walsh.linear * line))
    if not parameters.split:
        places.append(2)
        matrices.append(inverse @ (walsh.even * (cosh + CONSTANT)))
    bend = part.odd * cosh + part.even * walsh.even * sinh
    level = inverse @ (part.odd * sinh + part.even * walsh.even * cosh)
    for j, share in enumerate(1 - rho**2):
        inner = bend / share + part.odd * walsh.linear
        matrix = ((inverse * s[:, j]) @ inner) * s[:, j] - (rho[j] / share) * level
        places.append(_LEAD + j)
        matrices.append(matrix * (rho[j] * (1 - rho[j] / LARGEST)))
    return places, matrices


def _take(part: Part, rows: IntArray) -> Part:
    """Some answers of a part."""
    return Part(
        signs=part.signs[rows],
        scores=part.scores[rows],
        noise=part.noise[rows],
        odd=part.odd,
        even=part.even,
    )


def root_of_inverse(matrix: FloatArray) -> FloatArray:
    """A root of the inverse of a positive definite matrix: `root @ root.T` is the inverse."""
    lower = np.linalg.cholesky(matrix)
    return np.asarray(solve_triangular(lower, np.eye(len(matrix)), lower=True).T)
