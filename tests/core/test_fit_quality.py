"""Ranges of scores, R^2, and the prediction of each score from the others."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from eblime.core.fit_quality import (
    held_out_r2,
    is_constant,
    score_range,
    weighted_r2,
    without_each,
)
from eblime.core.pairs import Pairs


def test_rows_without_their_block_of_leverages(rng):
    """`(I - B)^-1 e` and `|I - B|` by explicit inverses, of single rows and of pairs."""
    n, first, second = 7, np.array([0, 4]), np.array([1, 5])
    root = rng.normal(size=(n, 2, 2))
    blocks = root @ root.transpose(0, 2, 1) + np.eye(2)
    free, cross = blocks[:, 0, 0].copy(), blocks[first, 0, 1]
    free[second] = blocks[first, 1, 1]
    error = rng.normal(size=n)
    missed, volume = without_each(error[:, None], free[:, None], cross[:, None], first, second)

    for i, j in zip(first, second, strict=True):
        assert_allclose(missed[[i, j], 0], np.linalg.inv(blocks[i]) @ error[[i, j]])
        assert_allclose(volume[[i, j], 0], np.linalg.det(blocks[i]))
    alone = [2, 3, 6]
    assert_allclose(missed[alone, 0], error[alone] / free[alone])
    assert_allclose(volume[alone, 0], free[alone])


@pytest.mark.parametrize("pairs", [None, Pairs(first=np.array([0, 2]), second=np.array([1, 3]))])
def test_the_held_out_r2_compares_with_the_mean_of_the_others(rng, pairs):
    """The mean without the row, or without both rows of its pair, in a literal loop."""
    scores, weights, missed = rng.normal(size=6), rng.uniform(0.2, 1.0, 6), rng.normal(size=6)
    total = []
    for i in range(6):
        out = {0: [0, 1], 1: [0, 1], 2: [2, 3], 3: [2, 3]}.get(i, [i]) if pairs else [i]
        others = np.delete(np.arange(6), out)
        total.append(scores[i] - np.average(scores[others], weights=weights[others]))
    wanted = 1 - np.sum(weights * missed**2) / np.sum(weights * np.array(total) ** 2)

    assert_allclose(held_out_r2(scores, weights, missed, pairs), wanted, rtol=1e-10)


@pytest.mark.parametrize("unit", [1.0, 1e-200, 1e200])
def test_r2_of_scores_of_any_size(rng, unit):
    """Squares would overflow or vanish; the weighted mean alone explains nothing."""
    scores, weights = rng.normal(size=9), rng.uniform(0.2, 1.0, 9)
    centred = scores - np.average(scores, weights=weights)

    assert_allclose(weighted_r2(unit * scores, weights, unit * centred), 0.0, atol=1e-12)
    assert_allclose(weighted_r2(unit * scores, weights, unit * centred / 2), 0.75)
    assert_allclose(held_out_r2(unit * scores, weights, np.zeros(9)), 1.0)


def test_scores_are_constant_up_to_rounding():
    """Eight units in the last place of 1; a score of weight zero does not count."""
    few = 4 * np.finfo(float).eps

    assert is_constant(np.array([1.0, 1 - few]))
    assert not is_constant(np.array([1.0, 1 - 2 * few]))
    assert is_constant(np.zeros(3))
    assert not is_constant(np.array([-1.0, 1.0]))
    assert score_range(np.array([3.0, -1.0, 9.0]), np.array([1.0, 0.5, 0.0])) == (-1.0, 3.0)
    assert weighted_r2(np.array([1.0, 1.0, 9.0]), np.array([1.0, 1.0, 0.0]), np.ones(3)) == 1.0
