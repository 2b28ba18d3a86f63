"""How much of the lack of fit reaches the importances, against sums over all sets of features."""

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from eblime.core.aliasing import find_aliasing
from eblime.core.pairs import find_pairs
from eblime.designs import orthogonal


def in_pairs(half):
    """Each mask, then its complement."""
    return np.stack([half, 1 - half], axis=1).reshape(-1, half.shape[1])


def some_masks(rng, n, p):
    """Distinct masks of which none is the complement of another: the last feature is hidden."""
    numbers = rng.choice(2 ** (p - 1), size=n, replace=False)
    return ((numbers[:, None] >> np.arange(p)) & 1).astype(float)


def found_in(half):
    """The aliasing of masks and their complements."""
    masks = in_pairs(half)
    return find_aliasing(masks, find_pairs(masks))


@pytest.mark.parametrize("p", [3, 6, 8])
def test_ratios_are_means_over_all_sets(rng, p):
    """The square of the mean sign of each set, without or with one feature, times the pairs."""
    half = some_masks(rng, 8 if p == 6 else 12, p) if p > 3 else np.eye(3)[[0, 1, 2] * 4]
    n, signs = len(half), 2 * half - 1
    left = 1 - n / 2 ** (p - 1) if p > 3 else 1.0  # masks that repeat are no finite population
    wanted = np.zeros(3)
    for place, size in enumerate((3, 5, 7)):
        squares = [
            np.mean(np.prod(signs[:, sorted({*some} ^ {j})], axis=1)) ** 2
            for some in combinations(range(p), size)
            for j in range(p)
        ]
        wanted[place] = n * np.mean(squares) / left if squares else 0.0

    assert_allclose(found_in(half).ratios, wanted, atol=1e-12)


@pytest.mark.parametrize("kind", ["random", "alike", "unlike", "no even part"])
def test_the_factor_is_the_literal_mean_over_falls(rng, kind):
    """Each fall counts by how well it explains the product of every two even parts."""
    half = some_masks(rng, 20, 9)
    masks, signs, found = in_pairs(half), 2 * half - 1, found_in(half)
    alike = []  # for two masks, the mean over all sets of 2, 4, 6 and 8 features
    for size in (2, 4, 6, 8):
        products = np.stack([np.prod(signs[:, s], axis=1) for s in combinations(range(9), size)])
        alike.append(products.T @ products / len(products))
    vectors = np.linalg.eigh(alike[0])[1]  # by how alike close masks score
    even = {"random": rng.normal(size=20), "alike": vectors[:, -1], "unlike": vectors[:, 0]}
    scores = np.repeat(even.get(kind, np.zeros(20)), 2)
    even = scores[::2] - scores[::2].mean()
    even = even / (even.std() or 1.0)
    chances, factors = [], []
    for fall in np.linspace(0.02, 0.95, 94):
        shares = [(1 - fall) * fall**k for k in range(4)]
        missed = np.outer(even, even) - np.tensordot(shares, alike, axes=1)
        chances.append(np.exp(-np.sum(np.triu(missed, 1) ** 2) - 10 * (fall - 0.2) ** 2))
        factors.append(found.ratios @ shares[:3] + fall**3)

    wanted = np.average(factors, weights=chances)
    assert_allclose(found.factor(find_pairs(masks), scores), wanted, rtol=1e-9)


def test_odd_functions_count_as_on_random_masks(rng):
    """Where the odd part of what a line misses is larger than the even part, orders do not fall."""
    masks = orthogonal(rng, 128, 12)
    pairs, found = find_pairs(masks), found_in(masks[::2])
    scores = masks[:, 0] * masks[:, 1] + rng.normal(size=128)
    even = float(np.var((scores[::2] + scores[1::2]) / 2))
    usual = found.factor(pairs, scores)

    assert usual < 0.8
    assert found.factor(pairs, scores, even) == usual  # the line misses the even part alone
    rest = even / (even * 64 / 52)  # as much again, of 64 pairs less 12 importances
    assert_allclose(found.factor(pairs, scores, 2 * even), rest * usual + 1 - rest)
    assert found.factor(pairs, scores, 1e9) == pytest.approx(1.0)


def test_masks_that_say_nothing_about_aliasing(rng):
    """Seven pairs, two features, entries between zero and one, or more than three of four pairs."""
    half = some_masks(rng, 16, 6)

    assert found_in(half) is not None
    assert found_in(half[:7]) is None
    assert found_in(half[:8]) is not None
    assert found_in(half[:, :2]) is None
    assert found_in(half * 0.8 + 0.1) is None
    assert found_in(some_masks(rng, 25, 6)) is None
