"""How far scores move, how much of that a fit explains, and how well it predicts an answer.

An answer is predicted from the others, leave-one-out in closed form.

With h_ii the leverage of row i at lambda and e the weighted residuals, the residual of row i in the
fit without it is `e_i / (1 - h_ii)`. In the left singular basis U of the weighted masks

    e = (y - U U'y) + U diag(lam / (d + lam)) U'y,
    1 - h_ii = (1 - w_i / sum w - sum_j U_ij^2) + sum_j U_ij^2 lam / (d_j + lam),

the term `w_i / sum w` with a free intercept only. All parts of the second line are positive, so
that no digit is lost where the fit meets every score. O(N r) for each lambda.

A mask and its complement are left out together: their scores have the same even part, so the fit
with one of them predicts the other worse than a mask that was not asked. The two rows are replaced
by half their sum and half their difference, up to a factor, and the numbers above by 2 x 2 blocks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from eblime._types import BoolArray, FloatArray, IntArray
from eblime.core.mixture import Mixture

if TYPE_CHECKING:
    from eblime.core.pairs import Pairs

ROUNDING = 4 * float(np.finfo(float).eps)  # relative range at which scores count as equal
DECIDED = 0.1  # of a row: below this the row's own score decides its prediction
_GROUPS = 300  # of values of a fine grid of lambda, that stand for the grid
_MET = 1e-10  # share of a row that counts as met by the masks alone


def relative_range(low: float, high: float) -> float:
    """Range of scores from `low` to `high`, relative to the largest absolute score."""
    largest = max(abs(low), abs(high))
    return high / largest - low / largest if largest else 0.0


def is_constant(scores: FloatArray) -> bool:
    """Whether all scores are the same, up to rounding."""
    return relative_range(float(scores.min()), float(scores.max())) <= ROUNDING


def power_of_two(scores: FloatArray) -> float:
    """The power of two next to the largest absolute score, 1 if all are zero.

    Dividing by it costs no digit, and squares of the result neither overflow nor underflow.

    Examples
    --------
    >>> power_of_two(np.array([0.0, -3.0])), power_of_two(np.zeros(2))
    (4.0, 1.0)
    """
    largest = float(np.abs(scores).max(initial=0.0))
    return float(np.ldexp(1.0, int(np.frexp(largest)[1]))) if largest else 1.0


def score_range(scores: FloatArray, weights: FloatArray) -> tuple[float, float]:
    """Lowest and highest score among those that have weight."""
    counted = scores[weights > 0]
    return float(counted.min()), float(counted.max())


def weighted_r2(scores: FloatArray, weights: FloatArray, missed: FloatArray) -> float:
    """Weighted R^2 of a fit with the residuals `missed`, all (N,); 1 for constant scores.

    Examples
    --------
    >>> scores = np.array([0.0, 1.0, 2.0])
    >>> weighted_r2(scores, np.ones(3), np.array([0.0, 1.0, 0.0]))
    0.5
    """
    if is_constant(scores[weights > 0]):
        return 1.0
    unit = power_of_two(scores)
    scores, missed = scores / unit, missed / unit
    centre = float(weights @ scores / weights.sum())
    return 1 - float(weights @ missed**2) / float(weights @ (scores - centre) ** 2)


def held_out_r2(
    scores: FloatArray, weights: FloatArray, missed: FloatArray, pairs: Pairs | None = None
) -> float:
    """`1 - sum w_i missed_i^2 / sum w_i (y_i - ybar_(-i))^2`, each (n,), all weights positive.

    `missed` is `y_i - yhat_(-i)`, and `ybar_(-i)` the weighted mean of the other scores, so that a
    prediction by that mean has an R^2 of zero. `pairs` are left out together.
    """
    total = from_others(_centre(scores, weights), weights, pairs)
    top = float(np.abs(total).max())
    shares = weights / weights.max()
    return 1 - float(shares @ (missed / top) ** 2) / float(shares @ (total / top) ** 2)


def from_others(centred: FloatArray, weights: FloatArray, pairs: Pairs | None) -> FloatArray:
    """`y_i - ybar_(-i)`, (n,), from scores minus their weighted mean; pairs leave out both rows."""
    total = centred / share_of_others(weights)
    if pairs is not None and len(pairs.first) > 1:  # else nothing is left
        first, second = pairs.first, pairs.second
        rest = weights.sum() - weights[first] - weights[second]
        shift = (weights[first] * centred[first] + weights[second] * centred[second]) / rest
        total[first], total[second] = centred[first] + shift, centred[second] + shift
    return np.asarray(total)


def leave_one_out(
    masks: FloatArray,
    scores: FloatArray,
    weights: FloatArray,
    law: Mixture,
    *,
    flat: bool,
    pairs: Pairs | None = None,
    only: BoolArray | None = None,
) -> FloatArray:
    """`y_i - yhat_(-i)`, (n,): the posterior mean without row i, lambda integrated out.

    The law was fitted to the n rows, all with positive weights; the masks have a column for every
    row of its basis, and `flat` says whether a free intercept was integrated out. The rows of
    `pairs` are left out together. `only` says which rows to predict, (n,), both of a pair or none.
    The posterior of lambda is the one without row i, too: see `_chances`.
    """
    root, d = np.sqrt(weights), law.evidence.d
    y = root * (_centre(scores, weights) if flat else scores)
    left = root[:, None] * (_centre(masks, weights) if flat else masks)
    left = left @ (law.basis / np.sqrt(d))  # (n, r)
    k, full = left.T @ y, len(d) == len(root) - flat
    spare = share_of_others(weights) if flat else np.ones(len(root))
    mean = flat * root / np.sqrt(weights.sum())  # the column of the intercept
    first, second = np.empty((2, 0), np.intp)
    if pairs is not None and len(pairs.first) > 1:  # of one pair, nothing would be left
        first, second = pairs.first, pairs.second
    if only is not None:
        left, y, spare, mean, root = left[only], y[only], spare[only], mean[only], root[only]
        place = np.cumsum(only) - 1
        first, second = place[first[only[first]]], place[second[only[first]]]
    for values in (left, y, mean):
        _reflect(values, first, second)
    both = np.concatenate([first, second])
    spare[both] = 1 - mean[both] ** 2
    spare = spare - (left**2).sum(axis=1)
    met = (spare < _MET) | full
    spare, beyond = np.where(met, 0.0, spare), np.where(met, 0.0, y - left @ k)
    across = left[first] * left[second]
    shared = mean[first] * mean[second] + across.sum(axis=1)
    shared[met[first] | met[second]] = 0.0
    x, chances = np.log(law.lam.nodes), law.lam.weights
    if len(x) > _GROUPS:
        starts = np.searchsorted(np.cumsum(chances), np.arange(_GROUPS) / _GROUPS, side="right")
        starts = np.unique(starts)
        total = np.add.reduceat(chances, starts)
        x, chances = np.add.reduceat(chances * x, starts) / total, total
    shrink = 1 / (1 + d / np.exp(x)[:, None])
    free = spare[:, None] + left**2 @ shrink.T  # (n, L), 1 - h_ii
    error = beyond[:, None] + (left * k) @ shrink.T
    cross = across @ shrink.T - shared[:, None]
    missed, volume = without_each(error, free, cross, first, second)
    if len(x) > 1:
        fall, size = error * missed, np.ones(len(root))
        fall[both], size[both] = np.tile(fall[first] + fall[second], (2, 1)), 2
        chances = _chances(law, x, chances, fall, volume, size[:, None])
    _reflect(missed, first, second)
    return np.asarray((chances * missed).sum(axis=1) / root)


def hc_factors(free: FloatArray) -> FloatArray:
    """What corrects a residual for the share of it, `1 - free`, that its own score removed.

    One over the root (HC2), so that its square is not biased; one over the share (HC3) where the
    score nearly decides its own prediction.
    """
    return np.where(free < DECIDED, 1 / free, 1 / np.sqrt(free))


def without_each(
    error: FloatArray, free: FloatArray, cross: FloatArray, first: IntArray, second: IntArray
) -> tuple[FloatArray, FloatArray]:
    """`(I - B)^-1 e` of each row or pair, with B its block of leverages, and `|I - B|`.

    `free` is the diagonal of I - B for each row, `cross` the element beside it for each pair.
    """
    missed, volume = error / free, free.copy()
    a, b = free[first], free[second]
    volume[first] = volume[second] = det = np.maximum(a * b - cross**2, 1e-12 * a * b)
    missed[first] = (b * error[first] - cross * error[second]) / det
    missed[second] = (a * error[second] - cross * error[first]) / det
    return missed, volume


def _reflect(values: FloatArray, first: IntArray, second: IntArray) -> None:
    """Replace the rows of pairs by their sum and difference, over sqrt(2); twice is nothing."""
    one, two = values[first], values[second]
    values[first], values[second] = (one + two) / np.sqrt(2), (one - two) / np.sqrt(2)


def _chances(
    law: Mixture,
    x: FloatArray,
    chances: FloatArray,
    fall: FloatArray,
    volume: FloatArray,
    size: FloatArray,
) -> FloatArray:
    """Posterior of x = log(lambda) without some rows, (n, L), from the one with them, (L,).

    Without `size` rows, with residuals e and a block B of the leverages, `|M|` is multiplied by
    their weights and `|I - B|`, which is `volume`; Q falls by `e' (I - B)^-1 e`, which is `fall`,
    and there are `size` degrees of freedom less.
    """
    q, df = law.evidence.q(np.exp(x)), law.evidence.df
    share = np.minimum(fall / law.unit**2 / q, 1 - 1e-12)
    chance = np.log(np.maximum(chances, 1e-300)) + 0.5 * (size * np.log(q) - np.log(volume))
    return np.asarray(special.softmax(chance - 0.5 * (df - size) * np.log1p(-share), axis=1))


def _centre(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Rows minus their weighted mean; differences from the heaviest row come first."""
    shifted = values - values[np.argmax(weights)]
    return np.asarray(shifted - (weights / weights.sum()) @ shifted)


def share_of_others(weights: FloatArray) -> FloatArray:
    """`1 - w_i / sum w`, (n,): only at the heaviest row could the difference lose digits."""
    total, heaviest = weights.sum(), int(np.argmax(weights))
    others = total - weights
    others[heaviest] = np.delete(weights, heaviest).sum()
    return np.asarray(others / total)
