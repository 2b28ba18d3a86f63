"""A scale for each feature: `beta_j ~ N(0, sigma^2 / (lambda phi_j))`, one phi_j at a time.

Given the precisions of the other features, releasing feature j's own is closed form. With
`M = (Z'WZ + lambda I)^-1` and `b = M Z'WY` in units in which the fitted precisions are one,

    f = 1 + lambda (psi - 1) M_jj,   mean_j = b_j / f,   M_jj(psi) = M_jj / f,
    Q(psi) = Q + lambda (psi - 1) b_j^2 / f,
    log evidence(psi) - log evidence(1) = 1/2 log psi - 1/2 log f - df/2 log(Q(psi) / Q),

where `psi = phi_j / fitted phi_j`. So beta_j is a mixture of t laws over (lambda, phi_j).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eblime._types import FloatArray
from eblime.core.gauss import gauss_rule
from eblime.core.mixture import Mixture
from eblime.core.priors import log_local_precision

__all__ = ["ScaleMixture", "release"]

_LAMBDAS = 10  # nodes kept of the law of lambda
_STEPS = np.arange(-40.0, 41.0)  # log(psi); the integrands are analytic, so that a step of 1 does
_LOW, _HIGH = 1e-8, 1e-5  # masses of a node below which the ends of the grid are cut off


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleMixture:
    """Every feature's t laws over L values of lambda and F of its own log precision."""

    logs: FloatArray  # (F, p) log(phi)
    weights: FloatArray  # (L, F, p), sums to one for each feature
    loc: FloatArray  # (L, F, p) in units of the fitted scales
    scale: FloatArray  # (L, F, p)

    @property
    def mean_log(self) -> FloatArray:
        """E(log phi_j | Y), (p,)."""
        return np.asarray(np.sum(self.weights.sum(axis=0) * self.logs, axis=0))

    def trimmed(self) -> ScaleMixture:
        """The same law on the part of the grid that has mass, F as small as all features allow.

        Mass beyond the right end, a spike at zero, is counted at the last node.
        """
        mass = self.weights.sum(axis=0)
        n = len(mass)
        first = np.argmax(mass > _LOW, axis=0)
        last = n - 1 - np.argmax(mass[::-1] > _HIGH, axis=0)
        length = int(np.max(last - first)) + 1
        first = np.minimum(first, n - length)
        rows = first + np.arange(length)[:, None]
        cut = [
            np.take_along_axis(values, rows[None], axis=1)
            for values in (self.weights, self.loc, self.scale)
        ]
        beyond = np.arange(n)[:, None] > rows[-1]
        cut[0][:, -1] += np.sum(self.weights * beyond, axis=1)
        return ScaleMixture(
            logs=np.take_along_axis(self.logs, rows, axis=0),
            weights=cut[0] / cut[0].sum(axis=(0, 1)),
            loc=cut[1],
            scale=cut[2],
        )


def release(base: Mixture, fitted: FloatArray) -> ScaleMixture:
    """Release each feature's precision in turn, the others staying as fitted.

    Parameters
    ----------
    base
        The law of `beta_j exp(fitted_j / 2)` with every precision at its fitted value.
    fitted
        Log precisions, shape (p,).

    Notes
    -----
    A feature that the data do not reach keeps its precision: nothing can be learnt about it.
    """
    x, chances = gauss_rule(np.log(base.lam.nodes), base.lam.weights, _LAMBDAS)
    lambdas = np.exp(x)[:, None]
    reach, spread, b = _conditionals(base, lambdas)
    q = base.evidence.q(lambdas[:, 0])[:, None]
    known = reach > 1e-12
    flat = np.where(known, b**2 / np.where(known, reach, 1.0), 0.0)
    free = np.maximum(q - lambdas * flat, min(base.evidence.floor, float(q.min())))  # Q(0)
    penalty = lambdas[:, None] * np.exp(_STEPS)[:, None]  # (L, F, 1)
    f = reach[:, None] + penalty * spread[:, None]
    q_psi = free[:, None] + penalty * flat[:, None] / f
    logs = fitted + _STEPS[:, None]
    log_weights = (
        np.log(np.maximum(chances, 1e-300))[:, None, None]
        + (0.5 * _STEPS[:, None] + log_local_precision(logs))
        - 0.5 * np.log(f)
        - 0.5 * base.evidence.df * np.log(q_psi / q[:, None])
    )
    stay = ~known.any(axis=0) & (_STEPS[:, None] != 0)
    log_weights = np.where(stay, -np.inf, log_weights)
    weights = np.exp(log_weights - log_weights.max(axis=(0, 1)))
    return ScaleMixture(
        logs=logs,
        weights=weights / weights.sum(axis=(0, 1)),
        loc=b[:, None] / f,
        scale=np.sqrt(q_psi / base.evidence.df * spread[:, None] / f),
    )


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
