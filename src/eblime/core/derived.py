"""Laws made from another one: stretched, or of some features.

The regression takes the noise of every mask, beyond its weight, as equal. A feature whose rare
state has far noisier scores then gets intervals that are too narrow. A sandwich variance uses each
mask's own residual instead, and the law is stretched to it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from eblime._types import FloatArray, IntArray
from eblime.core.fit_quality import DECIDED, hc_factors
from eblime.core.laws import Draws, DrawsLaw, NormalMixture, PointMass
from eblime.core.mixture import Mixture
from eblime.core.spectrum import Response, Spectrum, centred_rows
from eblime.core.student import (
    SignedMixture,
    StudentLaw,
    StudentMixture,
    broadcast_rows,
    point_density,
)

if TYPE_CHECKING:
    from eblime.protocols import Law


def noise_factors(
    spectrum: Spectrum, response: Response, mixture: Mixture, groups: IntArray
) -> FloatArray:
    """How much wider the law of each importance must be to allow for unequal noise, (p,), >= 1.

    Masks with the same number in `groups`, (N,), such as a mask and its complement, may have
    correlated residuals.

    At the median of lambda the posterior variance is the variance of the noise,
    `sigma^2 M Z'WZ M`, plus what the prior leaves open, `sigma^2 lambda M^2`. The first becomes
    `M (sum_g s_g s_g') M`, where s_g is the sum over a group of the weighted masks times their
    residuals, corrected by `hc_factors`: of the posterior mean, or of the ridge regression at
    this lambda for a mask that decides its own prediction. The result is the root of the ratio of
    the two variances. It is never below one: the noise also decides how much the mean is shrunk,
    and a variance that does not count this error is too small.
    """
    root, basis = spectrum.root, mixture.basis
    lam = mixture.lam.median
    shrink = 1 / (mixture.evidence.d + lam)
    weighted, target = (centred_rows(spectrum, each) for each in (spectrum.masks, response.y))
    turned = weighted @ basis  # (n, r)
    leverage = turned**2 @ shrink + spectrum.flat * root**2 / (root @ root)
    missed = target - weighted @ mixture.coefficients
    ridge = turned @ (shrink * np.sqrt(mixture.evidence.d) * mixture.evidence.k)
    missed = np.where(1 - leverage < DECIDED, target - ridge, missed)
    corrected = missed * hc_factors(np.maximum(1 - leverage, 1e-6))
    sums = np.zeros((len(groups), len(shrink)))
    np.add.at(sums, groups[spectrum.rows], turned * shrink * corrected[:, None])
    noise = np.sum((sums @ basis.T) ** 2, axis=0)
    sigma2 = float(mixture.evidence.q(np.array([lam]))[0]) / mixture.evidence.df
    unreached = np.maximum(1 - np.sum(basis**2, axis=1), 0.0) / lam
    model = sigma2 * (basis**2 @ shrink + unreached)
    prior = sigma2 * (lam * (basis**2 @ shrink**2) + unreached)
    return np.asarray(np.sqrt(np.maximum((noise + prior) / model, 1.0)))


def select_features(law: Law, features: IntArray) -> Law:
    """The law of some of the features, by number; -1 is a feature that is zero, exactly.

    The marginals of a mixture of t laws are computed once and serve all summaries, so that a table
    of a few of thousands of features takes the time of a few.
    """
    if isinstance(law, PointMass):
        return replace(law, mean=np.where(features < 0, 0.0, law.mean[features]))
    if isinstance(law, NormalMixture) and (features >= 0).all():
        covs = law.covs[:, features[:, None], features]
        return replace(law, means=law.means[:, features], covs=covs)
    if isinstance(law, DrawsLaw):
        beta = np.where(features < 0, 0.0, law.draws.beta[:, features])
        draws = replace(law.draws, beta=beta)
        source = None if law.source is None else select_features(law.source, features)
        return replace(law, draws=draws, source=source)
    select = getattr(law, "select", None)
    if select is not None:
        return select(features)  # type: ignore[no-any-return]
    alone = law.marginals().select(features) if isinstance(law, StudentLaw) else None
    return SelectedLaw(law=law, features=features, alone=alone)


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedLaw:
    """The law of some of the features of another law, and of features that are zero, exactly."""

    law: Law
    features: IntArray  # (m,) numbers; -1 is zero
    # each of them alone; if None, `law` is asked about all features
    alone: StudentMixture | SignedMixture | None

    has_spread: ClassVar[bool] = True

    @property
    def n_features(self) -> int:
        """Number of the selected features."""
        return len(self.features)

    @property
    def mean(self) -> FloatArray:
        """Means, (m,)."""
        return self._put(self.law.mean[self.features], 0.0)

    @property
    def sd(self) -> FloatArray:
        """Standard deviations, (m,)."""
        return self._put(self.law.sd[self.features] if self.alone is None else self.alone.sd, 0.0)

    @property
    def cov(self) -> FloatArray:
        """Covariances, (m, m)."""
        within = self._put(self.law.cov[self.features[:, None], self.features], 0.0)
        return self._put(within.T, 0.0)

    def quantile(self, q: FloatArray) -> FloatArray:
        """Marginal quantiles, (K,) -> (K, m)."""
        if self.alone is None:
            return self._put(self.law.quantile(q)[:, self.features], 0.0)
        return self._put(self.alone.quantile(q[:, None]), 0.0)

    def hdi(self, prob: float) -> FloatArray:
        """Marginal highest-density intervals, (m, 2)."""
        law = self.alone
        ends = self.law.hdi(prob)[self.features] if law is None else law.hdi(prob)
        return self._put(ends.T, 0.0).T

    def pdf(self, x: FloatArray) -> FloatArray:
        """Marginal densities; `x` broadcasts against (m,)."""
        zero = point_density(x, 0.0)
        if self.alone is None:
            return self._put(self.law.pdf(self._for_all(x))[..., self.features], zero)
        return self._put(self.alone.pdf(x), zero)

    def cdf(self, x: FloatArray) -> FloatArray:
        """P(beta_j <= x); `x` broadcasts against (m,)."""
        zero = np.heaviside(x, 1.0)
        if self.alone is None:
            return self._put(self.law.cdf(self._for_all(x))[..., self.features], zero)
        return self._put(self.alone.cdf(x), zero)

    def prob_positive(self) -> FloatArray:
        """P(beta_j > 0), (m,)."""
        if self.alone is None:
            return self._put(self.law.prob_positive()[self.features], 0.5)
        return self._put(self.alone.prob_positive(), 0.5)

    def prob_greater(self) -> FloatArray:
        """P(beta_i > beta_j), (m, m)."""
        found, positive = self.law.prob_greater(), self.prob_positive()
        found = self._put(found[self.features[:, None], self.features], positive[:, None])
        return self._put(found.T, 1 - positive[:, None]).T

    def draw(self, rng: np.random.Generator, n: int) -> Draws:
        """Draw beta i.i.d., with the extras of the law of all features."""
        draws = self.law.draw(rng, n)
        return Draws(beta=self._put(draws.beta[:, self.features], 0.0), extras=draws.extras)

    def _put(self, values: FloatArray, zero: FloatArray | float) -> FloatArray:
        """The values, (..., m), with `zero` for the features that are zero, exactly."""
        return np.where(self.features < 0, zero, values)

    def _for_all(self, x: FloatArray) -> FloatArray:
        """The values with one entry for each feature of `law`: the mean if it is not selected."""
        rows, shape = broadcast_rows(x, self.n_features)
        values, known = np.tile(self.law.mean, (len(rows), 1)), self.features >= 0
        values[:, self.features[known]] = rows[:, known]
        return values.reshape(*shape[:-1], -1)
