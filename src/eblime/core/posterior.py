"""What a fit gives back: the posterior of the feature importances and its summaries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from eblime._checks import as_floats, check_choice, check_count, check_level, check_prob
from eblime._types import FloatArray, IntArray, RNGLike
from eblime.core.empirical import NoSpreadError, PointMass
from eblime.core.lam import LambdaLaw
from eblime.core.local import LocalMixture
from eblime.core.mixture import Draws, Mixture
from eblime.core.ranking import Ranking, rank_draws, rank_features, rank_frequencies
from eblime.core.scalar import Intercept, NoiseVariance
from eblime.core.table import importance_table

__all__ = ["Law", "Posterior"]


class Law(Protocol):
    """A law of beta: `Mixture`, `LocalMixture`, draws (`Empirical`) or a point (`PointMass`)."""

    @property
    def n_features(self) -> int: ...  # noqa: D102

    @property
    def mean(self) -> FloatArray: ...  # noqa: D102

    @property
    def sd(self) -> FloatArray: ...  # noqa: D102

    @property
    def cov(self) -> FloatArray: ...  # noqa: D102

    def quantile(self, q: FloatArray) -> FloatArray: ...  # noqa: D102

    def hdi(self, prob: float) -> FloatArray: ...  # noqa: D102

    def pdf(self, x: FloatArray) -> FloatArray: ...  # noqa: D102

    def cdf(self, x: FloatArray) -> FloatArray: ...  # noqa: D102

    def prob_positive(self) -> FloatArray: ...  # noqa: D102

    def prob_greater(self) -> FloatArray: ...  # noqa: D102

    def draw(self, rng: np.random.Generator, n: int) -> Draws: ...  # noqa: D102


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Posterior:
    """P(beta | Y) of p feature importances, with the fit's R^2 beside it.

    The intervals say how well the masks asked about pin down the best weighted linear fit. They do
    not say how good that fit is: read `r2` beside them.
    """

    law: Law
    lam: LambdaLaw  # posterior of the ridge parameter
    intercept: float  # posterior mean of the intercept, 0.0 where there is none
    intercept_law: Intercept | None  # its posterior, None where there is none
    noise: NoiseVariance | None  # posterior of sigma^2, None for a point estimate
    r2: float  # weighted R^2 of the surrogate at the posterior mean
    ess: float  # effective sample size of the weights, (sum w)^2 / sum w^2
    n_masks: int
    method: str  # name of the method, for people to read

    @property
    def n_features(self) -> int:
        """Number of features, p."""
        return self.law.n_features

    @property
    def has_spread(self) -> bool:
        """Whether there is a spread to speak of: False for a point estimate."""
        return not isinstance(self.law, PointMass)

    @property
    def mean(self) -> FloatArray:
        """Posterior mean of each importance, shape (p,)."""
        return self.law.mean

    @property
    def sd(self) -> FloatArray:
        """Posterior standard deviation of each importance, shape (p,)."""
        return self.law.sd

    @property
    def cov(self) -> FloatArray:
        """Posterior covariance of the importances, shape (p, p)."""
        return self.law.cov

    @property
    def sigma2(self) -> NoiseVariance:
        """Posterior of sigma^2, the lack of linear fit at weight one."""
        if self.noise is None:
            raise NoSpreadError(
                f"{self.method} has no posterior of sigma^2; fit with EBLIME or BayesLIME."
            )
        return self.noise

    def interval(self, prob: float = 0.95) -> FloatArray:
        """Equal-tailed credible interval of each importance, shape (p, 2)."""
        tail = (1 - check_level("prob", prob)) / 2
        return self.law.quantile(np.array([tail, 1 - tail])).T

    def hdi(self, prob: float = 0.95) -> FloatArray:
        """Highest-density interval of each importance, the shortest with `prob`, shape (p, 2)."""
        return self.law.hdi(check_level("prob", prob))

    def quantile(self, q: ArrayLike) -> FloatArray:
        """Marginal quantiles, every feature at once: shape (p,) for one q, (K, p) for K of them."""
        target = check_prob("q", q)
        found = self.law.quantile(np.ravel(target))
        return found.reshape(*target.shape, self.n_features)

    def pdf(self, x: ArrayLike) -> FloatArray:
        """Marginal densities at x, broadcasting against the features: a grid is `x[:, None]`."""
        return self.law.pdf(as_floats("x", x))

    def cdf(self, x: ArrayLike) -> FloatArray:
        """P(beta_j <= x), x broadcasting against the features: a grid is `x[:, None]`."""
        return self.law.cdf(as_floats("x", x))

    def prob_positive(self) -> FloatArray:
        """P(beta_j > 0), shape (p,)."""
        return self.law.prob_positive()

    def columns(self, prob: float = 0.95) -> dict[str, FloatArray]:
        """What a table shows, `sd`, `low`, `high` and `prob_positive`, each (p,).

        The marginals are made once for all of them; empty for a point estimate.
        """
        if not self.has_spread:
            return {}
        law = self.law.marginals() if isinstance(self.law, (Mixture, LocalMixture)) else None
        tail = (1 - check_level("prob", prob)) / 2
        ends = np.array([tail, 1 - tail])
        if law is None:
            low, high = self.law.quantile(ends)
            return {"sd": self.sd, "low": low, "high": high, "prob_positive": self.prob_positive()}
        low, high = law.quantile(ends[:, None])
        return {"sd": law.sd, "low": low, "high": high, "prob_positive": law.prob_positive()}

    def prob_greater(self) -> FloatArray:
        """P(beta_i > beta_j), shape (p, p), with one half on the diagonal."""
        return self.law.prob_greater()

    def sample(self, n: int, rng: RNGLike = None) -> FloatArray:
        """Draw importances i.i.d., shape (n, p)."""
        return self.draw(n, rng).beta

    def draw(self, n: int, rng: RNGLike = None) -> Draws:
        """Draw (beta, sigma^2, lambda) jointly and i.i.d.: Algorithm 1.

        With local scales beta is drawn independently of the other two.
        """
        check_count("n", n)
        return self.law.draw(np.random.default_rng(rng), n)

    def top_k_probability(
        self, k: int, by: str = "abs", *, n_draws: int = 10_000, rng: RNGLike = 0
    ) -> FloatArray:
        """P(feature j is among the k largest), shape (p,), by `|beta|` ("abs") or beta ("value").

        From i.i.d. draws: the standard error is at most `0.5 / sqrt(n_draws)`, .005 by default.
        """
        check_count("k", k, maximum=self.n_features)
        return np.asarray((self._ranks(by, n_draws, rng) <= k).mean(axis=0))

    def rank_probability(
        self, by: str = "abs", *, n_draws: int = 10_000, rng: RNGLike = 0
    ) -> FloatArray:
        """P(rank of feature j = r + 1) at [j, r], shape (p, p), from i.i.d. draws."""
        return rank_frequencies(self._ranks(by, n_draws, rng))

    def ranking(
        self, by: str = "abs", *, prob: float = 0.95, n_draws: int = 10_000, rng: RNGLike = 0
    ) -> Ranking:
        """Features from most to least important, with bounds on all ranks that hold together."""
        return rank_features(self._ranks(by, n_draws, rng), check_level("prob", prob))

    def table(self, names: Sequence[str] | None = None, prob: float = 0.95, top: int = 20) -> str:
        """The most important features as text: mean, sd, interval and P(beta > 0)."""
        level = check_level("prob", prob)
        check_count("top", top)
        if names is not None and len(names) != self.n_features:
            raise ValueError(
                f"`names` must have one entry for each of the {self.n_features} features; "
                f"got {len(names)}."
            )
        return importance_table(self, names, level, top)

    def __repr__(self) -> str:
        """One line: what was fitted, to how much, how well."""
        return (
            f"Posterior(method={self.method!r}, n_features={self.n_features}, "
            f"n_masks={self.n_masks}, r2={self.r2:.3f}, ess={self.ess:.1f})"
        )

    def __str__(self) -> str:
        """The table of importances."""
        return self.table()

    def _ranks(self, by: str, n_draws: int, rng: RNGLike) -> IntArray:
        check_choice("by", by, ("abs", "value"))
        check_count("n_draws", n_draws)
        generator = np.random.default_rng(rng)
        return rank_draws(generator, self.law.draw(generator, n_draws).beta, by)
