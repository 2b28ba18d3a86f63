"""The posterior of beta: a mixture over lambda of multivariate t laws, with no Monte Carlo in it.

Given lambda, `beta ~ t_df(V g(lam), (Q_lam / df) [V diag(1 / (d + lam)) V' + (I - V V') / lam])`
with `g_j = sqrt(d_j) k_j / (d_j + lam)`: Proposition 1 with sigma^2 integrated out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from eblime._checks import as_floats, as_generator, check_count, check_level, check_prob
from eblime._types import BoolArray, FloatArray, RNGLike
from eblime.core.lam import Evidence, LambdaLaw
from eblime.core.laws import Draws, OneNumber
from eblime.core.student import StudentLaw, StudentMixture

_BLOCK = 1 << 22  # numbers held at once


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixture(StudentLaw):
    """P(beta | Y), integrated over lambda by the rule of its law.

    The importances are the m coefficients of the regression, or `offset + matrix @ coefficients`.
    """

    basis: FloatArray  # (m, r) right singular vectors of the weighted masks, a row per coefficient
    evidence: Evidence
    lam: LambdaLaw
    unit: float  # what one unit of a coefficient is worth in the scores' own units
    matrix: FloatArray | None = None  # (p, m)
    offset: float | FloatArray = 0.0  # (p,)

    @property
    def n_features(self) -> int:
        """Number of features, p."""
        return len(self.basis if self.matrix is None else self.matrix)

    @property
    def full_rank(self) -> bool:
        """Whether the data reach every direction of the coefficients."""
        return len(self.evidence.d) == len(self.basis)

    @property
    def coefficients(self) -> FloatArray:
        """Posterior means of all coefficients in standard units, (m,)."""
        shrunk = self.lam.weights @ self._shrinkage(self.lam.nodes)
        return self.basis @ (self._pull * shrunk)

    @property
    def mean(self) -> FloatArray:
        """E(beta | Y), (p,)."""
        return np.asarray(self.offset + self.unit * self._turn(self.coefficients))

    @property
    def cov(self) -> FloatArray:
        """Posterior covariance, (p, p); NaN off the diagonal where it does not exist."""
        df, p = self.evidence.df, self.n_features
        if not self.unit:
            return np.zeros((p, p))
        heavy = self._unreached(self._rows, np.diag(self._gram))[1]
        if df <= 2 or heavy.all():
            return np.where(np.eye(p) > 0, np.inf, np.nan)
        cov = self._spread_matrix(df - 2)
        cov[heavy] = cov[:, heavy] = np.nan
        cov[heavy, heavy] = np.inf
        return cov * self.unit**2

    @property
    def correlation(self) -> FloatArray:
        """Posterior correlation, (p, p), from the t laws' scales where no covariance exists."""
        df = self.evidence.df
        spread = self._spread_matrix(df - 2 if df > 3 else df)
        root = np.sqrt(np.diag(spread))
        return np.asarray(np.clip(spread / root / root[:, None], -1.0, 1.0))

    def stretch(self, factors: FloatArray, shift: FloatArray | float = 0.0) -> Mixture:
        """The law with distances from the means multiplied by factors, (p,), moved by a shift."""
        mean, matrix = self.mean, np.eye(len(self.basis)) if self.matrix is None else self.matrix
        offset = mean + shift - factors * (mean - self.offset)
        return replace(self, matrix=factors[:, None] * matrix, offset=offset)

    def prob_greater(self) -> FloatArray:
        """P(beta_i > beta_j | Y), (p, p), with one half on the diagonal; O(L p^3)."""
        p, rows, gram = self.n_features, self._rows, self._gram
        loc, square, out = self.marginals().loc, np.diag(gram), np.full((p, p), 0.5)
        offset = self.offset + np.zeros(p)
        first, second = np.triu_indices(p, 1)
        step = max(1, _BLOCK // max(len(loc), rows.shape[1]))
        for start in range(0, len(first), step):
            i, j = first[start : start + step], second[start : start + step]
            norm, shift = square[i] + square[j] - 2 * gram[i, j], offset[i] - offset[j]
            law = self._combination(loc[:, i] - loc[:, j], rows[i] - rows[j], norm, offset=shift)
            out[i, j] = law.prob_positive()
            out[j, i] = 1 - out[i, j]
        return out

    def marginals(self) -> StudentMixture:
        """The law of each importance alone, as a mixture of t laws."""
        rows = self._rows
        loc = (self._pull * self._shrinkage(self.lam.nodes)) @ rows.T
        return self._combination(loc, rows, np.diag(self._gram), offset=self.offset)

    def along(self, direction: FloatArray, *, noise: float, offset: float) -> StudentMixture:
        """The law of `offset + direction' beta + noise`, noise of variance `noise * sigma^2`.

        The direction has an entry for each coefficient, (m,).
        """
        row = direction @ self.basis
        loc = (self._shrinkage(self.lam.nodes) * self._pull) @ row
        norm = np.array([direction @ direction])
        return self._combination(loc[:, None], row[None], norm, noise=noise, offset=offset)

    def draw(self, rng: np.random.Generator, n: int) -> Draws:
        """Draw (lambda, sigma^2, beta) i.i.d.: Algorithm 1, lambda by inverse cdf."""
        return self.draw_given(rng, self.lam.sample(n, rng))

    def draw_given(self, rng: np.random.Generator, lambdas: FloatArray) -> Draws:
        """Lines 4 and 5 of Algorithm 1 at the given lambdas: sigma^2, then beta."""
        n, p = len(lambdas), self.n_features
        sigma2 = self.draw_sigma2(rng, lambdas)
        beta = np.empty((n, p))
        for start in range(0, n, max(1, _BLOCK // p)):
            block = slice(start, start + max(1, _BLOCK // p))
            beta[block] = self._draw_beta(rng, lambdas[block], np.sqrt(sigma2[block]))
        beta *= self.unit
        beta += self.offset
        return Draws(beta=beta, extras={"sigma2": sigma2 * self.unit**2, "lam": lambdas})

    def draw_sigma2(self, rng: np.random.Generator, lambdas: FloatArray) -> FloatArray:
        """Line 4 of Algorithm 1: inverse gamma draws given lambda, equation (4), standard units."""
        chi2 = rng.chisquare(self.evidence.df, len(lambdas))
        return self.evidence.q(lambdas) / np.maximum(chi2, np.finfo(float).tiny)

    def _draw_beta(
        self, rng: np.random.Generator, lambdas: FloatArray, sigma: FloatArray
    ) -> FloatArray:
        """Normal draws of beta given lambda and sigma, equation (3), in standard units."""
        shrink = self._shrinkage(lambdas)
        if self.full_rank:
            noise = rng.standard_normal(shrink.shape)
        else:
            normal = rng.standard_normal((len(lambdas), len(self.basis)))
            noise = normal @ self.basis
        spread = np.sqrt(shrink)
        spread *= sigma[:, None]
        spread *= noise
        shrink *= self._pull
        shrink += spread
        beta = shrink @ self.basis.T
        if not self.full_rank:
            beta += (sigma / np.sqrt(lambdas))[:, None] * (normal - noise @ self.basis.T)
        return np.asarray(self._turn(beta.T).T)

    def _turn(self, values: FloatArray) -> FloatArray:
        """The importances, less the offset, from values of the coefficients, (m, ...)."""
        return values if self.matrix is None else np.asarray(self.matrix @ values)

    @property
    def _rows(self) -> FloatArray:
        """The importances in the basis, (p, r)."""
        return self._turn(self.basis)

    @property
    def _gram(self) -> FloatArray:
        """Products of the importances' directions, (p, p)."""
        return np.eye(len(self.basis)) if self.matrix is None else self.matrix @ self.matrix.T

    @property
    def _pull(self) -> FloatArray:
        """`sqrt(d) k`, so that the location at lambda is `pull / (d + lambda)` in the basis."""
        return np.sqrt(self.evidence.d) * self.evidence.k

    def _shrinkage(self, lambdas: FloatArray) -> FloatArray:
        """`1 / (d + lambda)`, (L, r)."""
        return np.asarray(1 / (self.evidence.d + lambdas[:, None]))

    def _spread_matrix(self, divisor: float) -> FloatArray:
        """Second moments about the mean in standard units, (p, p), with E(sigma^2) = Q / divisor.

        The covariance where that exists, with two degrees of freedom less as the divisor.
        """
        rows, weights, lambdas = self._rows, self.lam.weights, self.lam.nodes
        shrink, q = self._shrinkage(lambdas), weights * self.evidence.q(lambdas) / divisor
        centred = self._pull * (shrink - weights @ shrink)
        core = (centred * weights[:, None]).T @ centred + np.diag(q @ shrink)
        spread = rows @ core @ rows.T
        if not self.full_rank:
            spread += (self._gram - rows @ rows.T) * float(q @ (1 / lambdas))
        return np.asarray(spread)

    def _unreached(self, rows: FloatArray, norm: FloatArray) -> tuple[FloatArray, BoolArray]:
        """Squared length of the part of each combination that the data do not reach, (m,).

        And whether its variance is infinite, (m,), because E(1 / lambda | Y) diverges: on the
        half-line where the data reach one direction of beta or none.
        """
        if self.full_rank:
            return np.zeros(len(rows)), np.zeros(len(rows), dtype=bool)
        left = norm - np.sum(rows**2, axis=1)
        left = np.where(left > 1e-12 * norm, left, 0.0)
        return left, (left > 0) & (len(self.evidence.d) < 2) & (not np.isfinite(self.lam.mean))

    def _combination(
        self,
        loc: FloatArray,
        rows: FloatArray,
        norm: FloatArray,
        *,
        noise: float = 0.0,
        offset: float | FloatArray = 0.0,
    ) -> StudentMixture:
        """Laws of m linear combinations, their rows (m, r) in the basis and squared norm given."""
        lambdas = self.lam.nodes
        spread = self._shrinkage(lambdas) @ (rows**2).T + noise
        left, heavy = self._unreached(rows, norm)
        if left.any():
            spread += left / lambdas[:, None]
        scale = np.sqrt(self.evidence.q(lambdas)[:, None] / self.evidence.df * spread)
        return StudentMixture(
            weights=self.lam.weights,
            loc=loc,
            scale=scale,
            df=self.evidence.df,
            unit=self.unit,
            offset=offset,
            heavy=heavy,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseVariance(OneNumber):
    """P(sigma^2 | Y): inverse gamma given lambda, equation (4), mixed over lambda.

    The scores are a deterministic function of the mask, so that sigma^2 is the lack of linear fit.

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> rng = np.random.default_rng(0)
    >>> masks = rng.integers(0, 2, size=(400, 2))
    >>> post = eblime.fit(masks, masks @ [1.0, 0.0] + 0.1 * rng.normal(size=400))
    >>> round(post.sigma2.mean, 2)
    0.01
    >>> post.sigma2.sample(3, rng=0).shape
    (3,)
    """

    mixture: Mixture

    @property
    def mean(self) -> float:
        """Posterior mean; infinite with two degrees of freedom or less."""
        evidence, law = self.mixture.evidence, self.mixture.lam
        if not self.mixture.unit:
            return 0.0
        if evidence.df <= 2:
            return np.inf
        q = law.weights @ evidence.q(law.nodes)
        return float(self.mixture.unit**2 * q / (evidence.df - 2))

    def cdf(self, x: ArrayLike) -> FloatArray:
        """P(sigma^2 <= x | Y), in the shape of `x`."""
        values = as_floats("x", x)
        unit = self.mixture.unit**2
        if not unit:
            return np.where(values >= 0, 1.0, 0.0)
        return self._cdf(np.ravel(values) / unit).reshape(values.shape)

    def quantile(self, q: ArrayLike) -> FloatArray:
        """Quantiles in the shape of `q`, by bisection on the log scale between the components'."""
        target = check_prob("q", q)
        if not self.mixture.unit:
            return np.zeros_like(target)
        flat, evidence = np.ravel(target), self.mixture.evidence
        chi2 = 2 * special.gammainccinv(evidence.df / 2, flat)
        with np.errstate(divide="ignore"):
            ends = np.log(evidence.q(self.mixture.lam.nodes)) - np.log(chi2)[:, None]
        low, high = ends.min(axis=1), ends.max(axis=1)
        for _ in range(60):
            middle = (low + high) / 2
            below = self._cdf(np.exp(middle)) < flat
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.asarray(self.mixture.unit**2 * np.exp((low + high) / 2)).reshape(target.shape)

    def sample(self, n: int, rng: RNGLike = None) -> FloatArray:
        """Draw i.i.d. values, shape (n,): lambda first, then sigma^2 given it."""
        check_count("n", n)
        generator = as_generator(rng)
        lambdas = self.mixture.lam.sample(n, generator)
        return self.mixture.unit**2 * self.mixture.draw_sigma2(generator, lambdas)

    def _cdf(self, x: FloatArray) -> FloatArray:
        """Distribution function in standard units, (n,) -> (n,)."""
        evidence, law = self.mixture.evidence, self.mixture.lam
        q = evidence.q(law.nodes)
        with np.errstate(divide="ignore", over="ignore"):
            ratio = np.where(x > 0, q[:, None] / (2 * np.where(x > 0, x, 1.0)), np.inf)
        chance = np.asarray(law.weights @ special.gammaincc(evidence.df / 2, ratio))
        return np.where(np.isnan(x), np.nan, chance)


@dataclass(frozen=True, slots=True, kw_only=True)
class Intercept(OneNumber):
    """The posterior of the intercept alone: a mixture of t laws over lambda.

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> rng = np.random.default_rng(0)
    >>> masks = rng.integers(0, 2, size=(400, 2))
    >>> post = eblime.fit(masks, 0.5 + masks @ [1.0, 0.0] + 0.1 * rng.normal(size=400))
    >>> post.intercept_law.interval(0.95).round(1)
    array([0.5, 0.5])
    """

    law: StudentMixture

    @property
    def mean(self) -> float:
        """Posterior mean."""
        return float(self.law.mean[0])

    @property
    def sd(self) -> float:
        """Posterior standard deviation."""
        return float(self.law.sd[0])

    def quantile(self, q: ArrayLike) -> FloatArray:
        """Quantiles in the shape of `q`."""
        target = check_prob("q", q)
        return self.law.quantile(target[..., None])[..., 0]

    def interval(self, prob: float = 0.95) -> FloatArray:
        """Equal-tailed credible interval, shape (2,)."""
        tail = (1 - check_level("prob", prob)) / 2
        return self.quantile([tail, 1 - tail])

    def cdf(self, x: ArrayLike) -> FloatArray:
        """Distribution function, in the shape of `x`."""
        return self.law.cdf(as_floats("x", x)[..., None])[..., 0]
