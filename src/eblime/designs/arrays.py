"""Orthogonal masks: any few features show all combinations of shown and hidden equally often.

A mask is a word of the Reed-Muller code of first order, `r'x + c` for the columns x in GF(2)^m,
plus a quadratic form `Q_b(x)` that all 2^(m+1) masks of a block share (mod 2). One block has
strength 3: any three columns show all eight combinations equally often. All blocks together have
strength 5:

- m even: `Q_b(x, e) = sum_j Tr((b x)^(1 + 2^j)) + e Tr(b x)` with x in GF(2^(m - 1)) and
  j = 1 .. m / 2 - 1, for all 2^(m - 1) b (Kerdock, 1972);
- m odd: `Q_b(x) = Tr(b x^3)` with x in GF(2^m), for all 2^m b (Gold, 1968).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import islice

import numpy as np

from eblime._types import BoolArray, FloatArray, IntArray

_MOST_FEATURES = 1024  # with more, pairs are drawn at random
_FEWEST_BITS = 4  # m is at least this: blocks of 32 masks
_FEW_FEATURES = 16  # up to which pairs can repeat before an array is used up
_FEW_PAIRS = 10  # features up to which columns are chosen so that pairs do not repeat
_MOST_BITS, _STARTS = 6, 8  # up to which columns are chosen, and from how many starts
_ROUNDING = 1e-9
_POLYNOMIALS = {3: 0b1011, 5: 0b100101, 7: 0b10000011, 9: 0b1000010001}  # primitive, of GF(2^k)


def orthogonal(rng: np.random.Generator, n_masks: int, p: int) -> FloatArray:
    """Blocks of an orthogonal array, each mask followed by its complement.

    An importance is then free of the effects of all other features, of their interactions in pairs
    and, when all blocks are asked (256 masks for up to 16 features, 2,048 for up to 32, 4,096 for
    up to 64), of those in threes and fours. Whole blocks are best: 32 masks for up to 16 features,
    64 for up to 32 and so on. Features have the columns of the array in random order, flipped at
    random, so that each mask alone is uniform. The first n masks of a larger design are the design
    of size n. More than 1,024 features get pairs at random.

    Examples
    --------
    >>> import numpy as np
    >>> from eblime.designs import orthogonal
    >>> masks = orthogonal(np.random.default_rng(0), 32, 6)
    >>> signs = 2 * masks - 1
    >>> bool((signs.T @ signs == 32 * np.eye(6)).all())
    True
    """
    half, wanted = np.empty((0, p), dtype=np.intp), -(-n_masks // 2)
    many = p > _MOST_FEATURES
    blocks = iter([rng.integers(0, 2, size=(wanted, p))]) if many else _half_arrays(rng, p)
    while (missing := wanted - len(half)) > 0:
        first = next(blocks)
        rest = islice(blocks, (missing - 1) // len(first) if wanted <= 2 ** (p - 1) else 0)
        half = np.concatenate([half, first, *rest])
        if p <= _FEW_FEATURES:
            half = _once(half)
    return np.stack([half, 1 - half], axis=1).reshape(-1, p)[:n_masks].astype(np.float64)


orthogonal.keeps_order = True  # type: ignore[attr-defined]  # see docs/reference/index.md
orthogonal.first_look = lambda p: next(  # type: ignore[attr-defined]  # before a stop rule looks
    (n for n, most in ((32, 16), (64, 64), (128, 128)) if p <= most), None
)


def _once(half: IntArray) -> IntArray:
    """The masks, no pair again before all pairs were there as often; other repeats left out."""
    n, p = half.shape
    keys = (half ^ half[:, :1])[:, 1:] @ (1 << np.arange(p - 1))
    counts = np.bincount(keys, minlength=2 ** (p - 1))
    order = np.argsort(keys, kind="stable")
    before = np.empty(n, dtype=np.intp)  # how often the pair came before
    before[order] = np.arange(n) - (np.cumsum(counts) - counts)[keys[order]]
    return half[np.argsort(before, kind="stable")[: np.sum(before <= counts.min())]]


def _half_arrays(rng: np.random.Generator, p: int) -> Iterator[IntArray]:
    """One mask of each pair, block after block, (2^m, p): array after array, without end.

    An array differs from another one in which feature has which column, and in what is flipped.
    """
    m = max(_FEWEST_BITS, (p - 1).bit_length())
    forms, n = quadratic_forms(m), 2**m
    while True:
        columns = rng.permutation(_columns(m, p)) if m <= _MOST_BITS else rng.permutation(n)[:p]
        numbers, flips = rng.permutation(n), rng.integers(0, 2, size=p)
        for form in forms[:, columns]:
            yield _parity(np.bitwise_and.outer(numbers, columns)) ^ form ^ flips


@lru_cache
def _columns(m: int, p: int) -> IntArray:
    """The p of 2^m columns of which the first blocks of an array tell most.

    Four columns with sum zero show one half of their combinations only, in each block, and the
    others in other blocks. So an importance has a share of the interaction of three features. The
    sum of the squares of these shares in the first 2, 4, 8 and 16 blocks is made small by exchanges
    of one column for another, from several starts. Few features get columns in which no pair of a
    block comes twice, from eight features on no pair of the array.
    """
    rng, forms, n = np.random.default_rng(0), quadratic_forms(m), 2**m
    a, b, c = np.ogrid[:n, :n, :n]
    a, b, c = np.nonzero((a < b) & (b < c) & (c < (a ^ b ^ c)))
    fours = np.stack([a, b, c, a ^ b ^ c], axis=1)
    counts = [count for count in (2, 4, 8, 16) if count < len(forms)]
    signs = [1 - 2 * (forms[:count, fours].sum(axis=2) & 1) for count in counts]
    shares = [np.mean(each, axis=0) ** 2 for each in signs]
    cost = np.sum([share / share.mean() for share in shares], axis=0)
    best, least, starts = np.arange(p), np.inf, 0
    while starts < _STARTS >> (m - _FEWEST_BITS):
        start = rng.permutation(n) < p
        for chosen in (start, _exchange(start.copy(), fours, cost)):
            total = float(cost[chosen[fours].all(axis=1)].sum())
            if total < least and _are_free_of_repeats(forms, np.flatnonzero(chosen)):
                best, least = np.flatnonzero(chosen), total
        starts += least < np.inf
    return best


def _are_free_of_repeats(forms: IntArray, columns: IntArray) -> bool:
    """Whether no pair comes twice: in a block with 5 to 7 columns, in the array with 8 to 10."""
    p = len(columns)
    if p < 5 or p > _FEW_PAIRS:
        return True
    words = _parity(np.bitwise_and.outer(np.arange(forms.shape[1]), columns))
    half = np.concatenate([words ^ form for form in forms[: None if p >= 8 else 1, columns]])
    return len(_once(half)) == len(half)


def _exchange(chosen: BoolArray, fours: IntArray, cost: FloatArray) -> BoolArray:
    """Exchange columns as long as the cost of the sets of four that are chosen falls."""
    n = len(chosen)
    while True:
        held = chosen[fours]
        some = held.sum(axis=1) == 3  # a column more would complete the set
        inside, paid = fours[some][held[some]].reshape(-1, 3), np.repeat(cost[some], 3)
        outside = fours[some][~held[some]]
        gone = np.bincount(fours[held.all(axis=1)].ravel(), np.repeat(cost[held.all(axis=1)], 4), n)
        come = np.bincount(outside, cost[some], n)
        both = np.bincount((inside * n + outside[:, None]).ravel(), paid, n * n).reshape(n, n)
        change = 1.0 * come - both - gone[:, None]  # of a column for another one
        change[~chosen] = change[:, chosen] = np.inf
        old, new = divmod(int(np.argmin(change)), n)
        if not change[old, new] < -_ROUNDING:
            return chosen
        chosen[old], chosen[new] = False, True


def _parity(numbers: IntArray) -> IntArray:
    """Whether the number of bits that are set is odd."""
    for shift in (8, 4, 2, 1):
        numbers = numbers ^ (numbers >> shift)
    return numbers & 1


@lru_cache
def quadratic_forms(m: int) -> IntArray:
    """The form of each block at each column, (blocks, 2^m) zeros and ones."""
    k = m - 1 + m % 2  # of the field
    n = 2**k - 1  # elements but zero
    powers = np.ones(2 * n, dtype=np.intp)  # of a primitive element
    for i in range(1, 2 * n):
        powers[i] = powers[i - 1] << 1
        powers[i] ^= _POLYNOMIALS[k] * (powers[i] >> k)
    logs = np.zeros(n + 1, dtype=np.intp)
    logs[powers[:n]] = np.arange(n)
    elements = np.arange(n + 1)

    def power(x: IntArray, exponent: int) -> IntArray:
        return np.where(x > 0, powers[logs[x] * exponent % n], 0)

    def times(x: IntArray, y: IntArray) -> IntArray:
        return np.where((x > 0) & (y > 0), powers[(logs[x] + logs[y]) % n], 0)

    conjugates = [power(elements, 2**j) for j in range(k)]
    trace = np.bitwise_xor.reduce(conjugates) & 1
    if m % 2:
        return np.asarray(trace[times(elements[:, None], power(elements, 3))])
    product = times(elements[:, None], elements)
    sums = np.bitwise_xor.reduce([trace[power(product, 1 + 2**j)] for j in range(1, m // 2)])
    return np.concatenate([sums, sums ^ trace[product]], axis=1)
