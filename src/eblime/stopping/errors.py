"""Upper bounds of the probability that a statement about the importances is wrong.

Each is a sum of tails of the marginal laws of single importances, or of sums and differences of
two, so that a statement about all of them holds at once. Tails have closed forms, which resolve
probabilities that no number of draws can. They are those of a t law with the posterior's mean and
covariance, and with as many degrees of freedom as the answers leave.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from eblime._types import FloatArray, IntArray
from eblime.posterior import Posterior

__all__ = ["by_size", "degrees_of_freedom", "order_error", "sign_error", "spread_error"]


def by_size(posterior: Posterior, by: str = "abs") -> IntArray:
    """Features from most to least important, by the mean of `|beta|` ("abs") or beta ("value")."""
    return posterior.order() if by == "abs" else np.argsort(-posterior.mean, kind="stable")


def degrees_of_freedom(posterior: Posterior) -> float:
    """Effective number of answers beyond those that the importances and the intercept take."""
    return max(1.0, posterior.ess - posterior.n_features - 1)


def sign_error(posterior: Posterior, features: IntArray) -> float:
    """Bound of the probability that the sign of one of some features is wrong."""
    mean, sd = posterior.mean[features], posterior.sd[features]
    return float(_tails(np.abs(mean), sd, degrees_of_freedom(posterior)).sum())


def spread_error(posterior: Posterior, features: IntArray, distance: float) -> float:
    """Bound of the probability that one of some features is further than that from its mean."""
    sd = posterior.sd[features]
    sd = sd[sd > 0]  # without spread an importance is where its mean is
    return float(2 * _tails(np.full(len(sd), distance), sd, degrees_of_freedom(posterior)).sum())


def order_error(posterior: Posterior, larger: IntArray, smaller: IntArray, by: str) -> float:
    """Bound of the probability that one of some pairs is in the other order.

    Parameters
    ----------
    posterior
        Its means and covariances are used.
    larger, smaller
        Pairs of features, (m,) each.
    by
        "abs" compares absolute values, "value" the importances themselves.

    Notes
    -----
    With s the sign of the mean of a, `|a| < |b|` implies `s a < b` or `s a < -b`.
    """
    mean, cov, df = posterior.mean, posterior.cov, degrees_of_freedom(posterior)
    first, second = mean[larger], mean[smaller]
    signs = np.where(first < 0, -1.0, 1.0) if by == "abs" else np.ones(len(first))
    both = cov[larger, larger] + cov[smaller, smaller]
    shared = 2 * signs * cov[larger, smaller]
    error = _tails(signs * first - second, _root(both - shared), df).sum()
    if by == "abs":
        error += _tails(signs * first + second, _root(both + shared), df).sum()
    return float(error)


def _tails(distance: FloatArray, sd: FloatArray, df: float) -> FloatArray:
    """P(T > distance / sd) of t laws; one half for a distance of zero without any spread."""
    ratio = np.divide(distance, sd, out=np.where(distance > 0, np.inf, 0.0), where=sd > 0)
    return np.asarray(special.stdtr(df, -ratio))


def _root(variance: FloatArray) -> FloatArray:
    """Standard deviations; rounding errors below zero count as none."""
    return np.asarray(np.sqrt(np.maximum(variance, 0.0)))
