"""BayLIME: Bayesian ridge regression with informative priors, one for each feature.

With `beta ~ N(mu, diag(1 / precision))` and noise of precision alpha at weight one, the posterior
is normal with

    covariance S = (diag(precision) + alpha X'WX)^-1,   mean S (precision mu + alpha X'Wy).

In the scaled importances `theta = sqrt(precision) (beta - mu)` the prior is N(0, 1 / scale) with
scale 1, and one eigendecomposition of the scaled masks serves every alpha.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import InitVar, dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from eblime._checks import as_floats, check_number
from eblime._types import FloatArray
from eblime.answers import Answers
from eblime.core.fit_quality import is_constant, leave_one_out, power_of_two
from eblime.core.laws import PointValue, normal_law
from eblime.core.pairs import find_pairs
from eblime.core.spectrum import Response, Spectrum, decompose, respond
from eblime.methods.common import LINEAR_FIT, held_out, regress, with_population
from eblime.posterior import Posterior
from eblime.protocols import ScalarLaw

Numbers = float | Sequence[float]
_WEAK = 1e-6  # shape and rate of the gamma hyper-priors, as in the original
_STEPS = 10_000
_CLOSE = 1e-12  # relative change of the precisions at which the iteration ends


@dataclass(frozen=True, slots=True, kw_only=True)
class BayLIME:
    """Bayesian ridge regression with a normal prior for each feature (Zhao et al., 2021).

    Without settings the prior mean is zero, and both precisions are fitted to the answers (evidence
    maximisation). With a prior of the importances the precision of the noise is fitted alone, and
    with `noise_precision` nothing.

    Parameters
    ----------
    prior_mean
        Prior mean of each importance, in units of the score: a number for all features, or one for
        each.
    prior_precision
        Prior precision, 1 / variance, of each importance: a number or one for each feature.
    noise_precision
        1 / sigma^2: the precision of a score whose mask has weight one.
    prior
        An explanation or a posterior of the same features instead of `prior_mean`: its means, and
        its `1 / sd^2` where `prior_precision` is not given. Correlations are left out. The method
        keeps the numbers only.

    Notes
    -----
    The law of the importances is normal, with the precisions plugged in: it does not include the
    uncertainty about them, as EBLIME's does.

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> masks = np.array([[1, 1], [1, 0], [0, 1], [0, 0]])
    >>> scores = np.array([1.1, 2.0, -0.9, 0.1])
    >>> eblime.fit(masks, scores, method="baylime").mean.round(2)
    array([ 1.95, -0.95])
    >>> sure = eblime.BayLIME(prior_mean=[0.0, -1.0], prior_precision=[1e-3, 1e6])
    >>> sure.name, eblime.fit(masks, scores, method=sure).mean.round(2)
    ('BayLIME (partial prior)', array([ 1.95, -1.  ]))
    """

    prior_mean: Numbers = 0.0
    prior_precision: Numbers | None = None
    noise_precision: float | None = None
    prior: InitVar[object] = None

    def __post_init__(self, prior: object) -> None:
        """Read the prior, and refuse settings that contradict each other."""
        if prior is not None:
            self._read(prior)
        object.__setattr__(self, "prior_mean", _numbers("prior_mean", self.prior_mean))
        if self.prior_precision is not None:
            precision = _numbers("prior_precision", self.prior_precision)
            if not (np.asarray(precision) > 0).all():
                raise ValueError(f"`prior_precision` must be > 0; got {precision!r:.80}.")
            object.__setattr__(self, "prior_precision", precision)
        elif self.noise_precision is not None or np.any(np.asarray(self.prior_mean) != 0):
            raise ValueError(
                "`prior_mean` and `noise_precision` need `prior_precision`: how certain the prior "
                "is; got None."
            )
        if self.noise_precision is not None:
            check_number("noise_precision", self.noise_precision)

    @property
    def name(self) -> str:
        """The method's name in tables and reports."""
        if self.prior_precision is None:
            return "BayLIME"
        return f"BayLIME ({'partial' if self.noise_precision is None else 'full'} prior)"

    def fit(self, rng: np.random.Generator, answers: Answers) -> Posterior:
        """Fit one target."""
        p, given = answers.n_features, self.prior_precision is not None
        unit = power_of_two(answers.scores)
        unit = unit if unit < 1e-100 else 1.0  # smaller ones have no squares
        scaled = replace(answers, scores=answers.scores / unit)
        centre = _for_features("prior_mean", self.prior_mean, p) / unit
        scales = np.ones(p)
        if given:
            precision = _for_features("prior_precision", self.prior_precision, p)
            scales = 1 / np.sqrt(precision) / unit
        mean, cov, (alpha, lam) = self._moments(scaled, centre, scales, unit)
        if not given and is_constant(answers.scores[answers.weights > 0]):  # nothing to explain
            mean, cov = np.zeros(p), np.zeros((p, p))
        extras: dict[str, ScalarLaw] = {"sigma2": PointValue(value=unit**2 / alpha)}
        if not given:
            extras["lam"] = PointValue(value=lam / alpha)
        law = normal_law(centre + scales * mean, cov * np.outer(scales, scales))
        posterior = Posterior.from_law(
            replace(law, unit=unit),
            answers,
            method=self.name,
            estimand=f"{LINEAR_FIT}free intercept",
            extras=extras,
        )
        errors = partial(_errors, centre, scales, lam / alpha)
        [problem] = regress([answers], flat=True)
        return with_population(replace(posterior, held_out=held_out(scaled, errors)), problem)

    def _moments(
        self, answers: Answers, centre: FloatArray, scales: FloatArray, unit: float
    ) -> tuple[FloatArray, FloatArray, tuple[float, float]]:
        """Mean and covariance of the scaled importances, and the precisions behind them.

        The scores are in units of `unit`. The variance is summed from positive terms: as the
        prior's less what the answers take away, it would keep no digits where the prior is weak.
        """
        spectrum = decompose(answers.masks * scales, answers.weights, flat=True)
        response = respond(spectrum, answers.scores - answers.masks @ centre, standardize=False)
        if self.noise_precision is not None:
            alpha, lam = float(self.noise_precision) * unit**2, 1.0
        else:
            known = 1.0 if self.prior_precision is not None else None
            alpha, lam = fit_precisions(spectrum, response, prior=known)
        basis, d = spectrum.basis, spectrum.d
        mean = basis @ (alpha * np.sqrt(d) * response.k / (lam + alpha * d))
        cov = (basis / (lam + alpha * d)) @ basis.T
        if len(d) < len(basis):  # directions that the masks do not reach keep the prior
            cov += (np.eye(len(basis)) - basis @ basis.T) / lam
        return mean, cov, (alpha, lam)

    def _read(self, prior: object) -> None:
        """Take the numbers of an explanation or a posterior."""
        if self.prior_mean != 0.0:
            raise ValueError("`prior` and `prior_mean` must not both be given.")
        posterior = getattr(prior, "posterior", prior)
        if not isinstance(posterior, Posterior):
            raise TypeError(
                f"`prior` must be an explanation or a posterior; got a {type(prior).__name__}."
            )
        object.__setattr__(self, "prior_mean", tuple(map(float, posterior.mean)))
        if self.prior_precision is not None:
            return
        if not posterior.has_spread:
            raise ValueError(
                f"`prior` by {posterior.method} is a point estimate; give `prior_precision` too."
            )
        if not (posterior.sd > 0).all():
            raise ValueError("`prior` must have a spread in every feature to be a prior law.")
        object.__setattr__(self, "prior_precision", tuple(map(float, posterior.sd**-2)))


def _errors(centre: FloatArray, scales: FloatArray, lam: float, answers: Answers) -> FloatArray:
    """Each answer predicted by the fit to all others, at the fitted precisions."""
    masks, left = answers.masks * scales, answers.scores - answers.masks @ centre
    [problem] = regress([replace(answers, masks=masks, scores=left)], flat=True)
    pairs = find_pairs(answers.masks)
    return leave_one_out(masks, left, answers.weights, problem.fixed(lam), flat=True, pairs=pairs)


def _numbers(name: str, value: Any) -> float | tuple[float, ...]:
    """A number or a tuple of numbers, all finite."""
    array = as_floats(name, value)
    if array.ndim > 1 or array.size == 0 or not np.isfinite(array).all():
        raise ValueError(f"`{name}` must be a finite number or one per feature; got {value!r:.80}.")
    return float(array) if array.ndim == 0 else tuple(array.tolist())


def _for_features(name: str, value: object, p: int) -> FloatArray:
    """One number for each feature, (p,)."""
    array = np.asarray(value, dtype=np.float64)
    if array.ndim and len(array) != p:
        raise ValueError(f"`{name}` must be a number or one per feature; got {len(array)} for {p}.")
    return np.full(p, float(array)) if array.ndim == 0 else array


def fit_precisions(
    spectrum: Spectrum, response: Response, *, prior: float | None
) -> tuple[float, float]:
    """Precisions of the noise and of the importances that maximise the evidence (MacKay).

    The unit of the scores must be 1. `prior` is the precision of the importances where it is known.

    `gamma = sum alpha d / (lambda + alpha d)`, `alpha = (N - gamma + 2e-6) / (RSS + 2e-6 v)`,
    `lambda = (gamma + 2e-6) / (|beta|^2 + 2e-6 v)`, where v is the variance of the scores: the
    weak hyper-priors of the original, in units that do not depend on those of the scores.
    """
    d, k, n = spectrum.d, response.k, len(spectrum.root)
    spread = float(response.y @ response.y) / float(spectrum.root @ spectrum.root)
    rate = 2 * _WEAK * (spread or 1.0)
    alpha, lam = 1 / (spread or 1.0), 1.0 if prior is None else prior
    for _ in range(_STEPS):
        shrunk = lam / (lam + alpha * d)
        gamma = float(np.sum(1 - shrunk))
        missed = response.residual + float(np.sum((shrunk * k) ** 2))
        size = float(np.sum((1 - shrunk) ** 2 * k**2 / d))
        before = alpha, lam
        alpha = (n - gamma + 2 * _WEAK) / (missed + rate)
        if prior is None:
            lam = (gamma + 2 * _WEAK) / (size + rate)
        if np.allclose((alpha, lam), before, rtol=_CLOSE, atol=0.0):
            break
    return alpha, lam
