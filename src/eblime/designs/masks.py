"""Designs that decide all masks at once.

| name | masks | without replacement |
|---|---|---|
| `orthogonal` | balanced: any few features show all combinations equally often | yes |
| `bernoulli` | a fair coin for each feature | no |
| `sizes` | the number of hidden features is uniform: lime's for texts | no |
| `leverage` | complementary pairs, all sizes equally likely | yes |
| `exhaustive` | all 2^p masks | yes |

A pair is a mask and its complement. The pair of the two ends, everything shown and everything
hidden, is always asked. Each of n masks has the weight `n 2^-p / chance`, where `chance` is the
probability that it is asked: a weighted sum over the asked masks then is, on average, n times the
mean over all masks. A design without replacement asks a mask again only after it has asked all 2^p.

Except for `sizes`, all have the same estimand: the weighted linear fit to all 2^p masks. `sizes`
has lime's law of masks, in which those that hide one feature are as frequent as those that hide
half of them.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from math import comb
from typing import TypeVar

import numpy as np

from eblime._types import BoolArray, FloatArray, IntArray
from eblime.answers import Proposal
from eblime.core.indices import log_subsets

MOST_EXHAUSTIVE = 20  # features that an exhaustive design may have: a million masks


def bernoulli(rng: np.random.Generator, n_masks: int, p: int) -> FloatArray:
    """Show or hide each feature by a fair coin; the input itself is the first row.

    Examples
    --------
    >>> import numpy as np
    >>> from eblime.designs import bernoulli
    >>> bernoulli(np.random.default_rng(0), 100, 4)[0]
    array([1., 1., 1., 1.])
    """
    masks = rng.integers(0, 2, size=(n_masks, p)).astype(np.float64)
    masks[0] = 1
    return masks


def leverage(rng: np.random.Generator, n_masks: int, p: int) -> Proposal:
    """Complementary pairs without replacement, all sizes from 1 to p - 1 equally likely.

    The sampling probabilities of Leverage SHAP (Musco and Witter, 2025): best with the kernel
    "shapley", which weighs small and large masks most. The weights correct for them, so that other
    kernels keep their estimand, with a smaller effective sample size. The first pair is the input
    itself and everything hidden.

    Examples
    --------
    >>> import numpy as np
    >>> from eblime.designs import leverage
    >>> proposal = leverage(np.random.default_rng(0), 6, 4)
    >>> proposal.masks.sum(axis=0)
    array([3., 3., 3., 3.])
    >>> proposal.sampling_weights.shape
    (6,)
    """
    parts = []
    left = n_masks
    while left > 0:  # every mask once before any is repeated
        n = min(left, 2**p)
        parts.append(_one_pass(rng, n, p))
        left -= n
    masks, weights = (np.concatenate(each) for each in zip(*parts, strict=True))
    return Proposal(masks=masks, sampling_weights=weights)


def exhaustive(rng: object, n_masks: object, p: int) -> FloatArray:  # noqa: ARG001
    """All 2^p masks, whatever `n_masks` is: the importances are exact.

    Row k shows feature j where bit j of k is set; the last row is the input.

    Examples
    --------
    >>> import numpy as np
    >>> from eblime.designs import exhaustive
    >>> len(np.unique(exhaustive(np.random.default_rng(0), 8, 3), axis=0))
    8
    """
    if p > MOST_EXHAUSTIVE:
        raise ValueError(
            f"An exhaustive design must have at most {MOST_EXHAUSTIVE} features; got {p}, which is "
            f"2^{p} masks. Take design='bernoulli' or fewer segments."
        )
    return ((np.arange(2**p)[:, None] >> np.arange(p)) & 1).astype(np.float64)


def sizes(rng: np.random.Generator, n_masks: int, p: int) -> FloatArray:
    """Hide 1 to p features, each number equally likely: lime's design for texts.

    The input itself is the first row. Unlike all other designs, it does not correct for its draws:
    the importances are those of its own law, in which all numbers of hidden features count alike.

    Examples
    --------
    >>> import numpy as np
    >>> from eblime.designs.masks import sizes
    >>> sizes(np.random.default_rng(0), 6, 4).shape
    (6, 4)
    """
    keys = rng.random((n_masks, p))
    hidden = rng.integers(1, p + 1, size=n_masks)
    limit = np.take_along_axis(np.sort(keys, axis=1), hidden[:, None] - 1, axis=1)
    masks = (keys > limit).astype(np.float64)
    masks[0] = 1
    return masks


def _all_by_size(rng: np.random.Generator, n_masks: int, p: int) -> Proposal:
    """All 2^p masks, each counting as often as n_masks draws of `sizes` contain it on average."""
    masks = exhaustive(rng, n_masks, p)
    chances = np.exp(-log_subsets(p)) / p  # of one mask, by the number of shown features
    counts = (n_masks - 1) * chances[masks.sum(axis=1).astype(np.intp)]
    counts[-1] = 1.0
    return Proposal(masks=masks, sampling_weights=counts * 2**p / n_masks)


# see docs/reference/index.md
sizes.all_masks = _all_by_size  # type: ignore[attr-defined]
sizes.law = "each number of hidden features counting the same"  # type: ignore[attr-defined]


Drawn = TypeVar("Drawn", FloatArray, BoolArray)
_TRIES = 100  # draws of masks, until different ones are rare
_DENSE = 4  # with fewer candidates than this for each pair wanted, all candidates are listed


def _one_pass(rng: np.random.Generator, n: int, p: int) -> tuple[FloatArray, FloatArray]:
    """At most 2^p masks, none of them twice, and their weights, with a mean of about one."""
    ends = np.array([[1.0], [0.0]]) @ np.ones((1, p))
    if n <= 2:
        return ends[:n], np.ones(n)
    m = (n - 1) // 2  # pairs besides the ends, the last of them cut off if n is odd
    chosen, log_ratio = _pairs_of_every_size(rng, m, p)
    order = rng.permutation(m)
    chosen, log_ratio = chosen[order], log_ratio[order]
    turned = rng.integers(0, 2, size=(m, 1)) == 1
    first = chosen ^ turned  # of each pair
    masks = np.empty((n, p))
    masks[:2] = ends
    masks[2::2], masks[3::2] = first[: (n - 1) // 2], ~first[: (n - 2) // 2]
    kept = (n - 2) / (2 * m)
    log_weights = np.concatenate([[0.0, 0.0], np.repeat(log_ratio, 2)[: n - 2] - np.log(kept)])
    weights = np.exp(log_weights + np.log(n) - p * np.log(2))
    return masks, weights


def _pairs_of_every_size(rng: np.random.Generator, m: int, p: int) -> tuple[BoolArray, FloatArray]:
    """One mask of each of m pairs: first how many features it shows, evenly, then which.

    With it, for each pair, the logarithm of the number of pairs there are for each expected one.
    """
    size = np.arange(1, p // 2 + 1)
    log_pairs, shares = log_subsets(p)[size], np.full(len(size), 2.0)
    halves = 2 * size == p  # a pair of two masks of the same size
    log_pairs[halves] -= np.log(2)
    shares[halves] = 1.0
    room = np.rint(np.exp(np.minimum(log_pairs, np.log(2.0 * m))))
    expected = cap_shares(float(m), shares, room)
    counts = round_randomly(rng, expected)
    chosen = [
        _of_size(rng, int(count), p, int(t)) for t, count in zip(size, counts, strict=True) if count
    ]
    some = counts > 0
    return np.concatenate(chosen), np.repeat(log_pairs[some] - np.log(expected[some]), counts[some])


def _of_size(rng: np.random.Generator, count: int, p: int, size: int) -> BoolArray:
    """One mask of each of `count` different pairs in which one mask shows `size` features."""
    half = 2 * size == p
    total = comb(p, size) // (2 if half else 1)
    if total <= _DENSE * count:
        shown = list(combinations(range(1, p), size - 1)) if half else combinations(range(p), size)
        every = np.zeros((total, p), dtype=bool)
        for row, subset in zip(every, shown, strict=True):
            row[list(subset)] = True
        every[:, 0] |= half
        return every[rng.permutation(total)[:count]]
    return distinct_pairs(lambda n: masks_of_sizes(rng, np.full(n, size), p) > 0.5, count, p)


def distinct_pairs(
    draw: Callable[[int], Drawn], count: int, p: int, *, known: FloatArray | None = None
) -> Drawn:
    """Masks of different pairs that are not known, drawn until there are enough or few are left."""
    before = np.empty((0, p)) if known is None else known
    found = draw(0)
    for _ in range(_TRIES):
        if len(found) >= count:
            break
        drawn = draw(2 * (count - len(found)) + 8)
        found = np.concatenate([found, fresh_pairs(drawn, np.concatenate([before, found]))])
    return found[:count]


def fresh_pairs(masks: Drawn, known: FloatArray) -> Drawn:
    """Those of the masks whose pair is not known, the first of each pair."""
    every = np.concatenate([known, masks])
    same = every == every[:, :1]  # for both masks of a pair
    packed = np.ascontiguousarray(np.packbits(same, axis=1))
    keys = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
    first = np.unique(keys, return_index=True)[1] - len(known)
    return masks[np.sort(first[first >= 0])]


def cap_shares(total: float, shares: FloatArray, room: FloatArray) -> FloatArray:
    """A total split by shares, none above its room; what is above goes to the others."""
    split, free = np.zeros(len(shares)), np.ones(len(shares), dtype=bool)
    while free.any():
        split[free] = (total - split[~free].sum()) * shares[free] / shares[free].sum()
        above = free & (split >= room)
        if not above.any():
            break
        split[above] = room[above]
        free &= ~above
    return split


def round_randomly(rng: np.random.Generator, expected: FloatArray) -> IntArray:
    """Whole numbers next to the expected ones, with these means and the same sum."""
    sums = np.concatenate([[0.0], np.cumsum(expected)])
    sums = np.where(np.abs(sums - np.rint(sums)) < 1e-9, np.rint(sums), sums)
    return np.diff(np.floor(sums + rng.random())).astype(np.intp)


def masks_of_sizes(rng: np.random.Generator, shown: IntArray, p: int) -> FloatArray:
    """A mask for each number of shown features, all of that size equally likely, (n, p)."""
    ranks = rng.random((len(shown), p)).argsort(axis=1).argsort(axis=1)
    return (ranks < shown[:, None]).astype(np.float64)
