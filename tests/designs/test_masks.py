import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from eblime.answers import Answers
from eblime.designs.masks import bernoulli, exhaustive, leverage
from eblime.designs.rounds import OneShot, as_design


def test_bernoulli_is_fair(rng):
    """Half of the coins show, within 5 standard errors; the original is first."""
    masks = bernoulli(rng, 20_001, 6)

    assert masks[0].all()
    assert_allclose(masks[1:].mean(axis=0), 0.5, atol=5 * 0.5 / np.sqrt(20_000))
    assert_allclose(np.cov(masks[1:].T), np.eye(6) / 4, atol=0.02)


@pytest.mark.parametrize("n", [1, 2, 7, 8])
def test_pairs_are_complements(rng, n):
    """Rows come in pairs that add up to one; an odd last row stands alone."""
    masks = leverage(rng, n, 4).masks

    assert len(masks) == n
    assert masks[0].all()
    assert_array_equal(masks[0 : n - n % 2 : 2] + masks[1 : n - n % 2 + 1 : 2][: n // 2], 1)


def test_exhaustive_counts_in_binary(rng):
    """Row k shows feature j where bit j of k is set."""
    masks = exhaustive(rng, 1, 3)

    assert_array_equal(masks[5], [1, 0, 1])


def test_all_masks_are_taken_where_they_are_affordable():
    """A random design gives way to the exhaustive one; a function of the user's does not."""
    assert as_design("bernoulli", 8, 3) == OneShot(masks=exhaustive, n_masks=8)
    assert as_design("leverage", 7, 3) == OneShot(masks=leverage, n_masks=7)
    assert as_design(bernoulli, 8, 3) == OneShot(masks=bernoulli, n_masks=8)
    assert as_design("bernoulli", 8, 3, exact=False) == OneShot(masks=bernoulli, n_masks=8)
    assert as_design(None, 8, 3) == OneShot(masks=None, n_masks=8)


def test_a_one_shot_design_asks_once(rng):
    """Masks in the first round, None once they are answered."""
    design, none = OneShot(masks=leverage, n_masks=6), Answers.none(["a", "b"])
    masks = design.next(rng, none).masks
    answered = none.append(masks, masks[:, 0], np.ones(6))

    assert masks.shape == (6, 2)
    assert design.next(rng, answered) is None
    assert OneShot(masks=None, n_masks=6).next(rng, none) == 6
    assert OneShot(masks=None, n_masks=6).next(rng, answered) is None


def test_designs_are_refused_by_name(rng):
    """Unknown names, objects that are not designs, and far too many masks."""
    with pytest.raises(ValueError, match=r"`design` must be one of 'bernoulli', 'orthogonal'"):
        as_design("coins", 10, 3)
    with pytest.raises(TypeError, match=r"`design` must be a name, a function"):
        as_design(3, 10, 3)
    with pytest.raises(ValueError, match=r"at most 20 features; got 30"):
        exhaustive(rng, 10, 30)
