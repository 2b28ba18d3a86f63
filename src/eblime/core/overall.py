"""The size of an importance over many inputs, without the noise of each estimate.

The average of |estimate| is too large, because noise has a size too. Here the distribution of the
true importances over the inputs is fitted instead: a mixture whose components lie on a grid, with
the estimates' own standard errors. Draws of the mixture's shares give draws of what is wanted.

Estimates alone cannot tell importances of zero from importances far below their standard errors.
So there are two fits: one in which some importances may be exactly zero, one in which none is. The
interval covers both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import special, stats

from eblime._types import BoolArray, FloatArray, IntArray
from eblime.core.pairs import find_pairs

_DRAWS, _ROUNDS = 400, 60  # rounds of expectation and maximisation
_TOGETHER = 64  # features that are fitted side by side
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

Sample = tuple[FloatArray, FloatArray, FloatArray]  # estimate, se, weight; (n,) each


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


def overall_each(rng: np.random.Generator, samples: Sequence[Sample]) -> list[Overall]:
    """Fit the distribution of an importance over inputs, of several features at once.

    Each sample has unbiased estimates of the importances, their standard errors, and how much each
    input counts in the means, (n,) each.
    """
    scaled = [(estimate, se, weight / weight.mean()) for estimate, se, weight in samples]
    cells = [_cells(*_with_least_error(*sample)) for sample in scaled]
    draws: dict[int, FloatArray] = {}
    for chunk in _chunks([cell.estimate.size for cell in cells]):  # similar sizes together
        drawn = _draws(rng, [cells[place] for place in chunk])
        draws |= {place: drawn[:, 2 * i : 2 * i + 2] for i, place in enumerate(chunk)}
    return [_overall(draws[place], *sample) for place, sample in enumerate(scaled)]


def _overall(
    draws: FloatArray, estimate: FloatArray, se: FloatArray, weight: FloatArray
) -> Overall:
    """The record of one feature, from draws (3, 2, D) of its size and of the shares of signs."""
    n, known = len(weight), _with_least_error(estimate, se, weight)
    size, positive, negative = draws * (known[2].sum() / n * (estimate.any() or se.any()))
    return Overall(
        size=np.maximum(size, 0.0),
        positive=np.clip(positive, 0.0, 1.0),
        negative=np.clip(negative, 0.0, 1.0),
        mean=float(weight @ estimate) / n,
        mean_se=float(np.linalg.norm(weight * se)) / n,
        p_value=_p_value(*known),
        n=n,
    )


def _with_least_error(estimate: FloatArray, se: FloatArray, weight: FloatArray) -> Sample:
    """The sample with errors above zero, without importances that are known to be zero."""
    size = np.abs(estimate) + se
    some = size > _TINY * size.max() if size.any() else np.ones(len(se), dtype=bool)
    return estimate[some], np.maximum(se[some], _TINY * (size.max() or 1.0)), weight[some]


def _p_value(estimate: FloatArray, se: FloatArray, weight: FloatArray) -> float:
    """Of the hypothesis that all importances are zero.

    Two tests are combined by Bonferroni's inequality: the sum of squares, which sees large
    importances of both signs, and the mean, which sees small ones of the same sign.
    """
    squares = float(special.chdtrc(len(se), ((estimate / se) ** 2).sum()))
    mean = 2 * float(special.ndtr(-abs(weight @ estimate) / np.linalg.norm(weight * se)))
    return min(1.0, 2 * min(squares, mean))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cells:
    """Inputs with nearly the same estimate and standard error, taken together."""

    estimate: FloatArray  # (G,) means
    se: FloatArray  # (G,)
    weight: FloatArray  # (G,) sums of the inputs' weights
    square: FloatArray  # (G,) sums of their squares
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
        square=np.asarray(np.bincount(cell, weight**2), dtype=float),
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


def _chunks(sizes: Sequence[int]) -> list[list[int]]:
    """Places of the sizes in increasing order, cut where padding or memory would grow too large."""
    chunks: list[list[int]] = []
    for place in np.argsort(sizes, kind="stable").tolist():
        if chunks and len(chunks[-1]) < _TOGETHER and sizes[place] <= 2 * sizes[chunks[-1][0]] + 64:
            chunks[-1].append(place)
        else:
            chunks.append([place])
    return chunks


class _Fits(NamedTuple):
    """What each component says of each cell, in two fits of each feature; (2 F, K, G) or as given.

    In the first fit of a feature its importances may be exactly zero, in the second they are not.
    Components and cells that a feature does not have are padded: with no prior, and no weight.
    """

    likelihood: FloatArray
    size: FloatArray  # E|beta|
    second: FloatArray  # E(beta^2)
    positive: FloatArray  # P(beta > 0)
    negative: FloatArray
    prior: FloatArray  # (2 F, K) of the shares
    weight: FloatArray  # (2 F, G)
    square: FloatArray  # (2 F, G)


def _fits(cells: Sequence[_Cells]) -> _Fits:
    """Both fits of every feature."""
    shape = (2 * len(cells), max(c.centre.size for c in cells), max(c.se.size for c in cells))
    tables = np.zeros((5, *shape), dtype=np.float32)
    prior, weight = np.zeros(shape[:2]), np.zeros((2, shape[0], shape[2]), dtype=np.float32)
    for i, cell in enumerate(cells):
        rows, k, g = slice(2 * i, 2 * i + 2), cell.centre.size, cell.se.size
        tables[:, rows, :k, :g] = _components(cell)[:, None]
        tables[0, rows, :k, g:] = 1.0
        tables[0, 2 * i + 1, 0] = 0.0
        prior[rows, 1:k] = np.array([[_SPARSE], [_DENSE]]) / (k - 1)
        prior[2 * i, 0] = 1.0
        weight[:, rows, :g] = np.stack([cell.weight, cell.square])[:, None]
    return _Fits._make([*tables, prior, *weight])


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


def _draws(rng: np.random.Generator, cells: Sequence[_Cells]) -> FloatArray:
    """Draws of mean |beta| and of the shares of both signs over the inputs, (3, 2 F, D).

    Given the shares of the components the inputs are independent, so that a mean over many of them
    is normal.
    """
    fits = _fits(cells)
    shares = _sample_shares(rng, fits)
    total = np.maximum(shares @ fits.likelihood, _LEAST)

    def expect(values: FloatArray) -> FloatArray:
        return np.asarray(shares @ (fits.likelihood * values) / total)  # (2 F, D, G)

    size, positive, negative = map(expect, (fits.size, fits.positive, fits.negative))
    spread = np.maximum(expect(fits.second) - size**2, 0.0)
    draws = []
    for mean, variance in (
        (size, spread),
        (positive, positive * (1 - positive)),
        (negative, negative * (1 - negative)),
    ):
        noise = np.sqrt(np.einsum("fdg,fg->fd", variance, fits.square, dtype=float))
        middle = np.einsum("fdg,fg->fd", mean, fits.weight, dtype=float)
        draws.append(middle + noise * rng.standard_normal(middle.shape))
    return np.asarray(np.stack(draws) / fits.weight.sum(axis=1, dtype=float)[:, None])


def _sample_shares(rng: np.random.Generator, fits: _Fits) -> FloatArray:
    """Draws of the shares of the components, (2 F, D, K), by the weighted likelihood bootstrap.

    Each draw weighs the inputs and the prior at random (Newton and Raftery, 1994) and maximises the
    posterior by expectation and maximisation. If components overlap, a Gibbs sampler that draws
    which input belongs to which would take thousands of sweeps to exchange their shares.
    """
    n, k = fits.prior.shape
    prior = rng.gamma(fits.prior[:, None], size=(n, _DRAWS, k)).astype(np.float32)
    weight = rng.gamma(fits.weight[:, None], size=(n, _DRAWS, fits.weight.shape[1]))
    weight, back = weight.astype(np.float32), fits.likelihood.transpose(0, 2, 1)
    share: FloatArray = np.repeat(fits.prior[:, None], _DRAWS, axis=1).astype(np.float32)
    for _ in range(_ROUNDS):
        ratio = weight / np.maximum(share @ fits.likelihood, _LEAST)
        share = share * (ratio @ back) + prior
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
