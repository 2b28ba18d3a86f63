"""How well a regression predicts an answer from the others: leave-one-out in closed form.

With h_ii the leverage of row i at lambda and e the weighted residuals, the residual of row i in the
fit without it is `e_i / (1 - h_ii)`. In the left singular basis U of the weighted masks

    e = (y - U U'y) + U diag(lam / (d + lam)) U'y,
    1 - h_ii = (1 - w_i / sum w - sum_j U_ij^2) + sum_j U_ij^2 lam / (d_j + lam),

the term `w_i / sum w` with a free intercept only. All parts of the second line are positive, so
that no digit is lost where the fit meets every score. O(N r) for each lambda.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from eblime._types import BoolArray, FloatArray
from eblime.core.lam import gauss_rule
from eblime.core.mixture import Mixture

__all__ = ["held_out_r2", "leave_one_out"]

_LAMBDAS = 30  # values that replace the law of lambda
_ROUNDING = 1e-10  # share of a row that counts as met by the masks alone


def held_out_r2(scores: FloatArray, weights: FloatArray, missed: FloatArray) -> float:
    """`1 - sum w_i missed_i^2 / sum w_i (y_i - ybar_(-i))^2`, each (n,), all weights positive.

    `missed` is `y_i - yhat_(-i)`, and `ybar_(-i)` the weighted mean of the other scores, so that a
    prediction by that mean has an R^2 of zero.
    """
    total = _centre(scores, weights) / _share_of_others(weights)
    top = float(np.abs(total).max())
    shares = weights / weights.max()
    return 1 - float(shares @ (missed / top) ** 2) / float(shares @ (total / top) ** 2)


def leave_one_out(
    masks: FloatArray,
    scores: FloatArray,
    weights: FloatArray,
    law: Mixture,
    *,
    flat: bool,
    only: BoolArray | None = None,
) -> FloatArray:
    """`y_i - yhat_(-i)`, (n,): the posterior mean without row i, lambda integrated out.

    Parameters
    ----------
    masks, scores, weights
        The n rows that the law was fitted to, all weights positive; the masks have a column for
        every row of the law's basis.
    law
        The law of the coefficients.
    flat
        Whether a free intercept was integrated out.
    only
        Which rows to predict, (n,); all of them if None.

    Notes
    -----
    The posterior of lambda is the one without row i, too: see `_chances`.
    """
    root, d = np.sqrt(weights), law.evidence.d
    y = root * (_centre(scores, weights) if flat else scores)
    rows = _centre(masks, weights) if flat else masks
    left = (root[:, None] * rows) @ (law.basis / np.sqrt(d))  # (n, r)
    k, full = left.T @ y, len(d) == len(root) - flat
    spare = _share_of_others(weights) if flat else np.ones(len(root))
    if only is not None:
        left, y, spare, root = left[only], y[only], spare[only], root[only]
    power = left**2
    spare = spare - power.sum(axis=1)
    met = (spare < _ROUNDING) | full
    spare, beyond = np.where(met, 0.0, spare), np.where(met, 0.0, y - left @ k)
    x, chances = gauss_rule(np.log(law.lam.nodes), law.lam.weights, _LAMBDAS)
    shrink = 1 / (1 + d / np.exp(x)[:, None])
    free = spare[:, None] + power @ shrink.T  # (n, L), 1 - h_ii
    missed = (beyond[:, None] + (left * k) @ shrink.T) / free
    if len(x) > 1:
        chances = _chances(law, x, chances, missed, free)
    return np.asarray((chances * missed).sum(axis=1) / root)


def _chances(
    law: Mixture, x: FloatArray, chances: FloatArray, missed: FloatArray, free: FloatArray
) -> FloatArray:
    """Posterior of x = log(lambda) without row i, (n, L), from the one with it, (L,).

    Without row i, `|M|` is multiplied by `w_i (1 - h_ii)`, Q falls by `e_i^2 / (1 - h_ii)` and
    there is one degree of freedom less.
    """
    q, df = law.evidence.q(np.exp(x)), law.evidence.df
    fall = np.minimum((missed / law.unit) ** 2 * free / q, 1 - 1e-12)
    logs = np.log(np.maximum(chances, 1e-300)) + 0.5 * np.log(q / free)
    return np.asarray(special.softmax(logs - 0.5 * (df - 1) * np.log1p(-fall), axis=1))


def _centre(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Rows minus their weighted mean; differences from the heaviest row come first."""
    shifted = values - values[np.argmax(weights)]
    return np.asarray(shifted - (weights / weights.sum()) @ shifted)


def _share_of_others(weights: FloatArray) -> FloatArray:
    """`1 - w_i / sum w`, (n,): only at the heaviest row could the difference lose digits."""
    total, heaviest = weights.sum(), int(np.argmax(weights))
    others = total - weights
    others[heaviest] = np.delete(weights, heaviest).sum()
    return np.asarray(others / total)
