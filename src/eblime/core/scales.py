"""A scale for each feature: `beta_j ~ N(0, sigma^2 / (lambda phi_j))`, one phi_j at a time.

Given the precisions of the other features, releasing feature j's own is closed form. With
`M = (Z'WZ + lambda I)^-1` and `b = M Z'WY` in units in which the fitted precisions are one,

    f = 1 + lambda (psi - 1) M_jj,   mean_j = b_j / f,   M_jj(psi) = M_jj / f,
    Q(psi) = Q + lambda (psi - 1) b_j^2 / f,
    log evidence(psi) - log evidence(1) = 1/2 log psi - 1/2 log f - df/2 log(Q(psi) / Q),

where `psi = phi_j / fitted phi_j`. So beta_j is a mixture of t laws over (lambda, phi_j).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from eblime._types import BoolArray, FloatArray
from eblime.core.gauss import gauss_rule
from eblime.core.mixture import Mixture
from eblime.core.priors import log_local_precision

__all__ = ["Released", "release"]

_STEPS = np.arange(-32.0, 25.0)  # log(psi); the integrands are analytic, so that a step of 1 does
_LOW, _HIGH = 1e-8, 1e-5  # masses of a node below which the ends of the grid are cut off


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """Weights of L values of lambda and F values of the log precision, for each feature."""

    logs: FloatArray  # (F, p) log(phi)
    weights: FloatArray  # (L, F, p), sums to one for each feature
    penalty: FloatArray  # (L, F, p) lambda psi
    df: float
    b: FloatArray  # (L, p) locations at the fitted precisions
    spread: FloatArray  # (L, p) M_jj
    reach: FloatArray  # (L, p) 1 - lambda M_jj
    flat: FloatArray  # (L, p) b^2 / reach
    free: FloatArray  # (L, p) Q(0)

    @property
    def mean_log(self) -> FloatArray:
        """E(log phi_j | Y), (p,)."""
        return np.asarray(np.sum(self.weights.sum(axis=0) * self.logs, axis=0))

    def laws(self) -> tuple[FloatArray, FloatArray]:
        """Locations and scales of the t laws, each (L, F, p), in units of the fitted scales."""
        f = self.reach[:, None] + self.penalty * self.spread[:, None]
        q = self.free[:, None] + self.penalty * self.flat[:, None] / f
        return self.b[:, None] / f, np.sqrt(q / self.df * self.spread[:, None] / f)

    def trimmed(self) -> Released:
        """The same on the part of the grid that has mass, F as small as all features allow.

        Mass beyond the right end, a spike at zero, is counted at the last node.
        """
        mass = self.weights.sum(axis=0)
        n = len(mass)
        first = np.argmax(mass > _LOW, axis=0)
        last = n - 1 - np.argmax(mass[::-1] > _HIGH, axis=0)
        length = int(np.max(last - first)) + 1
        rows = np.minimum(first, n - length) + np.arange(length)[:, None]
        weights = np.take_along_axis(self.weights, rows[None], axis=1)
        beyond = np.arange(n)[:, None] > rows[-1]
        weights[:, -1] += np.einsum("lfp,fp->lp", self.weights, beyond)
        return replace(
            self,
            logs=np.take_along_axis(self.logs, rows, axis=0),
            weights=weights / weights.sum(axis=(0, 1)),
            penalty=self.penalty[:, rows, 0],
        )


def release(base: Mixture, fitted: FloatArray, *, n_lambdas: int) -> Released:
    """Release each feature's precision in turn, the others staying as fitted.

    Parameters
    ----------
    base
        The law of `beta_j exp(fitted_j / 2)` with every precision at its fitted value.
    fitted
        Log precisions, shape (p,).
    n_lambdas
        How many values stand for the law of lambda.

    Notes
    -----
    A feature that the data do not reach keeps its precision: nothing can be learnt about it.
    """
    x, chances = gauss_rule(np.log(base.lam.nodes), base.lam.weights, n_lambdas)
    lambdas, df = np.exp(x)[:, None], base.evidence.df
    reach, spread, b = _conditionals(base, lambdas)
    q = base.evidence.q(lambdas[:, 0])[:, None]
    known = reach > 1e-12
    flat = np.where(known, b**2 / np.where(known, reach, 1.0), 0.0)
    free = np.maximum(q - lambdas * flat, np.minimum(base.evidence.floor, q))  # Q(0)
    penalty = lambdas[:, None] * np.exp(_STEPS)[:, None]  # (L, F, 1)
    f = reach[:, None] + penalty * spread[:, None]
    log_weights = np.log(free[:, None] + penalty * flat[:, None] / f)
    log_weights *= -0.5 * df
    log_weights -= 0.5 * np.log(f)
    log_weights += (np.log(np.maximum(chances, 1e-300)) + 0.5 * df * np.log(q[:, 0]))[:, None, None]
    return Released(
        logs=fitted + _STEPS[:, None],
        weights=_normalised(log_weights, fitted, known),
        penalty=penalty,
        df=df,
        b=b,
        spread=spread,
        reach=reach,
        flat=flat,
        free=free,
    )


def _normalised(log_weights: FloatArray, fitted: FloatArray, known: BoolArray) -> FloatArray:
    """Weights of the nodes, (L, F, p), from the evidence without the prior of psi; in place."""
    log_weights += 0.5 * _STEPS[:, None] + log_local_precision(fitted + _STEPS[:, None])
    unknown = ~known.any(axis=0)
    if unknown.any():
        log_weights[:, (_STEPS != 0)[:, None] & unknown] = -np.inf
    log_weights -= log_weights.max(axis=(0, 1))
    weights = np.exp(log_weights, out=log_weights)
    weights /= weights.sum(axis=(0, 1))
    return weights


def _conditionals(base: Mixture, lambdas: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """`1 - lambda M_jj`, `M_jj` and `b_j` at every lambda, each (L, p).

    The first is summed by itself: where the data say little, the difference would keep no digits.
    """
    d, rows = base.evidence.d, base.basis
    power, shrink = (rows**2).T, 1 / (d + lambdas)
    left = np.maximum(1 - power.sum(axis=0), 0.0)
    spread = shrink @ power + np.where(left > 1e-12, left, 0.0) / lambdas
    b = (np.sqrt(d) * base.evidence.k * shrink) @ rows.T
    return (d * shrink) @ power, spread, b
