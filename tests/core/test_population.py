"""The finite population: the fit to all masks, against a literal law of the scores not asked."""

import numpy as np
import paper
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from eblime.answers import Answers
from eblime.core.population import find_population, is_exhaustive
from eblime.methods.regression import as_method


def every_mask(p):
    """All 2^p masks."""
    return ((np.arange(2**p)[:, None] >> np.arange(p)) & 1).astype(float)


def test_all_masks_are_each_there_once(rng):
    """In any order; a mask that is there twice, or is not of zeros and ones, replaces none."""
    masks = every_mask(3)

    assert is_exhaustive(masks)
    assert is_exhaustive(masks[rng.permutation(8)])
    assert not is_exhaustive(masks[[0, 1, 2, 3, 4, 5, 6, 6]])
    assert not is_exhaustive(masks[:4])
    assert not is_exhaustive(np.where(masks > 0, 2.0, masks))


@pytest.mark.parametrize("flat", [True, False])
def test_moments_are_those_of_the_scores_not_asked(rng, flat):
    """For any law of beta, such as one that shrinks; 12 of 32 masks were asked."""
    masks, p = every_mask(5), 5
    weights, scores = np.exp(-0.3 * (p - masks.sum(axis=1))), rng.normal(size=32)
    asked = np.sort(rng.permutation(32)[:12])
    root = rng.normal(size=(p, p))
    beta, cov, sigma2 = rng.normal(size=p), root @ root.T, 1.7
    known = find_population(masks[asked], weights[asked], flat=flat)
    found = known.moments(scores[asked], beta, cov, sigma2)
    literal = paper.fit_to_all_masks(masks, weights, asked, scores[asked], beta, cov, sigma2, flat)

    assert not known.complete
    assert_allclose(found, literal, rtol=1e-9)


@pytest.mark.parametrize("flat", [True, False])
def test_all_masks_leave_nothing_to_chance(rng, flat):
    """The mean is the weighted fit whatever the prior says, and the variance is zero."""
    masks = every_mask(4)[rng.permutation(16)]
    weights, scores = rng.uniform(0.2, 1.0, size=16), rng.normal(size=16)
    known = find_population(masks, weights, flat=flat)
    mean, variance = known.moments(scores, rng.normal(size=4), np.eye(4), 2.0)
    columns = np.column_stack([np.ones(16), masks]) if flat else masks

    assert known.complete
    assert_allclose(mean, paper.beta_hat(columns, scores, weights, 0.0)[-4:], atol=1e-12)
    assert_array_equal(variance, np.zeros(4))


def test_sizes_that_were_not_asked_continue_the_line(rng):
    """Weights that fall by the same factor with each hidden feature are those of all masks."""
    masks = every_mask(7)
    shown = masks.sum(axis=1)
    weights = np.exp(0.4 * shown)
    asked = np.isin(shown, (2, 4, 5))
    known = find_population(masks[asked], weights[asked], flat=False)

    assert_allclose(known.whole, (masks.T * weights) @ masks, rtol=1e-10)


@pytest.mark.parametrize(
    ("masks", "weights"),
    [
        (every_mask(3)[[1, 2, 2, 4]], np.ones(4)),  # one mask twice
        (every_mask(3)[1:6] / 2, np.ones(5)),  # not binary
        (every_mask(3)[[1, 2, 7]], np.array([1.0, 0.9, 1.0])),  # unequal weights of one size
        (every_mask(3)[[1, 2, 7]], np.array([0.0, 0.0, 1.0])),  # a size without weight
        (every_mask(12)[:8], np.ones(8)),  # 8 of 4,096 masks
        (np.eye(26), np.ones(26)),  # too many features
    ],
)
def test_other_masks_have_no_population(masks, weights):
    """They are too few of all, or not a sample without repetition with weights by size."""
    assert find_population(masks, weights, flat=True) is None


def test_a_small_share_of_all_masks_is_a_population():
    """9 of 4,096, of which 0.002 are 8.2."""
    assert find_population(every_mask(12)[:9], np.ones(9), flat=False) is not None


METHODS = ("eblime", "lime", "bayeslime", "baylime", "bayesshap", "quadrature")


@pytest.mark.parametrize("method", METHODS)
def test_rounding_is_no_importance(rng, method):
    """Of all masks, where nothing is uncertain: features that change nothing have no sign."""
    masks = every_mask(4)
    scores = 0.1 * masks[:, 0] + 1e-9 * rng.random(16)  # as a network in single precision
    ends = {"original": float(scores[-1]), "hidden": float(scores[0])}
    answers = Answers(masks=masks, scores=scores, weights=np.ones(16), **ends)
    post = as_method(method).fit(rng, answers)

    assert_allclose(post.mean[0], 0.1, atol=1e-8)
    assert (post.mean[1:] == 0).all()
    if post.has_spread:
        assert_array_equal(post.prob_positive(), [1, 0.5, 0.5, 0.5])
