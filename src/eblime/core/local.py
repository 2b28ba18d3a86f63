"""The posterior of beta when every feature has a scale of its own.

The marginals are mixtures of t laws over the common lambda and the feature's own precision, which
is released while the other features' precisions stay fitted. The joint law has exactly these
marginals, and the dependence of the fitted ridge regression: a Gaussian copula with its
correlation, `beta_j = g_j(z_j)` with z normal and `g_j = F_j^-1(Phi)`, tabulated. Covariances and
order probabilities are one-dimensional integrals.

Nothing here depends on the number of masks, and every array has a leading axis of B inputs or
targets that are fitted together: a few hundred microseconds each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import special

from eblime._types import FloatArray
from eblime.core.lam import (
    Evidence,
    LambdaLaw,
    few_lambdas,
    half_line_lambda,
    log_local_precision,
)
from eblime.core.laws import Draws, PointValue, eigen_root
from eblime.core.mixture import Mixture
from eblime.core.student import SignedMixture, StudentLaw, StudentMixture, share_of_positive

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
        root = eigen_root(self.correlation)
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


_WIDE = np.arange(-28.0, 19.0, 2.0)  # log(psi) in a round; the integrands are analytic
_FINE = np.arange(-13.0, 14.0)  # log(lambda psi) in the marginals, about its mean
_ROUNDS, _STEP = 2, 0.35
_WORK = 100  # values of lambda: about 100 over p, within bounds
_IN_ROUND, _AT_END = (7, 15), (9, 25)  # bounds in a round, and in the marginals
_BLOCK = 1 << 17  # numbers held at once: the work stays in the processor's cache
_REACHED = 1e-12  # share of a coefficient's prior variance that the data remove
_SIGNS = 5.0  # importances of each sign that the prior of the share of positive ones is worth
_PLACES = np.array([0.0, 0.6, 1.3, 2.2, 3.5, 7.0])  # of the copula's table, in scales of a t law


@dataclass(frozen=True, kw_only=True)  # no slots: the base is kept once computed
class LocalMixture(StudentLaw):
    """P(beta | Y) with a precision `lambda phi_j` for each feature."""

    basis: FloatArray  # (p, r) of the law `base`
    evidence: Evidence  # of its lambda
    scale: float | None  # of the half-Cauchy prior of lambda^-1/2; None for a lambda of one
    unit: float  # what one unit of beta is worth in the scores' own units
    fitted: FloatArray  # (p,) fitted log(phi_j)
    origin: FloatArray  # (p,) what `base` is shrunk towards, in standard units
    log_lambda: float  # E(log lambda | Y) at the fitted precisions
    mean: FloatArray  # (p,) E(beta | Y)
    alone: StudentMixture  # each importance alone, its own precision integrated out
    odds: FloatArray | None = None  # (p,) of a positive importance; None is even odds

    @cached_property
    def base(self) -> Mixture:
        """The law of (beta_j - origin_j) exp(fitted_j / 2) at the fitted precisions."""
        null = self.basis.shape[1] < len(self.basis)
        lam: LambdaLaw = PointValue(value=1.0)
        if self.scale is not None:
            lam = half_line_lambda(self.evidence, scale=self.scale, null=null)
        return Mixture(basis=self.basis, evidence=self.evidence, lam=lam, unit=self.unit)

    @property
    def n_features(self) -> int:
        """Number of features, p."""
        return len(self.fitted)

    @property
    def cov(self) -> FloatArray:
        """Posterior covariance, (p, p); NaN off the diagonal where it does not exist."""
        p, law = self.n_features, self.marginals()
        if not self.unit:
            return np.zeros((p, p))
        variance, cov = law.sd**2, self.unit**2 * self.copula().covariance()
        cov[~np.isfinite(variance)] = cov[:, ~np.isfinite(variance)] = np.nan
        cov[np.diag_indices(p)] = variance
        return cov

    def ridge_moments(self) -> tuple[FloatArray, float]:
        """Covariance, with the correlation of the ridge at the fitted precisions, and E(sigma^2).

        Both at the mean of log(lambda), so that no integral is needed.
        """
        evidence, lam, sd = self.evidence, np.exp(self.log_lambda), self.sd
        spread = (self.basis / (evidence.d + lam)) @ self.basis.T
        if len(evidence.d) < len(sd):
            spread += (np.eye(len(sd)) - self.basis @ self.basis.T) / lam
        scale = sd / np.sqrt(np.diag(spread))
        sigma2 = self.unit**2 * float(evidence.q(np.array([lam]))[0]) / (evidence.df - 2)
        return spread * scale * scale[:, None], sigma2

    def prob_greater(self) -> FloatArray:
        """P(beta_i > beta_j | Y), (p, p), with one half on the diagonal."""
        if not self.unit:
            return np.full((self.n_features, self.n_features), 0.5)
        return self.copula().prob_greater()

    def draw(self, rng: np.random.Generator, n: int) -> Draws:
        """Draw beta i.i.d. from the joint law, and (lambda, sigma^2) from theirs.

        The two are drawn independently of each other: the copula joins the importances alone.
        """
        shape = (n, self.n_features)
        beta = self.unit * self.copula().draw(rng, n) if self.unit else np.zeros(shape)
        lambdas = self.base.lam.sample(n, rng)
        sigma2 = self.unit**2 * self.base.draw_sigma2(rng, lambdas)
        return Draws(beta=beta, extras={"sigma2": sigma2, "lam": lambdas})

    def marginals(self) -> StudentMixture | SignedMixture:
        """The law of each importance alone, as a mixture of t laws over (lambda, phi_j)."""
        return self.alone if self.odds is None else SignedMixture(base=self.alone, odds=self.odds)

    def with_signs(self) -> LocalMixture:
        """The law with odds of a positive importance that the importances themselves show.

        Of a photo, three of four importances are positive. Where the data say little, the chance
        that one is positive is near their share. The odds multiply the density above zero; those of
        features that the data do not reach stay even.
        """
        pooled = self.scale is None  # the means of its prior know the signs
        if pooled or not self.unit or self.alone.df <= 2 or self.alone.heavy.any():
            return self
        share = share_of_positive(self.alone.prob_positive(), _SIGNS)
        reached = np.sum(self.basis**2, axis=1) > _REACHED
        law = replace(self, odds=np.where(reached, share / (1 - share), 1.0))
        return replace(law, mean=law.marginals().mean)

    def stretch(self, factors: FloatArray, shift: FloatArray | float = 0.0) -> LocalMixture:
        """The law with distances from the means multiplied by factors, (p,), moved by a shift."""
        alone, centre = self.alone, self.mean / self.unit
        loc = centre + shift / self.unit + factors * (alone.loc - centre)
        moved = replace(alone, loc=loc, scale=factors * alone.scale)
        return replace(self, alone=moved, mean=self.mean + shift)

    def noise_factors(self, squares: FloatArray) -> FloatArray:
        """How much wider each law must be to allow for unequal noise; see `core/derived.py`.

        `squares`, (p, p), are `sum_g s_g s_g'`.
        """
        evidence, lam = self.evidence, np.exp(self.log_lambda)
        shrink = 1 / (evidence.d + lam)
        scaled = np.exp(-self.fitted / 2)[:, None] * self.basis
        solve = (scaled * shrink) @ scaled.T
        noise = np.einsum("ij,ij->i", solve @ squares, solve)
        sigma2 = float(evidence.q(np.array([lam]))[0]) / evidence.df
        model, prior = scaled**2 @ shrink, lam * (scaled**2 @ shrink**2)
        return np.asarray(np.sqrt(np.maximum((noise / sigma2 + prior) / model, 1.0)))

    def copula(self) -> GaussianCopula:
        """The joint law in units of the scores' spread, which must not be zero.

        Every t law of a feature contributes a few places to its table, so that a spike at zero and
        wide tails are both resolved.
        """
        law, every = self.alone, slice(0, None, 2)
        top = law.weights.max(axis=1) > 1e-6
        loc, scale = law.loc[top][every], law.scale[top][every]
        places = np.concatenate([-_PLACES[:0:-1], _PLACES])[:, None, None]
        x = np.sort((loc + places * scale).reshape(-1, self.n_features), axis=0)
        x = x[:: max(1, len(x) // 130)]
        z = special.ndtri(np.clip(self.marginals().cdf(law.unit * x), 1e-16, 1 - 1e-16))
        return GaussianCopula(
            x=x, z=np.maximum.accumulate(z, axis=0), correlation=self.base.correlation
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """B regressions with p coefficients each, whose data reach r directions."""

    basis: FloatArray  # (B, p, r) right singular vectors of the weighted masks
    d: FloatArray  # (B, r) their squared singular values
    k: FloatArray  # (B, r) weighted scores in the left singular basis
    floor: FloatArray  # (B,) 2 b + the residual that no beta can reach
    df: FloatArray  # (B,) degrees of freedom

    @classmethod
    def join(cls, bases: Sequence[FloatArray], evidences: Sequence[Evidence]) -> Level:
        """Several regressions, each with its basis (p, r) and the evidence of its lambda."""
        return cls(
            basis=np.stack(bases),
            d=np.stack([each.d for each in evidences]),
            k=np.stack([each.k for each in evidences]),
            floor=np.array([each.floor for each in evidences]),
            df=np.array([each.df for each in evidences]),
        )

    def evidence(self, b: int) -> Evidence:
        """The evidence of lambda in one of the regressions."""
        return Evidence(d=self.d[b], k=self.k[b], floor=float(self.floor[b]), df=float(self.df[b]))

    def normal_equations(self) -> tuple[FloatArray, FloatArray]:
        """The weighted masks times themselves, (B, p, p), and times the scores, (B, p)."""
        turned = self.basis.transpose(0, 2, 1)
        gram = (self.basis * self.d[:, None]) @ turned
        return gram, ((self.k * np.sqrt(self.d))[:, None] @ turned)[:, 0]


Rescale = Callable[[FloatArray], Level]  # from log precisions (B, p) to the regressions there


def rescale_all(level: Level) -> Rescale:
    """The same regressions with other scales of the coefficients, by one eigendecomposition each.

    For regressions that reach every direction and are well conditioned: squaring costs no digit
    that matters, and the residual that no beta can reach does not depend on the scales.
    """
    gram, pull = level.normal_equations()

    def at(fitted: FloatArray) -> Level:
        if not fitted.any():
            return level
        scales = np.exp(-fitted / 2)
        d, basis = np.linalg.eigh(gram * scales[:, :, None] * scales[:, None])
        k = ((pull * scales)[:, None] @ basis)[:, 0] / np.sqrt(d)
        return replace(level, basis=basis, d=d, k=k)

    return at


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditionals:
    """Each coefficient given lambda, at the fitted precisions: all (B, L, p) or (B, L, 1)."""

    x: FloatArray  # log(lambda)
    chance: FloatArray  # its weight
    log_chance: FloatArray  # the log of it, plus df / 2 log(Q)
    b: FloatArray  # locations
    spread: FloatArray  # M_jj
    reach: FloatArray  # 1 - lambda M_jj
    flat: FloatArray  # b^2 / reach
    free: FloatArray  # Q with the coefficient's penalty at zero

    def release(
        self, penalty: FloatArray, df: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """With the penalty of one coefficient at other values, (B, L, F, p) or (B, L, F, 1).

        Returns `1 + (penalty - lambda) M_jj`, Q and the log of the evidence without the prior.
        """
        f = penalty * self.spread[:, :, None]
        f += self.reach[:, :, None]
        q = penalty * self.flat[:, :, None]
        q /= f
        q += self.free[:, :, None]
        log_evidence = np.log(q)
        log_evidence *= -0.5 * df[:, None, None, None]
        log_evidence -= 0.5 * np.log(f)
        log_evidence += self.log_chance[:, :, None]
        return f, q, log_evidence


def conditionals(level: Level, n: int, scale: float) -> Conditionals:
    """What `release` needs, at n values of log(lambda) that stand for its law.

    `1 - lambda M_jj` is summed by itself: where the data say little, the difference would keep no
    digits.
    """
    turned, null = level.basis.transpose(0, 2, 1), level.d.shape[1] < level.basis.shape[1]
    x, chances, q = few_lambdas(
        level.d, level.k, level.floor, level.df, n=n, scale=scale, null=null
    )
    d, lambdas = level.d[:, None], np.exp(x)[..., None]
    shrink, power = 1 / (d + lambdas), turned**2  # (B, L, r), (B, r, p)
    spread, reach = shrink @ power, (d * shrink) @ power
    if null:
        left = 1 - power.sum(axis=1, keepdims=True)
        spread += np.where(left > 1e-12, left, 0.0) / lambdas
    b = ((np.sqrt(level.d) * level.k)[:, None] * shrink) @ turned
    known = reach > _REACHED
    flat = np.where(known, b**2 / np.where(known, reach, 1.0), 0.0)
    q = q[..., None]
    return Conditionals(
        x=x[..., None],
        chance=chances[..., None],
        log_chance=np.log(np.maximum(chances, 1e-300))[..., None]
        + 0.5 * level.df[:, None, None] * np.log(q),
        b=b,
        spread=spread,
        reach=reach,
        flat=flat,
        free=np.maximum(q - lambdas * flat, np.minimum(level.floor[:, None, None], q)),  # Q(0)
    )


def fit_local(at: Rescale, units: FloatArray, p: int, *, scale: float) -> list[LocalMixture]:
    """Fit the features' precisions, and integrate each feature's own at the end.

    `units` says what one unit of beta is worth in the scores' own units, (B,); `scale` is that of
    the half-Cauchy prior of lambda^-1/2.

    A round moves the log precisions by 0.35 of the way to their posterior means, starting from the
    common lambda. The other features' precisions enter as fixed numbers: moved all the way, they
    would be treated as known, and the intervals would be too narrow. A feature that the data do
    not reach keeps its precision: nothing can be learnt about it.
    """
    fitted = target = np.zeros((len(units), p))
    for _ in range(_ROUNDS):
        level = at(fitted)
        found = conditionals(level, _count(p, _IN_ROUND), scale)
        target = _mean_log_precisions(found, fitted, level.df)
        fitted = np.clip(fitted + _STEP * (target - fitted), -20.0, 20.0)
    level = at(fitted)
    found = conditionals(level, _count(p, _AT_END), scale)
    log_lambda = (found.chance * found.x)[..., 0].sum(axis=1)
    centre = np.round(log_lambda[:, None] + target - fitted)
    weights, loc, spread = _marginals(found, fitted, centre, level.df)
    scales = np.exp(-fitted / 2)[:, None]
    loc, spread = loc * scales, spread * scales
    mean = units[:, None] * np.einsum("bfp,bfp->bp", weights, loc)
    return [
        LocalMixture(
            basis=level.basis[b],
            evidence=level.evidence(b),
            scale=scale,
            unit=float(unit),
            fitted=fitted[b],
            origin=np.zeros(p),
            log_lambda=float(log_lambda[b]),
            mean=mean[b],
            alone=StudentMixture(
                weights=weights[b],
                loc=loc[b],
                scale=spread[b],
                df=float(level.df[b]),
                unit=float(unit),
                # E(1 / lambda | Y) diverges for a feature that the only direction does not reach
                heavy=(np.sum(level.basis[b] ** 2, axis=1) < 1 - 1e-12) & (level.d.shape[1] < 2),
            ),
        )
        for b, unit in enumerate(units)
    ]


def most_together(p: int) -> int:
    """How many regressions with p features to fit at once."""
    return max(1, _BLOCK // (_count(p, _AT_END) * len(_FINE) * p))


def _count(p: int, bounds: tuple[int, int]) -> int:
    """How many values of lambda: few features leave its law wide."""
    return min(max(_WORK // p, bounds[0]), bounds[1])


def _mean_log_precisions(found: Conditionals, fitted: FloatArray, df: FloatArray) -> FloatArray:
    """E(log phi_j | Y) with each feature's precision released in turn, (B, p)."""
    logs = fitted[:, None] + _WIDE[:, None]  # (B, F, p)
    penalty = np.exp(found.x)[:, :, None] * np.exp(_WIDE)[:, None]  # (B, L, F, 1)
    weights = found.release(penalty, df)[2]
    weights += (0.5 * _WIDE[:, None] + log_local_precision(logs))[:, None]
    _normalise(weights)
    known = (found.reach > _REACHED).any(axis=1)
    return np.where(known, np.einsum("blfp,bfp->bp", weights, logs), fitted)


def _marginals(
    found: Conditionals, fitted: FloatArray, centre: FloatArray, df: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Weights, locations and scales of the t laws of each feature, all (B, F, p).

    The grid is one of the feature's penalty, the same for every lambda. At one penalty the other
    features' lambda matters little, and the t laws become one with their mean and variance.
    """
    logs = centre[:, None] + _FINE[:, None]  # log(lambda psi), (B, F, p)
    raised = np.exp(logs + fitted[:, None])
    f, q, weights = found.release(np.exp(logs)[:, None], df)
    # the prior of log(phi) = log(lambda psi) + fitted - log(lambda), and the change of variables
    weights += (logs + 0.5 * fitted[:, None])[:, None] - found.x[:, :, None]
    weights -= 1.5 * np.log1p(raised[:, None] * np.exp(-found.x)[:, :, None])
    _normalise(weights)
    total = weights.sum(axis=1)  # (B, F, p)
    weights /= np.maximum(total, 1e-300)[:, None]
    each = found.b[:, :, None] / f
    loc = np.einsum("blfp,blfp->bfp", weights, each)
    each -= loc[:, None]
    each **= 2
    each *= np.maximum(1 - 2 / df, 0.0)[:, None, None, None]  # of a variance that is the scale's
    q *= found.spread[:, :, None]
    q /= f
    each += q / df[:, None, None, None]
    scale = np.sqrt(np.einsum("blfp,blfp->bfp", weights, each))
    scale[total == 0] = 1.0  # of a law without weight
    unknown = ~(found.reach > _REACHED).any(axis=1)
    if unknown.any():  # the precision stays, and only lambda is open
        rows, columns = np.nonzero(unknown)
        total[rows, :, columns] = loc[rows, :, columns] = 0.0
        n = found.x.shape[1]
        total[rows, :n, columns] = found.chance[rows, :, 0]
        wide = found.free * found.spread / df[:, None, None]
        scale[rows, :n, columns] = np.sqrt(wide[rows, :, columns])
    return total, loc, scale


def _normalise(weights: FloatArray) -> None:
    """From logs to weights (B, L, F, p) that sum to one for each feature, in place."""
    weights -= weights.max(axis=(1, 2), keepdims=True)
    np.exp(weights, out=weights)
    weights /= weights.sum(axis=(1, 2), keepdims=True)
