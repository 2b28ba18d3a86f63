"""The posterior of beta when every feature has a scale of its own.

The marginals are mixtures of t laws over the common lambda and the feature's own precision, the
other features' precisions being fitted. The joint law has exactly these marginals, and the
dependence of the fitted ridge regression: a Gaussian copula with its correlation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from eblime._types import FloatArray
from eblime.core.copula import GaussianCopula
from eblime.core.draws import Draws
from eblime.core.mixture import Mixture
from eblime.core.scales import release
from eblime.core.spectrum import Response, Spectrum, project, rescale
from eblime.core.student import StudentMixture

__all__ = ["LocalMixture", "fit_local", "fit_precisions"]

_ROUNDS, _STEP = 2, 0.35
_FEW = 5  # values of lambda in a round
_LEAST, _MOST, _WORK = 10, 40, 400  # values in the marginals: about 400 over p
_PLACES = np.array([0.0, 0.6, 1.3, 2.2, 3.5, 7.0])  # of the copula's table, in scales of a t law


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalMixture:
    """P(beta | Y) with a precision `lambda phi_j` for each feature."""

    base: Mixture  # the law of beta_j exp(fitted_j / 2) at the fitted precisions
    fitted: FloatArray  # (p,) fitted log(phi_j)
    mean: FloatArray  # (p,) E(beta | Y)

    @property
    def has_spread(self) -> bool:
        """Always True."""
        return True

    @property
    def n_features(self) -> int:
        """Number of features, p."""
        return len(self.fitted)

    @property
    def sd(self) -> FloatArray:
        """Posterior standard deviations, (p,); infinite where the second moment does not exist."""
        return self.marginals().sd

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

    def summary(self, prob: float) -> dict[str, FloatArray]:
        """The columns `sd`, `low`, `high` and `prob_positive`, from one set of marginals."""
        return self.marginals().summary(prob)

    def quantile(self, q: FloatArray) -> FloatArray:
        """Marginal quantiles, (K,) -> (K, p)."""
        return self.marginals().quantile(q[:, None])

    def hdi(self, prob: float) -> FloatArray:
        """Marginal highest-density intervals, (p, 2)."""
        return self.marginals().hdi(prob)

    def pdf(self, x: FloatArray) -> FloatArray:
        """Marginal densities."""
        return self.marginals().pdf(x)

    def cdf(self, x: FloatArray) -> FloatArray:
        """Marginal distribution functions."""
        return self.marginals().cdf(x)

    def prob_positive(self) -> FloatArray:
        """P(beta_j > 0 | Y), (p,); one half where the scores are constant."""
        return self.marginals().prob_positive()

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
        return _marginals(self.base, self.fitted)

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
    base = _at(fitted, spectrum, response, ridge)
    return LocalMixture(base=base, fitted=fitted, mean=_marginals(base, fitted).mean)


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
        base = _at(fitted, spectrum, response, ridge) if number else ridge(spectrum, response)
        target = release(base, fitted, n_lambdas=_FEW).mean_log
        fitted = np.clip(fitted + _STEP * (target - fitted), -20.0, 20.0)
    return fitted


def _at(
    fitted: FloatArray,
    spectrum: Spectrum,
    response: Response,
    ridge: Callable[[Spectrum, Response], Mixture],
) -> Mixture:
    """The law of `beta_j exp(fitted_j / 2)` with the precisions at their fitted values."""
    scaled = rescale(spectrum, np.exp(-fitted / 2))
    return ridge(scaled, project(scaled, response))


def _marginals(base: Mixture, fitted: FloatArray) -> StudentMixture:
    """Marginals of beta with each feature's own precision integrated out."""
    scales, p = np.exp(-fitted / 2), len(fitted)
    n_lambdas = min(max(_WORK // p, _LEAST), _MOST)  # few features leave the law of lambda wide
    released = release(base, fitted, n_lambdas=n_lambdas).trimmed()
    loc, scale = released.laws()
    return StudentMixture(
        weights=released.weights.reshape(-1, p),
        loc=(loc * scales).reshape(-1, p),
        scale=(scale * scales).reshape(-1, p),
        df=base.evidence.df,
        unit=base.unit,
        heavy=base.heavy,
    )
