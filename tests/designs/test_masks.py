import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from eblime.answers import Answers
from eblime.core.pairs import find_pairs
from eblime.designs.masks import bernoulli, exhaustive, is_exhaustive, paired, screening
from eblime.designs.rounds import OneShot, as_design, first_look, in_rounds, one_shot
from eblime.family import Focused
from eblime.stopping.rule import next_total


def test_bernoulli_is_fair(rng):
    """Half of the coins show, within 5 standard errors; the original is first."""
    masks = bernoulli(rng, 20_001, 6)

    assert masks[0].all()
    assert_allclose(masks[1:].mean(axis=0), 0.5, atol=5 * 0.5 / np.sqrt(20_000))
    assert_allclose(np.cov(masks[1:].T), np.eye(6) / 4, atol=0.02)


@pytest.mark.parametrize("n", [1, 2, 7, 8])
def test_pairs_are_complements(rng, n):
    """Rows come in pairs that add up to one; an odd last row stands alone."""
    masks = paired(rng, n, 4).masks

    assert len(masks) == n
    assert masks[0].all()
    assert_array_equal(masks[0 : n - n % 2 : 2] + masks[1 : n - n % 2 + 1 : 2][: n // 2], 1)


def test_exhaustive_counts_in_binary(rng):
    """Row k shows feature j where bit j of k is set."""
    masks = exhaustive(rng, 1, 3)

    assert_array_equal(masks[5], [1, 0, 1])
    assert is_exhaustive(masks)
    assert is_exhaustive(masks[rng.permutation(8)])
    assert not is_exhaustive(masks[[0, 1, 2, 3, 4, 5, 6, 6]])
    assert not is_exhaustive(masks[:4])


def test_all_masks_are_taken_where_they_are_affordable():
    """A random design gives way to the exhaustive one; a function of the user's does not."""
    assert as_design("bernoulli", 8, 3) == one_shot(exhaustive, 8)
    assert as_design("focused", 8, 3) == one_shot(exhaustive, 8)
    assert as_design("focused", 7, 3) == Focused(n_masks=7)
    assert as_design("paired", 7, 3) == one_shot(paired, 7)
    assert as_design(bernoulli, 8, 3) == one_shot(bernoulli, 8)
    assert as_design("bernoulli", 8, 3, exact=False) == one_shot(bernoulli, 8)
    assert as_design(None, 8, 3) == OneShot(masks=None, n_masks=8)


def test_a_one_shot_design_asks_once(rng):
    """Masks in the first round, None once they are answered."""
    design, none = one_shot(paired, 6), Answers.none(["a", "b"])
    masks = design.next(rng, none).masks
    answered = none.append(masks, masks[:, 0], np.ones(6))

    assert masks.shape == (6, 2)
    assert design.next(rng, answered) is None
    assert OneShot(masks=None, n_masks=6).next(rng, none) == 6
    assert OneShot(masks=None, n_masks=6).next(rng, answered) is None


def test_designs_are_refused_by_name(rng):
    """Unknown names, objects that are not designs, and far too many masks."""
    with pytest.raises(ValueError, match=r"`design` must be one of 'bernoulli', 'paired'"):
        as_design("coins", 10, 3)
    with pytest.raises(TypeError, match=r"`design` must be a name, a function"):
        as_design(3, 10, 3)
    with pytest.raises(ValueError, match=r"at most 20 features; got 30"):
        exhaustive(rng, 10, 30)


@pytest.mark.parametrize(
    ("n", "p", "pairs"),
    [(34, 12, True), (66, 12, True), (66, 20, True), (17, 12, False), (65, 31, False)],
)
def test_screening_balances_any_two_features(rng, n, p, pairs):
    """The columns of whole blocks are orthogonal, with and without complements.

    31 features have a block of 64, because one of 32 would leave no column to show the noise.
    """
    drawn = screening(rng, n, p)
    counted = drawn.sampling_weights > 0
    signs = 2 * drawn.masks[counted] - 1

    assert drawn.masks[0].all()
    assert_array_equal(signs.T @ signs, len(signs) * np.eye(p))
    assert_array_equal(signs.sum(axis=0), 0)
    assert_allclose(drawn.sampling_weights.sum(), n)
    assert (~counted).sum() == 1 + pairs
    assert (find_pairs(drawn.masks) is not None) == pairs


@pytest.mark.parametrize("n", [1, 2, 3, 9, 10, 11, 12, 400])
def test_screening_with_any_number_of_masks(rng, n):
    """As many as asked for, the input itself first."""
    drawn = screening(rng, n, 8)

    assert drawn.masks.shape == (n, 8)
    assert drawn.masks[0].all()
    assert_allclose(drawn.sampling_weights.sum(), n)


def test_screening_is_asked_in_its_order_and_looked_at_early(rng):
    """A rule looks at 32 masks of 20 features, then at 48 and 64; at 64 of 40 features."""
    answers = Answers.none([str(j) for j in range(20)])
    design = in_rounds(rng, "screening", 500, 20, exact=True, next_total=next_total)
    rounds = []
    while answers.n_masks < 128:
        wanted = design.next(rng, answers)
        weights = wanted.sampling_weights
        answers = answers.append(wanted.masks, wanted.masks[:, 0], weights, weights)
        rounds.append(answers.n_masks)
    signs = 2 * answers.masks[2:66] - 1

    assert rounds == [32, 48, 64, 96, 128]
    assert_array_equal(signs.T @ signs, 64 * np.eye(20))
    assert first_look("screening", 40) is None
    assert first_look("paired", 20) is first_look(None, 20) is None
