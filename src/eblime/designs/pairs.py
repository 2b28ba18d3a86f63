"""Complementary pairs of masks without replacement, and the weights that undo uneven draws.

A pair is a mask and its complement. The pair of the two ends, everything shown and everything
hidden, is always asked. Each of n masks has the weight `n 2^-p / chance`, where `chance` is the
probability that it is asked: a weighted sum over the asked masks then is, on average, n times the
mean over all masks.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from math import comb

import numpy as np

from eblime._types import FloatArray, IntArray
from eblime.answers import Proposal
from eblime.core.indices import log_subsets

__all__ = ["Choose", "any_pairs", "capped", "pairs_by_size", "pool_of_pairs", "proposal", "rounded"]

# (rng, number of pairs, p) -> one mask of each pair, (m, p), and the logarithm of the number of
# pairs there are for each expected one, (m,)
Choose = Callable[[np.random.Generator, int, int], tuple[FloatArray, FloatArray]]
_DENSE = 4  # with fewer candidates than this for each pair wanted, all candidates are listed


def proposal(rng: np.random.Generator, n_masks: int, p: int, choose: Choose) -> Proposal:
    """The ends and other pairs, which `choose` draws; every mask once before any is repeated."""
    parts = []
    left = n_masks
    while left > 0:
        n = min(left, 2**p)
        parts.append(_one_pass(rng, n, p, choose))
        left -= n
    return Proposal(
        masks=np.concatenate([masks for masks, _ in parts]),
        sampling_weights=np.concatenate([weights for _, weights in parts]),
    )


def _one_pass(
    rng: np.random.Generator, n: int, p: int, choose: Choose
) -> tuple[FloatArray, FloatArray]:
    """At most 2^p masks, none of them twice, and their weights, with a mean of about one."""
    ends = np.array([[1.0], [0.0]]) @ np.ones((1, p))
    if n <= 2:
        return ends[:n], np.ones(n)
    m = (n - 1) // 2  # pairs besides the ends, the last of them cut off if n is odd
    chosen, log_ratio = choose(rng, m, p)
    order = rng.permutation(m)
    chosen, log_ratio = chosen[order], log_ratio[order]
    turned = rng.integers(0, 2, size=(m, 1)) == 1
    chosen = np.where(turned, 1 - chosen, chosen)
    pairs = np.stack([chosen, 1 - chosen], axis=1).reshape(-1, p)[: n - 2]
    kept = (n - 2) / (2 * m)
    log_weights = np.concatenate([[0.0, 0.0], np.repeat(log_ratio, 2)[: n - 2] - np.log(kept)])
    weights = np.exp(log_weights + np.log(n) - p * np.log(2))
    return np.concatenate([ends, pairs]), weights


def any_pairs(rng: np.random.Generator, m: int, p: int) -> tuple[FloatArray, FloatArray]:
    """Pairs that are all equally likely, the ends excluded."""
    total = 2 ** (p - 1) - 1
    ratio = np.full(m, (p - 1) * np.log(2) + np.log1p(-(2.0 ** (1 - p))) - np.log(m))
    if total <= _DENSE * m:
        bits = rng.permutation(total)[:m]  # of all features but the first, which is shown
        rest = (bits[:, None] >> np.arange(p - 1)) & 1
        return np.column_stack([np.ones(m), rest]), ratio

    def draw(n: int) -> FloatArray:
        masks = rng.integers(0, 2, size=(n, p)).astype(np.float64)
        return masks[masks.any(axis=1) & ~masks.all(axis=1)]

    return _distinct(draw, m, p), ratio


def pairs_by_size(shares: Callable[[FloatArray], FloatArray]) -> Choose:
    """Pairs by size: the size by `shares`, then a pair of that size, all equally likely.

    `shares` gets the logarithm of the number of pairs of each size, 1 .. p // 2, and returns how
    many of each to ask, up to a factor.
    """

    def choose(rng: np.random.Generator, m: int, p: int) -> tuple[FloatArray, FloatArray]:
        size = np.arange(1, p // 2 + 1)
        log_pairs = log_subsets(p)[size]
        log_pairs[2 * size == p] -= np.log(2)
        room = np.rint(np.exp(np.minimum(log_pairs, np.log(2.0 * m))))
        expected = capped(float(m), shares(log_pairs), room)
        counts = rounded(rng, expected)
        chosen = [
            _of_size(rng, int(count), p, int(t))
            for t, count in zip(size, counts, strict=True)
            if count
        ]
        some = counts > 0
        log_ratio = log_pairs[some] - np.log(expected[some])
        return np.concatenate(chosen), np.repeat(log_ratio, counts[some])

    return choose


def pool_of_pairs(rng: np.random.Generator, m: int, p: int) -> FloatArray:
    """One mask of each of m different pairs, all equally likely, or of all if there are no more."""
    if p <= 60 and 2 ** (p - 1) <= m:
        rest = (np.arange(2 ** (p - 1))[:, None] >> np.arange(p - 1)) & 1
        return np.column_stack([np.ones(len(rest)), rest])
    return _distinct(lambda n: rng.integers(0, 2, size=(n, p)).astype(np.float64), m, p)


def _unique_pairs(masks: FloatArray) -> IntArray:
    """Rows that are not in the pair of an earlier row, in order."""
    same = np.where(masks[:, :1] > 0.5, masks, 1 - masks) > 0.5
    packed = np.ascontiguousarray(np.packbits(same, axis=1))
    keys = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
    return np.sort(np.unique(keys, return_index=True)[1])


def _of_size(rng: np.random.Generator, count: int, p: int, size: int) -> FloatArray:
    """One mask of each of `count` different pairs in which one mask shows `size` features."""
    half = 2 * size == p
    total = comb(p, size) // (2 if half else 1)
    if total <= _DENSE * count:
        shown = list(combinations(range(1, p), size - 1)) if half else combinations(range(p), size)
        every = np.zeros((total, p))
        for row, subset in zip(every, shown, strict=True):
            row[list(subset)] = 1
        every[:, 0] = np.maximum(every[:, 0], float(half))
        return every[rng.permutation(total)[:count]]

    def draw(n: int) -> FloatArray:
        ranks = rng.random((n, p)).argsort(axis=1).argsort(axis=1)
        return (ranks < size).astype(np.float64)

    return _distinct(draw, count, p)


def _distinct(draw: Callable[[int], FloatArray], count: int, p: int) -> FloatArray:
    """Masks of different pairs: drawn until there are enough, repeats left out."""
    found = np.empty((0, p))
    while len(found) < count:
        found = np.concatenate([found, draw(2 * (count - len(found)) + 8)])
        found = found[_unique_pairs(found)]
    return found[:count]


def capped(total: float, shares: FloatArray, room: FloatArray) -> FloatArray:
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


def rounded(rng: np.random.Generator, expected: FloatArray) -> IntArray:
    """Whole numbers next to the expected ones, with these means and the same sum."""
    sums = np.concatenate([[0.0], np.cumsum(expected)])
    sums = np.where(np.abs(sums - np.rint(sums)) < 1e-9, np.rint(sums), sums)
    return np.diff(np.floor(sums + rng.random())).astype(np.intp)
