"""The size of an importance over many inputs, without the noise of each estimate.

The average of |estimate| is too large, because noise has a size too. Here the distribution of the
true importances over the inputs is fitted instead: a mixture whose components lie on a grid, with
the estimates' own standard errors. Draws of the mixture's shares give draws of what is wanted.

Estimates alone cannot tell importances of zero from importances far below their standard errors.
So there are two fits: one in which some importances may be exactly zero, one in which none is. The
interval covers both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special, stats

from eblime._types import BoolArray, FloatArray, IntArray
from eblime.core.pairs import find_pairs

_DRAWS, _ROUNDS = 400, 60  # rounds of expectation and maximisation
_NARROW = 0.5  # distance of the components near zero, in standard errors
_GROWTH = 0.15  # and away from zero, relative to their position
_OVERLAP = 0.6  # standard deviation of a component, in distances
_SPARSE, _DENSE = 1.0, 5.0  # prior number of inputs in all components together
_TINY = 1e-6  # least standard error, relative to the largest estimate
_LEAST = np.float32(1e-30)  # density of a cell
_SE_STEP = 1.25  # ratio of two standard errors that are not in the same cell
_CELL, _FAR = 0.25, 4.0  # width of a cell and where it begins to grow, in standard errors
_CELL_GROWTH = 1.08  # ratio of the ends of a cell beyond
_BLOCK = 1 << 17  # numbers held at once


@dataclass(frozen=True, slots=True, kw_only=True)
class Overall:
    """An importance over a set of inputs: draws from both fits, and its plain mean."""

    size: FloatArray  # (2, D) mean of |importance|
    positive: FloatArray  # (2, D) share of inputs whose importance is above zero
    negative: FloatArray  # (2, D) below zero
    mean: float  # mean importance
    mean_se: float  # its standard error
    p_value: float  # of the hypothesis that all importances are zero
    n: int  # number of inputs

    def size_interval(self, prob: float) -> tuple[float, float]:
        """Interval of the mean |importance|; from zero if no importance need differ from it.

        The mean |importance| is at least |mean importance|, so its interval does not begin below
        that of the mean.
        """
        low, high = overall_interval(self.size, prob)
        if self.p_value > (1 - prob) / 2:
            return 0.0, high
        least = abs(self.mean) - float(special.ndtri((1 + prob) / 2)) * self.mean_se
        return max(low, least, 0.0), max(high, least)


def overall_interval(draws: FloatArray, prob: float) -> tuple[float, float]:
    """The smallest interval that contains the equal-tailed intervals of all rows of draws."""
    ends = np.quantile(draws, [(1 - prob) / 2, (1 + prob) / 2], axis=1)
    return float(ends[0].min()), float(ends[1].max())


def fit_overall(
    rng: np.random.Generator, estimate: FloatArray, se: FloatArray, weight: FloatArray
) -> Overall:
    """Fit the distribution of an importance over inputs.

    Its arguments are unbiased estimates of the importances, their standard errors, and which part
    each is of its input, (n,) each: 1, or 1/m for m importances of one input. Their errors may be
    the same, so m importances of an input are as uncertain together as one of them.
    """
    n, known = weight.sum(), _with_least_error(estimate, se, weight)
    scale = known[2].sum() / n * (estimate.any() or se.any())
    size, positive, negative = scale * _draws(rng, _cells(*known))
    return Overall(
        size=np.maximum(size, 0.0),
        positive=np.clip(positive, 0.0, 1.0),
        negative=np.clip(negative, 0.0, 1.0),
        mean=float(weight @ estimate / n),
        mean_se=float(np.sqrt(weight @ se**2) / n),
        p_value=_p_value(*known),
        n=round(n),
    )


def _with_least_error(
    estimate: FloatArray, se: FloatArray, weight: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The sample with errors above zero, without importances that are known to be zero."""
    size = np.abs(estimate) + se
    some = size > _TINY * size.max() if size.any() else np.ones(len(se), dtype=bool)
    return estimate[some], np.maximum(se[some], _TINY * (size.max() or 1.0)), weight[some]


def _p_value(estimate: FloatArray, se: FloatArray, weight: FloatArray) -> float:
    """Of the hypothesis that all importances are zero.

    Two tests are combined by Bonferroni's inequality: the sum of squares, which sees large
    importances of both signs, and the mean, which sees small ones of the same sign.
    """
    squares = float(special.chdtrc(weight.sum(), weight @ (estimate / se) ** 2))
    mean = 2 * float(special.ndtr(-abs(weight @ estimate) / np.sqrt(weight @ se**2)))
    return min(1.0, 2 * min(squares, mean))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cells:
    """Inputs with nearly the same estimate and standard error, taken together."""

    estimate: FloatArray  # (G,) means
    se: FloatArray  # (G,)
    weight: FloatArray  # (G,) sums of the inputs' weights
    centre: FloatArray  # (K,) of the components: zero itself, then normals on a grid
    width: FloatArray  # (K,)


def _cells(estimate: FloatArray, se: FloatArray, weight: FloatArray) -> _Cells:
    """Group inputs that differ by less than their standard errors."""
    kind = np.floor(np.log(se) / np.log(_SE_STEP))
    size = np.abs(estimate) / _SE_STEP**kind
    far = np.log(np.maximum(size, _FAR) / _FAR) / np.log(_CELL_GROWTH)
    place = np.floor(np.where(size > _FAR, _FAR / _CELL + far, size / _CELL))
    cells = np.stack([kind, np.where(estimate < 0, -1 - place, place)], axis=1)
    cell = np.unique(cells, axis=0, return_inverse=True)[1].ravel()
    total = np.bincount(cell, weight)
    top, narrow = float((np.abs(estimate) + 2 * se).max()), _NARROW * float(np.quantile(se, 0.1))
    centre, width = component_grid(narrow, _GROWTH, top)
    return _Cells(
        estimate=np.bincount(cell, weight * estimate) / total,
        se=np.sqrt(np.bincount(cell, weight * se**2) / total),
        weight=np.asarray(total, dtype=float),
        centre=np.append(0.0, centre),
        width=np.append(0.0, width),
    )


def component_grid(narrow: float, growth: float, top: float) -> tuple[FloatArray, FloatArray]:
    """Centres and widths of normal laws, symmetric about zero and wider far from it, up to `top`.

    They are `narrow` apart near zero, and by `growth` of their position far from it.
    """
    centres, steps = [0.0], [narrow]
    while centres[-1] < top:
        steps.append(max(narrow, growth * centres[-1]))
        centres.append(centres[-1] + steps[-1])
    centre, width = np.array(centres), _OVERLAP * np.array(steps)
    return np.concatenate([-centre[:0:-1], centre]), np.concatenate([width[:0:-1], width])


def _components(cells: _Cells) -> FloatArray:
    """Likelihood, E|beta|, E(beta^2), P(beta > 0) and P(beta < 0), (5, K, G)."""
    b, s, centre, width = cells.estimate, cells.se, cells.centre[:, None], cells.width[:, None]
    total = s**2 + width**2
    log_likelihood = -((b - centre) ** 2) / (2 * total) - np.log(total) / 2
    shrunk = width**2 / total
    mean, sd = centre + shrunk * (b - centre), np.sqrt(shrunk) * s
    size, variance = absolute_moments(mean, sd)
    positive = special.ndtr(np.divide(mean, sd, out=np.zeros_like(mean), where=sd > 0))
    negative = 1 - positive
    positive[0] = negative[0] = 0.0
    likelihood = np.exp(log_likelihood - log_likelihood.max(axis=0))
    return np.stack([likelihood, size, variance + size**2, positive, negative])


def _draws(rng: np.random.Generator, cells: _Cells) -> FloatArray:
    """Draws of mean |beta| and of the shares of both signs over the inputs, (3, 2, D).

    In the first of two fits importances may be exactly zero, in the second they are not. Given the
    shares of the components the inputs are independent, so that a mean over many of them is normal.
    """
    likelihood, *values = _components(cells).astype(np.float32)
    prior = np.tile(np.array([[_SPARSE], [_DENSE]]) / (cells.centre.size - 1), cells.centre.size)
    prior[:, 0] = 1.0, 0.0
    both = np.stack([likelihood, likelihood])
    both[1, 0] = 0.0
    shares = _sample_shares(rng, both, prior, cells.weight)  # (2, D, K)
    total = np.maximum(shares @ both, _LEAST)
    size, second, positive, negative = (shares @ (both * each) / total for each in values)
    means = np.stack([size, positive, negative])  # (3, 2, D, G)
    variances = np.maximum(np.stack([second, positive, negative]) - means**2, 0.0)
    weight = cells.weight
    drawn = means @ weight
    drawn += np.sqrt(variances @ weight) * rng.standard_normal(drawn.shape)
    return np.asarray(drawn / weight.sum())


def _sample_shares(
    rng: np.random.Generator, likelihood: FloatArray, prior: FloatArray, weight: FloatArray
) -> FloatArray:
    """Draws of the shares of the components, (2, D, K), by the weighted likelihood bootstrap.

    Each draw weighs the inputs and the prior at random (Newton and Raftery, 1994) and maximises the
    posterior by expectation and maximisation. If components overlap, a Gibbs sampler that draws
    which input belongs to which would take thousands of sweeps to exchange their shares.
    """
    drawn = rng.gamma(prior[:, None], size=(2, _DRAWS, prior.shape[1])).astype(np.float32)
    weights = rng.gamma(weight, size=(2, _DRAWS, len(weight))).astype(np.float32)
    back = likelihood.transpose(0, 2, 1)
    share: FloatArray = np.repeat(prior[:, None], _DRAWS, axis=1).astype(np.float32)
    for _ in range(_ROUNDS):
        ratio = weights / np.maximum(share @ likelihood, _LEAST)
        share = share * (ratio @ back) + drawn
        share /= share.sum(axis=2, keepdims=True)
    return share


def absolute_moments(mean: FloatArray, sd: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of |x| for a normal x."""
    ratio = np.divide(mean, sd, out=np.full_like(mean, np.inf), where=sd > 0)
    bulk = np.where(sd > 0, np.sqrt(2 / np.pi) * sd * np.exp(-np.minimum(ratio**2, 1e3) / 2), 0.0)
    size = bulk + np.abs(mean) * special.erf(np.abs(ratio) / np.sqrt(2))
    return size, np.maximum(mean**2 + sd**2 - size**2, 0.0)


def ranks(importances: FloatArray) -> IntArray:
    """The place of each feature by absolute size, 1 for the largest; ties in order, (p,).

    Examples
    --------
    >>> ranks(np.array([0.1, -0.7, 0.3]))
    array([3, 1, 2])
    """
    order = np.argsort(-np.abs(importances), kind="stable")
    found = np.empty(len(order), dtype=np.intp)
    found[order] = np.arange(1, len(order) + 1)
    return found


def top_features(importances: FloatArray, k: int) -> BoolArray:
    """Whether each feature is among the k largest by absolute size, (p,)."""
    return np.asarray(ranks(importances) <= k)


def top_jaccard(first: FloatArray, second: FloatArray, k: int) -> float:
    """The Jaccard index of the k largest features: shared ones over all that either has.

    Examples
    --------
    >>> top_jaccard(np.array([3.0, 2.0, 1.0]), np.array([3.0, 1.0, 2.0]), 2)
    0.3333333333333333
    """
    ours, theirs = top_features(first, k), top_features(second, k)
    return float((ours & theirs).sum() / (ours | theirs).sum())


def same_signs(first: FloatArray, second: FloatArray, k: int) -> float:
    """The share of features with the same sign, among those in the top k of either."""
    either = top_features(first, k) | top_features(second, k)
    return float((np.sign(first[either]) == np.sign(second[either])).mean())


def kendall(first: FloatArray, second: FloatArray, weights: FloatArray | None = None) -> float:
    """Kendall's tau-b between two rankings by absolute size; NaN where one has no order.

    1 is the same order and -1 the reverse. An entry of weight w counts as w entries that are tied.
    """
    if np.ptp(np.abs(first)) == 0 or np.ptp(np.abs(second)) == 0:
        return float("nan")
    if weights is None or (weights == 1).all():
        return float(stats.kendalltau(np.abs(first), np.abs(second)).statistic)
    a, b, sums = np.abs(first), np.abs(second), np.zeros(3)
    step = max(1, _BLOCK // len(a))
    for k in range(0, len(a), step):
        some = slice(k, k + step)
        ours, theirs = np.sign(a[some, None] - a), np.sign(b[some, None] - b)
        pairs = weights[some, None] * weights
        sums += [(pairs * x * y).sum() for x, y in ((ours, theirs), (ours, ours), (theirs, theirs))]
    return float(sums[0] / np.sqrt(sums[1] * sums[2]))


_RANK = 1e-9  # smallest singular value that counts, relative to the largest


def least_squares(
    masks: FloatArray, scores: FloatArray, weights: FloatArray, *, intercept: bool
) -> tuple[FloatArray, FloatArray] | None:
    """Estimate and standard error of each importance, each (p,).

    None if the masks do not determine every importance, with at least two answers to spare.

    The standard errors are those of HC3: residuals divided by one minus their leverage. If masks
    come in complementary pairs (`find_pairs`), a pair counts as one observation.

    Examples
    --------
    >>> masks = np.array([[1, 1], [1, 0], [0, 1], [0, 0], [1, 0], [0, 1]], dtype=float)
    >>> estimate, se = least_squares(masks, masks @ [2.0, -1.0], np.ones(6), intercept=True)
    >>> estimate.round(3), se.round(3)
    (array([ 2., -1.]), array([0., 0.]))
    """
    rows = weights > 0
    root, drawn = np.sqrt(weights[rows]), masks[rows]
    columns = np.column_stack([np.ones(len(drawn)), drawn]) if intercept else drawn
    n, p = columns.shape
    if n < p + 2:
        return None
    basis, size, directions = np.linalg.svd(root[:, None] * columns, full_matrices=False)
    if size[-1] <= _RANK * size[0]:
        return None
    solve = (directions.T / size) @ basis.T  # (p, n)
    target = root * scores[rows]
    estimate = solve @ target
    residual = target - basis @ (basis.T @ target)
    spare = np.maximum(1 - (basis**2).sum(axis=1), 1e-6)
    influence = solve * (residual / spare)
    pairs = find_pairs(drawn)
    if pairs is not None:
        influence[:, pairs.first] += influence[:, pairs.second]
        influence[:, pairs.second] = 0.0
    se = np.sqrt((influence**2).sum(axis=1))
    return estimate[int(intercept) :], se[int(intercept) :]
