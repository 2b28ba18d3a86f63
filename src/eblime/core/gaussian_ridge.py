"""Bayesian ridge regression with a normal prior of any mean: the formulas of BayLIME.

With `beta ~ N(mu, diag(1 / precision))` and noise of precision alpha at weight one, the posterior
is normal with

    covariance S = (diag(precision) + alpha X'WX)^-1,   mean S (precision mu + alpha X'Wy).

In the scaled importances `theta = sqrt(precision) (beta - mu)` the prior is N(0, 1 / scale) with
scale 1, and one eigendecomposition of the scaled masks serves every alpha.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eblime._types import FloatArray
from eblime.core.spectrum import Response, Spectrum

__all__ = ["Precisions", "fit_precisions", "normal_moments"]

_WEAK = 1e-6  # shape and rate of the gamma hyper-priors, as in the original
_STEPS = 10_000
_CLOSE = 1e-12  # relative change of the precisions at which the iteration ends


@dataclass(frozen=True, slots=True, kw_only=True)
class Precisions:
    """The precisions that a regression was fitted with."""

    noise: float  # alpha, at weight one
    prior: float  # lambda, a common factor of the precisions of the importances


def fit_precisions(spectrum: Spectrum, response: Response, *, prior: float | None) -> Precisions:
    """Precisions that maximise the evidence, by MacKay's fixed point; scores as they are.

    Parameters
    ----------
    spectrum, response
        The masks and the scores, `response.unit` of them being 1.
    prior
        The precision of the importances where it is known; None fits it too.

    Notes
    -----
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
    return Precisions(noise=alpha, prior=lam)


def normal_moments(
    spectrum: Spectrum, response: Response, precisions: Precisions
) -> tuple[FloatArray, FloatArray]:
    """Mean (p,) and covariance (p, p) of the scaled importances.

    The variance is summed from positive terms. As the prior's less what the answers take away, it
    would keep no digits where the prior is weak.
    """
    basis, d = spectrum.basis, spectrum.d
    alpha, lam = precisions.noise, precisions.prior
    mean = basis @ (alpha * np.sqrt(d) * response.k / (lam + alpha * d))
    cov = (basis / (lam + alpha * d)) @ basis.T
    if len(d) < len(basis):  # directions that the masks do not reach keep the prior
        cov += (np.eye(len(basis)) - basis @ basis.T) / lam
    return mean, cov
