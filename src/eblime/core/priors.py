"""Priors of the ridge parameter and of the features' own scales."""

from __future__ import annotations

import numpy as np

from eblime._types import FloatArray

__all__ = ["log_half_cauchy", "log_local_precision"]


def log_half_cauchy(lambdas: FloatArray, *, scale: float = 1.0) -> FloatArray:
    """Log density of lambda when lambda^-1/2 is half-Cauchy with the given scale.

    Notes
    -----
    Equation (2d) after the change of variables, normalised: `s / (pi sqrt(lam) (1 + s^2 lam))`.
    Its tail is `lam^-3/2`, so that lambda has no mean, before the data or after.
    """
    return np.asarray(np.log(scale / np.pi) - 0.5 * np.log(lambdas) - np.log1p(scale**2 * lambdas))


def log_local_precision(x: FloatArray) -> FloatArray:
    """Log density of `x = log(phi)`, the log of a feature's own precision factor.

    Notes
    -----
    The feature's scale `tau = phi^-1/2` has density `tau (1 + tau^2)^-3/2`, so that
    `P(tau <= t) = 1 - (1 + t^2)^-1/2`. Its tail is that of a half-Cauchy, which lets a large
    importance escape the common shrinkage. It vanishes at zero, where the half-Cauchy of the
    horseshoe does not: the prior of beta then is bounded at zero (Strawderman and Berger).
    """
    return np.asarray(0.5 * x - 1.5 * np.logaddexp(0.0, x) - np.log(2.0))
