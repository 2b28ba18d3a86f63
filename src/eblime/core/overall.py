"""The size of an importance over many inputs, without the noise of each estimate.

The average of |estimate| is too large, because noise has a size too. Here the distribution of the
true importances over the inputs is fitted instead: a mixture whose components lie on a grid, with
the estimates' own standard errors. Gibbs sampling gives draws of what is wanted.

Estimates alone cannot tell importances of zero from importances far below their standard errors.
So there are two fits: one in which some importances may be exactly zero, one in which none is. The
interval covers both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from scipy import special, stats

from eblime._types import BoolArray, FloatArray, IntArray
from eblime.core.pairs import find_pairs

__all__ = [
    "Overall",
    "absolute_moments",
    "kendall",
    "least_squares",
    "overall",
    "overall_interval",
    "pool_fits",
    "ranks",
    "same_signs",
    "top_features",
    "top_jaccard",
]

_BURN, _DRAWS = 100, 400
_NARROW = 0.5  # distance of the components near zero, in standard errors
_GROWTH = 0.15  # and away from zero, relative to their position
_OVERLAP = 0.6  # standard deviation of a component, in distances
_SPARSE, _DENSE = 1.0, 5.0  # prior number of inputs in all components together
_TINY = 1e-6  # least standard error, relative to the largest estimate


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


def pool_fits(parts: Sequence[Overall], shares: FloatArray) -> Overall:
    """The weighted mean of several importances of the same inputs, such as those for two classes.

    Their errors may be the same, so the intervals are added as if they were, and the averages are
    no more certain than their parts.
    """
    if len(parts) == 1:
        return parts[0]
    size, positive, negative = (
        np.tensordot(shares, np.sort([getattr(part, name) for part in parts], axis=2), axes=1)
        for name in ("size", "positive", "negative")
    )
    return Overall(
        size=size,
        positive=positive,
        negative=negative,
        mean=float(shares @ [part.mean for part in parts]),
        mean_se=float(shares @ [part.mean_se for part in parts]),
        p_value=min(1.0, len(parts) * min(part.p_value for part in parts)),
        n=max(part.n for part in parts),
    )


def overall(
    rng: np.random.Generator, estimate: FloatArray, se: FloatArray, weight: FloatArray
) -> Overall:
    """Fit the distribution of an importance over inputs.

    Parameters
    ----------
    rng
        Generator of the draws.
    estimate, se
        Unbiased estimates of the importances and their standard errors, (n,).
    weight
        How much each input counts in the means, (n,).
    """
    weight = weight / weight.mean()
    n = len(weight)
    largest = float((np.abs(estimate) + se).max())
    spread = np.maximum(se, _TINY * largest if largest else 1.0)
    parts = _components(estimate, spread)
    prior = np.full(parts.likelihood.shape[1] - 1, 1 / (parts.likelihood.shape[1] - 1))
    some_zero = _gibbs(rng, parts, np.append(1.0, _SPARSE * prior), weight)
    none_zero = _gibbs(rng, parts.without_zero(), _DENSE * prior, weight)
    if not largest:  # exact, and zero
        some_zero, none_zero = np.zeros_like(some_zero), np.zeros_like(none_zero)
    size, positive, negative = np.stack([some_zero, none_zero], axis=1)
    return Overall(
        size=size,
        positive=positive,
        negative=negative,
        mean=float(weight @ estimate) / n,
        mean_se=float(np.linalg.norm(weight * se)) / n,
        p_value=_p_value(estimate, spread, weight),
        n=n,
    )


def _p_value(estimate: FloatArray, se: FloatArray, weight: FloatArray) -> float:
    """Of the hypothesis that all importances are zero.

    Two tests are combined by Bonferroni's inequality: the sum of squares, which sees large
    importances of both signs, and the mean, which sees small ones of the same sign.
    """
    squares = float(special.chdtrc(len(se), ((estimate / se) ** 2).sum()))
    mean = 2 * float(special.ndtr(-abs(weight @ estimate) / np.linalg.norm(weight * se)))
    return min(1.0, 2 * min(squares, mean))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """What each component says of each input, all (n, K); the first component is zero itself."""

    likelihood: FloatArray
    size: FloatArray  # E|beta|
    variance: FloatArray  # of |beta|
    positive: FloatArray  # P(beta > 0)
    negative: FloatArray

    def without_zero(self) -> _Parts:
        """All components but the first."""
        return _Parts(**{entry.name: getattr(self, entry.name)[:, 1:] for entry in fields(self)})


def _components(estimate: FloatArray, se: FloatArray) -> _Parts:
    """Zero itself, and normals on a grid."""
    centre, width = _grid(
        _NARROW * float(np.quantile(se, 0.1)), float((abs(estimate) + 2 * se).max())
    )
    centre, width = np.append(0.0, centre), np.append(0.0, width)
    b, s = estimate[:, None], se[:, None]
    total = s**2 + width**2
    log_likelihood = -((b - centre) ** 2) / (2 * total) - np.log(total) / 2
    shrunk = width**2 / total
    mean, sd = centre + shrunk * (b - centre), np.sqrt(shrunk) * s
    size, variance = absolute_moments(mean, sd)
    positive = special.ndtr(np.divide(mean, sd, out=np.zeros_like(mean), where=sd > 0))
    negative = 1 - positive
    positive[:, 0] = negative[:, 0] = 0.0
    return _Parts(
        likelihood=np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True)),
        size=size,
        variance=variance,
        positive=positive,
        negative=negative,
    )


def _grid(narrow: float, top: float) -> tuple[FloatArray, FloatArray]:
    """Centres and widths of the components, symmetric about zero."""
    centres, steps = [0.0], [narrow]
    while centres[-1] < top:
        steps.append(max(narrow, _GROWTH * centres[-1]))
        centres.append(centres[-1] + steps[-1])
    centre, width = np.array(centres), _OVERLAP * np.array(steps)
    return np.concatenate([-centre[:0:-1], centre]), np.concatenate([width[:0:-1], width])


def _gibbs(
    rng: np.random.Generator, parts: _Parts, prior: FloatArray, weight: FloatArray
) -> FloatArray:
    """Draws of mean |beta| and of the shares of both signs over the inputs, (3, D)."""
    n, inputs = len(weight), np.arange(len(weight))
    share = prior / prior.sum()
    draws = np.empty((_DRAWS, 3))
    for sweep in range(-_BURN, _DRAWS):
        reach = np.cumsum(parts.likelihood * share, axis=1)
        chosen = (reach < rng.random((n, 1)) * reach[:, -1:]).sum(axis=1)
        counts = np.bincount(chosen, weights=weight, minlength=len(prior))
        share = rng.dirichlet(prior + counts) + 1e-300
        if sweep < 0:
            continue
        positive, negative = parts.positive[inputs, chosen], parts.negative[inputs, chosen]
        means = (parts.size[inputs, chosen], positive, negative)
        variances = (parts.variance[inputs, chosen], positive * (1 - positive))
        noise = np.sqrt([weight**2 @ variance for variance in variances]) * rng.standard_normal(2)
        moved = np.array([noise[0], noise[1], -noise[1]])  # one sign's gain is the other's loss
        draws[sweep] = (np.array([weight @ mean for mean in means]) + moved) / n
    draws[:, 0] = np.maximum(draws[:, 0], 0.0)
    draws[:, 1:] = np.clip(draws[:, 1:], 0.0, 1.0)
    return draws.T


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


def kendall(first: FloatArray, second: FloatArray) -> float:
    """Kendall's tau-b between two rankings by absolute size; NaN where one has no order.

    1 is the same order and -1 the reverse.
    """
    if np.ptp(np.abs(first)) == 0 or np.ptp(np.abs(second)) == 0:
        return float("nan")
    return float(stats.kendalltau(np.abs(first), np.abs(second)).statistic)


_RANK = 1e-9  # smallest singular value that counts, relative to the largest


def least_squares(
    masks: FloatArray, scores: FloatArray, weights: FloatArray, *, intercept: bool
) -> tuple[FloatArray, FloatArray] | None:
    """Estimate and standard error of each importance, each (p,).

    None if the masks do not determine every importance, with at least two answers to spare.

    Notes
    -----
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
