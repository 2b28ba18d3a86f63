"""Masks in complementary pairs: the even part of the scores cancels."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import eblime
from eblime.core.pairs import find_pairs, pair_numbers
from eblime.methods import common


def pairs_of(rng, m, p):
    """Masks in pairs, the complement after each mask."""
    half = rng.integers(0, 2, size=(m, p)).astype(float)
    return np.stack([half, 1 - half], axis=1).reshape(-1, p)


def test_pairs_are_found_wherever_they_start(rng):
    """After an odd number of rows too; a repeated pair is two pairs."""
    masks = pairs_of(rng, 20, 7)

    assert_array_equal(pair_numbers(masks), np.repeat(np.arange(0, 40, 2), 2))
    shifted = np.concatenate([masks[:1], masks])[[0, *range(3, 41)]]  # a row alone, then pairs
    numbers = pair_numbers(shifted)
    assert numbers[0] == 0
    assert (np.bincount(numbers)[1::2] == 2).all()
    twice = np.concatenate([masks[:2], masks[:2]])
    assert_array_equal(pair_numbers(twice), [0, 0, 2, 2])
    again = np.array([[1.0, 0, 1], [0, 1, 0], [1, 0, 1], [1, 1, 1]])  # z, 1 - z, z, and another
    assert_array_equal(pair_numbers(again), [0, 0, 2, 3])
    assert find_pairs(masks[::2]) is None


@pytest.mark.parametrize("local", [False, True])
def test_pairs_of_equal_weight_are_a_regression_of_odd_parts(rng, local, monkeypatch):
    """The same posterior as half of the differences on half of the differences of the masks."""
    monkeypatch.setattr(common, "find_aliasing", lambda *_: None)
    monkeypatch.setattr(common, "_PER_MASK", 0.0)
    masks = pairs_of(rng, 40, 5)
    scores = np.tanh(masks @ rng.normal(size=5)) + masks[:, 0] * masks[:, 1]
    odd = (masks[::2] - masks[1::2]) / np.sqrt(2)
    difference = (scores[::2] - scores[1::2]) / np.sqrt(2)
    both = eblime.fit(masks, scores, method=eblime.EBLIME(local=local, noise="equal", finite=False))
    method = eblime.EBLIME(intercept="none", local=local, noise="equal", finite=False)
    alone = eblime.fit(odd, difference, method=method)

    assert_allclose(both.mean, alone.mean, rtol=1e-4)
    assert_allclose(both.interval(), alone.interval(), rtol=1e-4)
    assert_allclose(both.sigma2.mean, alone.sigma2.mean, rtol=1e-3)


def test_fitted_scales_are_not_known(rng, monkeypatch):
    """Among pairs the variance grows by half a feature per mask; the means stay."""
    masks = pairs_of(rng, 20, 8)
    scores = masks @ rng.normal(size=8) + rng.normal(size=40)
    method = eblime.EBLIME(finite=False)
    wide = eblime.fit(masks, scores, method=method).law.alone
    monkeypatch.setattr(common, "_PER_MASK", 0.0)
    narrow = eblime.fit(masks, scores, method=method).law.alone

    assert_allclose(wide.scale, narrow.scale * np.sqrt(1 + 8 / (2 * 40)))
    assert_allclose(wide.mean, narrow.mean)


def test_interactions_of_two_features_cancel(rng):
    """A score of effects and interactions of two features has an exactly linear odd part."""
    masks = pairs_of(rng, 40, 6)
    signs = 2 * masks - 1
    interactions = np.triu(rng.normal(size=(6, 6)), 1)
    beta = rng.normal(size=6)
    scores = masks @ beta + np.einsum("ij,jk,ik->i", signs, interactions, signs)
    post = eblime.fit(masks, scores)

    assert_allclose(post.mean, beta, atol=1e-6)
    assert np.diff(post.interval()).max() < 0.01


def test_a_kernel_that_is_far_from_even_changes_nothing(rng):
    """Where one mask of each pair has all the weight, pairs are treated like any other masks."""
    masks = pairs_of(rng, 60, 5)
    scores = np.tanh(masks @ rng.normal(size=5)) + masks[:, 0] * masks[:, 1]
    weights = np.tile([1.0, 0.01], 60)
    order = rng.permutation(120)
    method = eblime.EBLIME(noise="equal", finite=False)
    first = eblime.fit(masks, scores, weights, method)
    mixed = eblime.fit(masks[order], scores[order], weights[order], method)

    assert find_pairs(masks[order]) is None
    assert_allclose(first.interval(), mixed.interval(), rtol=1e-6)
