"""The posterior of beta when every feature has a scale of its own.

The marginals are mixtures of t laws over the common lambda and the feature's own precision, which
is released while the other features' precisions stay fitted. The joint law has exactly these
marginals, and the dependence of the fitted ridge regression: a Gaussian copula with its
correlation, `beta_j = g_j(z_j)` with z normal and `g_j = F_j^-1(Phi)`, tabulated. Covariances and
order probabilities are one-dimensional integrals.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from eblime._types import BoolArray, FloatArray
from eblime.core.lam import gauss_rule, log_local_precision
from eblime.core.laws import Draws
from eblime.core.mixture import Mixture
from eblime.core.spectrum import Response, Spectrum, project, rescale
from eblime.core.student import StudentLaw, StudentMixture

__all__ = [
    "GaussianCopula",
    "LocalMixture",
    "Released",
    "fit_local",
    "fit_precisions",
    "law_at",
    "release",
]

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


_STEPS = np.arange(-32.0, 25.0)  # log(psi); the integrands are analytic, so that a step of 1 does
_LOW, _HIGH = 1e-8, 1e-5  # masses of a node below which the ends of the grid are cut off


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """Weights of L values of lambda and F values of the log precision, for each feature."""

    logs: FloatArray  # (F, p) log(phi)
    weights: FloatArray  # (L, F, p), sums to one for each feature
    penalty: FloatArray  # (L, F, p) lambda psi
    df: float
    b: FloatArray  # (L, p) locations at the fitted precisions
    spread: FloatArray  # (L, p) M_jj
    reach: FloatArray  # (L, p) 1 - lambda M_jj
    flat: FloatArray  # (L, p) b^2 / reach
    free: FloatArray  # (L, p) Q(0)

    def laws(self) -> tuple[FloatArray, FloatArray]:
        """Locations and scales of the t laws, each (L, F, p), in units of the fitted scales."""
        f = self.reach[:, None] + self.penalty * self.spread[:, None]
        q = self.free[:, None] + self.penalty * self.flat[:, None] / f
        return self.b[:, None] / f, np.sqrt(q / self.df * self.spread[:, None] / f)

    def trim(self) -> Released:
        """The same on the part of the grid that has mass, F as small as all features allow.

        Mass beyond the right end, a spike at zero, is counted at the last node.
        """
        mass = self.weights.sum(axis=0)
        n = len(mass)
        first = np.argmax(mass > _LOW, axis=0)
        last = n - 1 - np.argmax(mass[::-1] > _HIGH, axis=0)
        length = int(np.max(last - first)) + 1
        rows = np.minimum(first, n - length) + np.arange(length)[:, None]
        weights = np.take_along_axis(self.weights, rows[None], axis=1)
        beyond = np.arange(n)[:, None] > rows[-1]
        weights[:, -1] += np.einsum("lfp,fp->lp", self.weights, beyond)
        return replace(
            self,
            logs=np.take_along_axis(self.logs, rows, axis=0),
            weights=weights / weights.sum(axis=(0, 1)),
            penalty=self.penalty[:, rows, 0],
        )


def release(base: Mixture, fitted: FloatArray, *, n_lambdas: int) -> Released:
    """Release each feature's precision in turn, the others staying as fitted.

    Parameters
    ----------
    base
        The law of `beta_j exp(fitted_j / 2)` with every precision at its fitted value.
    fitted
        Log precisions, shape (p,).
    n_lambdas
        How many values stand for the law of lambda.

    Notes
    -----
    A feature that the data do not reach keeps its precision: nothing can be learnt about it.
    """
    x, chances = gauss_rule(np.log(base.lam.nodes), base.lam.weights, n_lambdas)
    lambdas, df = np.exp(x)[:, None], base.evidence.df
    reach, spread, b = _conditionals(base, lambdas)
    q = base.evidence.q(lambdas[:, 0])[:, None]
    known = reach > 1e-12
    flat = np.where(known, b**2 / np.where(known, reach, 1.0), 0.0)
    free = np.maximum(q - lambdas * flat, np.minimum(base.evidence.floor, q))  # Q(0)
    penalty = lambdas[:, None] * np.exp(_STEPS)[:, None]  # (L, F, 1)
    f = reach[:, None] + penalty * spread[:, None]
    log_weights = np.log(free[:, None] + penalty * flat[:, None] / f)
    log_weights *= -0.5 * df
    log_weights -= 0.5 * np.log(f)
    log_weights += (np.log(np.maximum(chances, 1e-300)) + 0.5 * df * np.log(q[:, 0]))[:, None, None]
    return Released(
        logs=fitted + _STEPS[:, None],
        weights=_normalise(log_weights, fitted, known),
        penalty=penalty,
        df=df,
        b=b,
        spread=spread,
        reach=reach,
        flat=flat,
        free=free,
    )


def _normalise(log_weights: FloatArray, fitted: FloatArray, known: BoolArray) -> FloatArray:
    """Weights of the nodes, (L, F, p), from the evidence without the prior of psi; in place."""
    log_weights += 0.5 * _STEPS[:, None] + log_local_precision(fitted + _STEPS[:, None])
    unknown = ~known.any(axis=0)
    if unknown.any():
        log_weights[:, (_STEPS != 0)[:, None] & unknown] = -np.inf
    log_weights -= log_weights.max(axis=(0, 1))
    weights = np.exp(log_weights, out=log_weights)
    weights /= weights.sum(axis=(0, 1))
    return weights


def _conditionals(base: Mixture, lambdas: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """`1 - lambda M_jj`, `M_jj` and `b_j` at every lambda, each (L, p).

    The first is summed by itself: where the data say little, the difference would keep no digits.
    """
    d, rows = base.evidence.d, base.basis
    power, shrink = (rows**2).T, 1 / (d + lambdas)
    left = np.maximum(1 - power.sum(axis=0), 0.0)
    spread = shrink @ power + np.where(left > 1e-12, left, 0.0) / lambdas
    b = (np.sqrt(d) * base.evidence.k * shrink) @ rows.T
    return (d * shrink) @ power, spread, b


_ROUNDS, _STEP = 2, 0.35
_FEW = 5  # values of lambda in a round
_LEAST, _MOST, _WORK = 10, 40, 400  # values in the marginals: about 400 over p
_PLACES = np.array([0.0, 0.6, 1.3, 2.2, 3.5, 7.0])  # of the copula's table, in scales of a t law


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalMixture(StudentLaw):
    """P(beta | Y) with a precision `lambda phi_j` for each feature."""

    base: Mixture  # the law of beta_j exp(fitted_j / 2) at the fitted precisions
    fitted: FloatArray  # (p,) fitted log(phi_j)
    mean: FloatArray  # (p,) E(beta | Y)
    alone: StudentMixture  # each importance alone, its own precision integrated out

    @property
    def n_features(self) -> int:
        """Number of features, p."""
        return len(self.fitted)

    @property
    def cov(self) -> FloatArray:
        """Posterior covariance, (p, p); NaN off the diagonal where it does not exist."""
        p, law = self.n_features, self.marginals()
        if not self.base.unit:
            return np.zeros((p, p))
        variance, cov = law.sd**2, self.base.unit**2 * self._copula(law).covariance()
        cov[~np.isfinite(variance)] = cov[:, ~np.isfinite(variance)] = np.nan
        cov[np.diag_indices(p)] = variance
        return cov

    def prob_greater(self, stretch: FloatArray | None = None) -> FloatArray:
        """P(beta_i > beta_j | Y), (p, p), with one half on the diagonal.

        `stretch`, (p,), multiplies the distance of each importance from its mean.
        """
        if not self.base.unit:
            return np.full((self.n_features, self.n_features), 0.5)
        copula = self._copula(self.marginals())
        if stretch is not None:
            centre = self.mean / self.base.unit
            copula = replace(copula, x=centre + stretch * (copula.x - centre))
        return copula.prob_greater()

    def draw(self, rng: np.random.Generator, n: int) -> Draws:
        """Draw beta i.i.d. from the joint law, and (lambda, sigma^2) from theirs.

        The two are drawn independently of each other: the copula joins the importances alone.
        """
        lambdas = self.base.lam.sample(n, rng)
        sigma2 = self.base.unit**2 * self.base.draw_sigma2(rng, lambdas)
        if self.base.unit:
            beta = self.base.unit * self._copula(self.marginals()).draw(rng, n)
        else:
            beta = np.zeros((n, self.n_features))
        return Draws(beta=beta, extras={"sigma2": sigma2, "lam": lambdas})

    def marginals(self) -> StudentMixture:
        """The law of each importance alone, as a mixture of t laws over (lambda, phi_j)."""
        return self.alone

    def _copula(self, law: StudentMixture) -> GaussianCopula:
        """The joint law in units of the scores' spread, from the marginals.

        Every t law of a feature contributes a few places to its table, so that a spike at zero and
        wide tails are both resolved.
        """
        every = slice(0, None, 2)
        top = law.weights.max(axis=1) > 1e-6
        loc, scale = law.loc[top][every], law.scale[top][every]
        places = np.concatenate([-_PLACES[:0:-1], _PLACES])[:, None, None]
        x = np.sort((loc + places * scale).reshape(-1, self.n_features), axis=0)
        x = x[:: max(1, len(x) // 130)]
        z = special.ndtri(np.clip(law.cdf(law.unit * x), 1e-16, 1 - 1e-16))
        return GaussianCopula(
            x=x,
            z=np.maximum.accumulate(z, axis=0),
            correlation=self.base.correlation,
        )


def fit_local(
    spectrum: Spectrum, response: Response, ridge: Callable[[Spectrum, Response], Mixture]
) -> LocalMixture:
    """Fit the features' precisions, and integrate each feature's own at the end.

    Parameters
    ----------
    spectrum, response
        The masks and the scores of one target.
    ridge
        Fits the law of the coefficients with a common lambda.
    """
    fitted = fit_precisions(spectrum, response, ridge)
    base = law_at(fitted, spectrum, response, ridge)
    alone = _marginals(base, fitted)
    return LocalMixture(base=base, fitted=fitted, mean=alone.mean, alone=alone)


def fit_precisions(
    spectrum: Spectrum, response: Response, ridge: Callable[[Spectrum, Response], Mixture]
) -> FloatArray:
    """Fitted log(phi_j), shape (p,): the first step of `fit_local`, with the same parameters.

    Notes
    -----
    A round moves the log precisions by 0.35 of the way to their posterior means, starting from the
    common lambda. The other features' precisions enter as fixed numbers: moved all the way, they
    would be treated as known, and the intervals would be too narrow.
    """
    fitted = np.zeros(len(spectrum.basis))
    for number in range(_ROUNDS):
        base = law_at(fitted, spectrum, response, ridge) if number else ridge(spectrum, response)
        released = release(base, fitted, n_lambdas=_FEW)
        target = np.sum(released.weights.sum(axis=0) * released.logs, axis=0)  # E(log phi_j | Y)
        fitted = np.clip(fitted + _STEP * (target - fitted), -20.0, 20.0)
    return fitted


def law_at(
    fitted: FloatArray,
    spectrum: Spectrum,
    response: Response,
    ridge: Callable[[Spectrum, Response], Mixture],
) -> Mixture:
    """The law of `beta_j exp(fitted_j / 2)` with the precisions at their fitted values."""
    scaled = rescale(spectrum, np.exp(-fitted / 2))
    k, residual = project(scaled, response.y)
    return ridge(scaled, replace(response, k=k, residual=residual))


def _marginals(base: Mixture, fitted: FloatArray) -> StudentMixture:
    """Marginals of beta with each feature's own precision integrated out."""
    scales, p = np.exp(-fitted / 2), len(fitted)
    n_lambdas = min(max(_WORK // p, _LEAST), _MOST)  # few features leave the law of lambda wide
    released = release(base, fitted, n_lambdas=n_lambdas).trim()
    loc, scale = released.laws()
    return StudentMixture(
        weights=released.weights.reshape(-1, p),
        loc=(loc * scales).reshape(-1, p),
        scale=(scale * scales).reshape(-1, p),
        df=base.evidence.df,
        unit=base.unit,
        heavy=base.heavy,
    )
