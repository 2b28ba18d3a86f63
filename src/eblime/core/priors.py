"""Priors of the ridge parameter."""

from __future__ import annotations

import numpy as np

from eblime._types import FloatArray

__all__ = ["log_half_cauchy"]


def log_half_cauchy(lambdas: FloatArray, *, scale: float = 1.0) -> FloatArray:
    """Log density of lambda when lambda^-1/2 is half-Cauchy with the given scale.

    Notes
    -----
    Equation (2d) after the change of variables, normalised: `s / (pi sqrt(lam) (1 + s^2 lam))`.
    Its tail is `lam^-3/2`, so that lambda has no mean, before the data or after.
    """
    return np.asarray(np.log(scale / np.pi) - 0.5 * np.log(lambdas) - np.log1p(scale**2 * lambdas))
