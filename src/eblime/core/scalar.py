"""Posteriors of single numbers other than lambda: sigma^2 and the intercept."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from eblime._checks import as_floats, as_generator, check_count, check_level, check_prob
from eblime._types import FloatArray, RNGLike
from eblime.core.mixture import Mixture
from eblime.core.student import StudentMixture

__all__ = ["Intercept", "NoiseVariance"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseVariance:
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

    @property
    def median(self) -> float:
        """Posterior median."""
        return float(self.quantile(0.5))

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
class Intercept:
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

    @property
    def median(self) -> float:
        """Posterior median."""
        return float(self.quantile(0.5))

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

    def sample(self, n: int, rng: RNGLike = None) -> FloatArray:
        """Independent draws, shape (n,), by the inverse cdf."""
        check_count("n", n)
        uniform = as_generator(rng).random(n)
        return self.quantile(np.clip(uniform, 1e-12, 1 - 1e-12))
