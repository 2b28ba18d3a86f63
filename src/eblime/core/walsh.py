"""A prior over functions of a mask: independent Walsh coefficients, and indices in closed form.

With signs `s = 2 z - 1`, the Walsh functions `chi_S(s) = prod_{j in S} s_j` are a basis of all
functions of a mask. The prior gives the coefficient of `chi_S` the variance `prod_{j in S} rho_j`,
plus `linear * rho_j` for single features, so that its covariance function is

    k(s, t) = linear * sum_j rho_j s_j t_j + prod_j (1 + rho_j s_j t_j).

A function is the sum of an odd part, `f(-s) = -f(s)`, and an even part, `f(-s) = f(s)`. A priori
they are independent, with covariance functions `e^c sinh(D)` (and the linear term) and
`e^c cosh(D)`, where `D = sum_j atanh(rho_j) s_j t_j` and `c = sum_j log(1 - rho_j^2) / 2`. Nothing
here enumerates the `2^p` masks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from scipy import optimize, special
from scipy.linalg import lapack, solve_triangular

from eblime._types import FloatArray
from eblime.core.indices import Index

CONSTANT = 10.0  # prior variance of the mean score, relative to the even part's


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Part:
    """Answers about one part of a function: its odd part, its even part, or all of it."""

    signs: FloatArray  # (n, p) of -1 and 1
    scores: FloatArray  # (n,)
    noise: FloatArray  # (n,) variance of each answer, relative to the nugget
    odd: bool
    even: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Walsh:
    """The prior at given parameters, with an amplitude of one."""

    rho: FloatArray  # (p,) in (0, 1)
    linear: float | FloatArray  # extra variance of the linear coefficients over rho, (p,) or common
    even: float = 1.0  # variance of the even part relative to the odd part's, where both are asked

    @property
    def extra(self) -> FloatArray:
        """Extra variance of each linear coefficient, (p,)."""
        return np.asarray(self.linear * self.rho)

    def covariance(self, part: Part, s: FloatArray, t: FloatArray) -> FloatArray:
        """Prior covariance of the part between masks with signs s (n, p) and t (m, p), (n, m)."""
        sinh, cosh = hyperbolic(self.rho, s, t)
        return self.combine(part, sinh, cosh, (s * self.extra) @ t.T)

    def combine(
        self, part: Part, sinh: FloatArray, cosh: FloatArray, line: FloatArray
    ) -> FloatArray:
        """The covariance of a part from its odd, even and linear terms."""
        found = line + sinh if part.odd else np.zeros_like(sinh)
        if part.even:
            found += self.even * (cosh + CONSTANT)
        return found

    def cross(self, part: Part, index: Index, t: FloatArray) -> FloatArray:
        """Prior covariance of the index with the part at masks with signs t (n, p), (P, n)."""
        kernels = self._kernels(part, index)
        if index.order == 2:
            return _cross_of_pairs(self.rho, index, kernels, t)
        scaled = np.ascontiguousarray((self.rho * t).T)
        found = 2 * self.extra[:, None] * t.T if part.odd else np.zeros_like(scaled)
        for node, (turn, kernel) in product(index.terms(), zip((1, -1), kernels, strict=True)):
            if kernel:
                factors = node.mass + turn * node.sign * scaled
                slope = 2 * turn * node.difference * scaled + node.level
                found += (kernel * slope * (factors.prod(axis=0) / factors)).real
        return found

    def own(self, part: Part, index: Index) -> FloatArray:
        """Prior covariance of the index under the part, (P, P)."""
        if index.order == 2:
            return _own_of_pairs(self.rho, index, self._kernels(part, index))
        found = _own_of_features(self.rho, index, self._kernels(part, index))
        if part.odd:
            found[np.diag_indices_from(found)] += 4 * self.extra
        return found

    def _kernels(self, part: Part, index: Index) -> tuple[float, float]:
        """A part as a sum of two product kernels: their factors, for masks and for opposites.

        The odd part of the product kernel is as good as all of it if the index is zero elsewhere.
        """
        odd, even = float(part.odd), self.even * part.even
        if index.ignores_even:
            return odd, 0.0
        return (even + odd) / 2, (even - odd) / 2


def _cross_of_pairs(
    rho: FloatArray, index: Index, kernels: tuple[float, float], t: FloatArray
) -> FloatArray:
    """One argument of the product kernel under an index of pairs of features, (P, n)."""
    node = np.concatenate([index.signs, -index.signs])
    weight = np.concatenate([kernels[0] * index.differences, kernels[1] * index.differences])
    factors = 1 + (rho * t)[:, :, None] * node  # (n, p, 2 K)
    slope = (2 * rho * t)[:, :, None] / factors
    table = (slope * (weight * factors.prod(axis=1))[:, None, :]) @ slope.transpose(0, 2, 1)
    first, second = index.subsets(t.shape[1]).T
    return np.ascontiguousarray(table[:, first, second].T)


def _own_of_features(rho: FloatArray, index: Index, kernels: tuple[float, float]) -> FloatArray:
    """Both arguments of the product kernel under an index of features, (p, p).

    A feature in neither subset contributes `mass mass' + rho sign sign'`, the second argument's
    numbers primed. One with a difference in both arguments contributes `4 rho`; in the first only,
    `2 rho sign'`; with a level in the first only, `mass'`. `kernels` are those of `Walsh._kernels`.
    """
    if index.levels is None:
        sign, slopes, weight = _products(rho, index, (kernels[0], -kernels[1]))
        found = (slopes * (weight * sign)) @ slopes.T
        found[np.diag_indices_from(found)] = 2 * slopes @ weight
        return np.asarray(found)
    masses, signs = np.tile(index.masses, 2), np.concatenate([index.signs, -index.signs])
    change = np.concatenate([kernels[0] * index.differences, -kernels[1] * index.differences])
    level = np.concatenate([kernels[0] * index.levels, kernels[1] * index.levels])
    found = np.zeros((len(rho), len(rho)))
    for node in index.terms():
        both = node.sign * signs
        rest = node.mass * masses + rho[:, None] * both  # (p, 2 K)
        slope, whole = 2 * rho[:, None] / rest, rest.prod(axis=0)
        left = node.difference * slope * both + node.level * node.sign * masses / rest
        plain = node.difference * slope * signs + node.level * masses / rest
        term = (left * (change * whole)) @ slope.T
        term += (plain * (node.mass * level * whole)) @ (1 / rest).T
        own = 2 * ((node.difference * change * whole) @ slope.T)
        own += (node.level * level * whole) @ (1 / rest).T
        term[np.diag_indices_from(term)] = own
        found += term.real
    return found


def _products(
    rho: FloatArray, index: Index, kernels: tuple[float, float]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Products of two nodes, of which few differ: the signs, `slope` (p, K) and the weights.

    For an index without levels, whose masses are one.
    """
    products = np.outer(index.signs, index.signs).ravel()
    weights = np.outer(index.differences, index.differences).ravel()
    every = np.round(np.concatenate([products, -products]), 13)
    node, place = np.unique(every, return_inverse=True)
    weight = np.bincount(
        place.ravel(), np.concatenate([kernels[0] * weights, kernels[1] * weights])
    )
    rest = 1 + rho[:, None] * node
    return node, 2 * rho[:, None] / rest, weight * rest.prod(axis=0)


def _own_of_pairs(rho: FloatArray, index: Index, kernels: tuple[float, float]) -> FloatArray:
    """Both arguments of the product kernel under an index of pairs of features, (P, P)."""
    node, slope, weight = _products(rho, index, kernels)
    subsets = index.subsets(len(rho))
    both = slope[subsets[:, 0]] * slope[subsets[:, 1]]  # (P, nodes)
    found = (both * (weight * node**2)) @ both.T
    for shared in range(len(rho)):  # pairs with one feature in common
        rows = np.flatnonzero((subsets == shared).any(axis=1))
        other = slope[subsets[rows].sum(axis=1) - shared]
        found[np.ix_(rows, rows)] = (other * (2 * weight * node * slope[shared])) @ other.T
    found[np.diag_indices_from(found)] = 4 * both @ weight
    return np.asarray(found)


def hyperbolic(rho: FloatArray, s: FloatArray, t: FloatArray) -> tuple[FloatArray, FloatArray]:
    """`e^c sinh(D)` and `e^c cosh(D)` between masks with signs s (n, p) and t (m, p), (n, m)."""
    c = 0.5 * float(np.log1p(-(rho**2)).sum())
    up = (s * np.arctanh(rho)) @ t.T
    up += c - np.log(2)
    np.exp(up, out=up)
    down = (np.exp(2 * c) / 4) / up
    return up - down, np.add(up, down, out=up)


LARGEST = 0.95  # of rho
_LEAD = 3  # parameters before the logits of rho
_FIRST_SUM = 4.0  # largest sum of rho that the search for the best parameters begins with
_ROUNDING = 1e-12  # of a variance
_SEARCHED = 100, 4  # answers that the parameters are found from, and for each feature
_INFORMING = 64, 2  # answers that the information about them is computed from


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Parameters:
    """A parameter vector, and the prior and nuggets that it stands for.

    With two parts the vector begins with `log linear`, `log nugget` of the odd part and `log
    nugget` of the even part; with one part that is both, with `log linear`, `log nugget` and the
    log of the even part's variance relative to the odd part's.
    """

    vector: FloatArray  # (p + 3,)
    split: bool  # whether odd and even part are two parts
    psi: float | FloatArray = 1.0  # factor of each feature's linear variance, (p,)

    @property
    def walsh(self) -> Walsh:
        """The prior at these parameters."""
        return Walsh(
            rho=LARGEST * special.expit(self.vector[_LEAD:]),
            linear=float(np.exp(self.vector[0])) * self.psi,
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
    def of(cls, p: int, *, split: bool, chance: float | None = None, noisy: bool = False) -> Prior:
        """The prior for p features; a wider `spread` of relevance where there are more of them.

        `chance` is the noise of an answer, where it is known: the nugget is then near it. `noisy`
        says that there is noise, of unknown size.
        """
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
class Solution:
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


def solve(part: Part, covariance: FloatArray, nugget: float) -> Solution:
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
    return Solution(inverse=inverse, log_det=log_det, alpha=alpha, fit=fit)


def evidence(parts: Sequence[Part], parameters: Parameters) -> tuple[float, FloatArray]:
    """Log marginal likelihood of the answers, up to a constant, and its gradient."""
    walsh, total = parameters.walsh, 0.0
    gradient, signs = np.zeros_like(parameters.vector), parts[0].signs  # of all parts
    sinh, cosh = hyperbolic(walsh.rho, signs, signs)
    for number, part in enumerate(parts):
        line = (signs * walsh.extra) @ signs.T
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
        gradient[0] += 0.5 * float(walsh.extra @ along)
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


def fit_parameters(
    parts: Sequence[Part], prior: Prior, start: FloatArray | None = None
) -> Parameters:
    """The parameters with the highest posterior density, by L-BFGS in units of the prior.

    Notes
    -----
    Of many answers, an even selection stands for all: 100 of each part, or 4 for each feature.
    The search begins at `start`, or without one at the prior's mean, but with `sum rho_j` at most
    4. With a larger sum most of the variance is in interactions of many features, and different
    masks are nearly independent: all answers look like noise, and the gradient is close to zero.
    """
    split, root = len(parts) > 1, np.linalg.cholesky(prior.cov)
    parts = _selection(parts, _SEARCHED)

    def downhill(u: FloatArray) -> tuple[float, FloatArray]:
        parameters = Parameters(vector=prior.mean + root @ u, split=split)
        try:
            value, gradient = evidence(parts, parameters)
        except np.linalg.LinAlgError:
            return 1e10, np.zeros_like(u)
        return 0.5 * float(u @ u) - value, u - root.T @ gradient

    found = optimize.minimize(
        downhill,
        np.linalg.solve(root, (_first(prior) if start is None else start) - prior.mean),
        jac=True,
        method="L-BFGS-B",
        bounds=[(-6.0, 6.0)] * len(prior.mean),
        options={"maxiter": 100, "ftol": 1e-4, "gtol": 1e-3 * float(np.sqrt(len(parts[0].scores)))},
    )
    return Parameters(vector=prior.mean + root @ found.x, split=split)


def _selection(parts: Sequence[Part], most: tuple[int, int]) -> list[Part]:
    """An even selection of the answers of each part, of the same masks.

    At most so many, or so many for each feature if that is more.
    """
    n, p = parts[0].signs.shape
    rows = np.unique(np.linspace(0, n - 1, min(n, max(most[0], most[1] * p))).astype(np.intp))
    signs = parts[0].signs[rows]
    return [
        replace(part, signs=signs, scores=part.scores[rows], noise=part.noise[rows])
        for part in parts
    ]


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
    a part with more answers, an even selection of 64 stands for all, or of 2 for each feature.
    """
    found = np.zeros((len(parameters.vector), len(parameters.vector)))
    selected = _selection(parts, _INFORMING)
    for number, (part, taken) in enumerate(zip(parts, selected, strict=True)):
        n = len(part.scores)
        places, matrices = _derivatives(taken, parameters, number)
        flat = np.stack([matrix.ravel() for matrix in matrices])
        turned = np.stack([matrix.T.ravel() for matrix in matrices])
        traces = np.array([np.trace(matrix) for matrix in matrices])
        inner = (flat @ turned.T - np.outer(traces, traces) / len(taken.scores)) / 2
        found[np.ix_(places, places)] += inner * n / len(taken.scores)
    return found


def _derivatives(
    part: Part, parameters: Parameters, number: int
) -> tuple[list[int], list[FloatArray]]:
    """`R^-1 dR` for each parameter that a part depends on, with the parameters' numbers."""
    walsh, nugget, s = parameters.walsh, parameters.nugget(number), part.signs
    rho, (sinh, cosh) = walsh.rho, hyperbolic(walsh.rho, s, s)
    line = (s * walsh.extra) @ s.T
    inverse = solve(part, walsh.combine(part, sinh, cosh, line), nugget).inverse
    places = [1 + (number if parameters.split else 0)]
    matrices = [inverse * (nugget * part.noise)]
    if part.odd:
        places.append(0)
        matrices.append(inverse @ line)
    if not parameters.split:
        places.append(2)
        matrices.append(inverse @ (walsh.even * (cosh + CONSTANT)))
    bend = part.odd * cosh + part.even * walsh.even * sinh
    level = inverse @ (part.odd * sinh + part.even * walsh.even * cosh)
    linear = np.broadcast_to(walsh.linear, rho.shape)
    for j, share in enumerate(1 - rho**2):
        inner = bend / share + part.odd * linear[j]
        matrix = ((inverse * s[:, j]) @ inner) * s[:, j] - (rho[j] / share) * level
        places.append(_LEAD + j)
        matrices.append(matrix * (rho[j] * (1 - rho[j] / LARGEST)))
    return places, matrices


def root_of_inverse(matrix: FloatArray) -> FloatArray:
    """A root of the inverse of a positive definite matrix: `root @ root.T` is the inverse."""
    lower = np.linalg.cholesky(matrix)
    return np.asarray(solve_triangular(lower, np.eye(len(matrix)), lower=True).T)
