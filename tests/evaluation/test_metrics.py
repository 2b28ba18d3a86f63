"""Measures of faithfulness on models whose answer is known by hand."""

import numpy as np
import pytest

from eblime.evaluation.games import Game
from eblime.evaluation.metrics import (
    HIGHER_IS_BETTER,
    comprehensiveness,
    deletion_auc,
    infidelity,
    insertion_auc,
    max_sensitivity,
    pointing_game,
    prediction_gap,
    relevance_mass,
    sufficiency,
)

SLOPES = np.array([4.0, 1.0, 3.0, 2.0])


def linear(masks):
    """A line without intercept: the score is the sum of the slopes of the shown features."""
    return np.asarray(masks) @ SLOPES


def test_insertion_and_deletion_by_hand():
    """Shown one by one from the largest: 0, 4, 7, 9, 10. Hidden: 10, 6, 3, 1, 0."""
    assert insertion_auc(linear, SLOPES) == pytest.approx((2 + 5.5 + 8 + 9.5) / 4)
    assert deletion_auc(linear, SLOPES) == pytest.approx((8 + 4.5 + 2 + 0.5) / 4)
    assert insertion_auc(linear, -SLOPES) == pytest.approx((0.5 + 2 + 4.5 + 8) / 4)


def test_order_of_the_slopes_is_best():
    """No other order of a line has a larger insertion or a smaller deletion area."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        other = rng.permutation(SLOPES)
        assert insertion_auc(linear, other) <= insertion_auc(linear, SLOPES)
        assert deletion_auc(linear, other) >= deletion_auc(linear, SLOPES)


def test_infidelity_of_a_line_is_zero_at_any_scale(rng):
    """The slopes predict every drop; zeros predict nothing; a half of the truth is in between."""
    assert infidelity(linear, SLOPES, rng, 50) == pytest.approx(0, abs=1e-12)
    assert infidelity(linear, 7 * SLOPES, rng, 50) == pytest.approx(0, abs=1e-12)
    assert infidelity(linear, np.zeros(4), rng, 50) == 1
    assert 0 < infidelity(linear, np.ones(4), rng, 50) < 1
    assert np.isnan(infidelity(lambda masks: np.ones(len(masks)), SLOPES, rng, 50))


def test_infidelity_by_hand():
    """Of the masks of two features, drops 0, 1, 1, 1 for `or`-like hiding; attribution (1, 1)."""

    class Fixed:
        def integers(self, low, high, size):
            return np.array([[1, 1], [1, 0], [0, 1], [0, 0]])

    def both(masks):
        return np.asarray(masks).prod(axis=1)

    # predicted 0, 1, 1, 2; best factor (1 + 1 + 2) / 6; residuals 1/3, 1/3, -1/3
    assert infidelity(both, np.ones(2), Fixed(), 4) == pytest.approx(3 * (1 / 3) ** 2 / 3)


def test_comprehensiveness_and_sufficiency_by_hand():
    """Of four tokens, 1 to 20 % is one token (the slope 4), 50 % two (4 and 3)."""
    assert comprehensiveness(linear, SLOPES) == pytest.approx((4 * 4 + 7) / 5)
    assert sufficiency(linear, SLOPES) == pytest.approx((4 * 6 + 3) / 5)
    assert comprehensiveness(linear, -SLOPES) == pytest.approx((4 * 1 + 3) / 5)


def test_rationale_is_rounded_up_but_not_beyond_a_whole_number():
    """20 % of ten tokens are two, and 5 % are one."""
    first_two = lambda masks: np.asarray(masks)[:, :2].sum(axis=1)  # noqa: E731
    found = comprehensiveness(first_two, np.array([2.0, 1.0] + [0.0] * 8))

    assert found == pytest.approx((1 + 1 + 1 + 2 + 2) / 5)


def test_prediction_gaps_by_hand():
    """A perturbed column loses its slope: the two largest move the score by 7, the others by 3."""

    def predict(columns):
        return np.full(3, 10 - SLOPES[columns].sum())

    settings = {"top": 2}
    assert prediction_gap(predict, 10.0, -SLOPES, important=True, **settings) == 7
    assert prediction_gap(predict, 10.0, -SLOPES, important=False, **settings) == 3


def test_pointing_game_by_hand():
    """Two pixels tie for the maximum, one of them in the region; a tolerance reaches both."""
    heat = np.array([[0.0, 1.0, 1.0, 0.5]])
    region = np.array([[True, True, False, False]])

    assert pointing_game(heat, region) == 0.5
    assert pointing_game(heat, region, tolerance=1) == 1
    assert pointing_game(-heat, region) == 1


def test_relevance_mass_by_hand():
    """Positive relevance alone counts: 1 of 4."""
    heat = np.array([[1.0, -5.0], [3.0, 0.0]])
    region = np.array([[True, True], [False, False]])

    assert relevance_mass(heat, region) == 0.25
    assert relevance_mass(-np.ones((2, 2)), region) == 0


def test_max_sensitivity_by_hand():
    """The farther of two attributions is 5 away from one of length 10."""
    found = max_sensitivity(np.array([6.0, 8.0]), np.array([[6.0, 9.0], [9.0, 4.0]]))

    assert found == pytest.approx(0.5)
    assert np.isnan(max_sensitivity(np.zeros(2), np.ones((1, 2))))


def test_every_measure_has_a_direction():
    """The league knows which way is good."""
    assert set(HIGHER_IS_BETTER) == {
        *("insertion", "deletion", "infidelity", "comprehensiveness", "sufficiency", "pgi"),
        *("pgu", "pointing", "mass", "sensitivity"),
    }
    assert Game(score=linear, n_features=4).full == 10
