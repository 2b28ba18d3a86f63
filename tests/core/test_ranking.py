import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import problem

import eblime
from eblime.core.ranking import is_among_top, rank_draws, rank_features, rank_frequencies


def test_ranks_by_size_and_by_value():
    """Rank 1 is the largest in size, or the largest in value."""
    beta = np.array([[0.5, -2.0, 1.0]])

    assert_array_equal(rank_draws(None, beta, "abs"), [[3, 1, 2]])
    assert_array_equal(rank_draws(None, beta, "value"), [[2, 3, 1]])


def test_rank_frequencies_count(rng):
    """Each feature has one rank in a draw, and each rank one feature."""
    ranks = rank_draws(rng, rng.normal(size=(500, 6)), "abs")
    chance = rank_frequencies(ranks)

    assert_allclose(chance.sum(axis=0), 1)
    assert_allclose(chance.sum(axis=1), 1)
    assert_allclose(chance[2, 4], np.mean(ranks[:, 2] == 5))


def test_certain_order_has_tight_bounds(rng):
    """Importances far apart leave one ranking."""
    ranks = rank_draws(rng, np.array([1.0, 9, 5]) + 0.01 * rng.normal(size=(1000, 3)), "abs")
    found = rank_features(ranks, 0.95)

    assert_array_equal(found.order, [1, 2, 0])
    assert_array_equal(found.low, found.high)
    assert_array_equal(found.credible_set(1), [1])


@pytest.mark.parametrize("prob", [0.5, 0.9, 0.99])
def test_rank_bounds_hold_together(rng, prob):
    """The share of draws with every rank inside its bounds is at least `prob`, and not all."""
    beta = np.arange(5.0) + 2 * rng.normal(size=(4000, 5))
    ranks = rank_draws(rng, beta, "value")
    found = rank_features(ranks, prob)
    inside = ((ranks >= found.low) & (ranks <= found.high)).all(axis=1).mean()

    assert inside >= prob
    if prob == 0.5:
        assert inside < 0.95


def test_top_k_equals_the_rank_table(rng):
    """P(among the k largest) is the sum of the first k rank probabilities; they sum to k."""
    post = eblime.fit(*problem(rng, 60, 6))
    chance = post.top_k_probability(2)

    assert_allclose(chance, post.rank_probability()[:, :2].sum(axis=1))
    assert_allclose(chance.sum(), 2)
    assert_allclose(post.top_k_probability(6), 1)
    assert post.ranking().expected.sum() == pytest.approx(21)


def test_rank_draws_are_reproducible(rng):
    """The same rng, the same answer; another rng within Monte Carlo error."""
    post = eblime.fit(*problem(rng, 60, 6))
    first, again, other = (post.top_k_probability(3, "value", rng=r) for r in (0, 0, 1))

    assert_array_equal(first, again)
    assert_allclose(first, other, atol=5 * 0.5 * np.sqrt(2 / 10_000))


def test_first_rank_of_two_equals_the_order_probability(rng):
    """With two features and by value, rank 1 is P(beta_0 > beta_1), known exactly."""
    post = eblime.fit(*problem(rng, 20, 2))
    share = post.rank_probability("value", n_draws=40_000)[0, 0]

    assert_allclose(share, post.prob_greater()[0, 1], atol=5 * 0.5 / 200)


def test_constant_scores_are_ranked_by_chance(rng):
    """Features that are all the same, also if they are many."""
    masks = rng.integers(0, 2, size=(50, 120)).astype(float)
    post = eblime.fit(masks, np.ones(50))

    assert_allclose(post.top_k_probability(6), 0.05, atol=5 * 0.22 / 100)


def test_top_of_many_features_of_which_two_are_the_same(rng):
    """They are among the first as often; their correlation is singular."""
    masks = rng.integers(0, 2, size=(40, 60)).astype(float)
    masks = np.concatenate([masks, masks], axis=1)
    post = eblime.fit(masks, masks[:, 0] + 0.1 * rng.normal(size=40))
    shares = post.top_k_probability(2, n_draws=2_000)

    assert shares.sum() == pytest.approx(2)
    assert_allclose(shares[0], shares[60], atol=5 * 0.5 * np.sqrt(2 / 2_000))


def test_the_top_of_draws_of_which_some_have_ties(rng):
    """K features in every draw: those of the first ranks, whether others are tied or not."""
    beta = np.array([[3.0, 3.0, 3.0, 1.0], [-4.0, 1.0, 2.0, 0.0]])

    for by in ("abs", "value"):
        top = is_among_top(rng, beta, 2, by)
        assert_array_equal(top, rank_draws(rng, beta, by) <= 2)
        assert_array_equal(top.sum(axis=1), 2)
