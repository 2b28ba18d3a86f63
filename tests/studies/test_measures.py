"""Measures of the studies, by hand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from problems import problem

import eblime
from eblime.answers import Answers
from studies.measures import (
    max_sensitivity,
    pointing_game,
    prediction_gap,
    relevance_mass,
    ridge_interval,
)

SLOPES = np.array([4.0, 1.0, 3.0, 2.0])


def test_prediction_gaps_by_hand():
    """A perturbed column loses its slope: the two largest move the score by 7, the others by 3."""

    def predict(columns):
        return np.full(3, 10 - SLOPES[columns].sum())

    settings = {"top": 2, "prediction": 10.0}
    assert prediction_gap(-SLOPES, predict, important=True, **settings) == 7
    assert prediction_gap(-SLOPES, predict, important=False, **settings) == 3


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


def test_ridge_interval_equals_the_dense_formula(rng):
    """Standard deviations of a weighted ridge regression, written out."""
    masks, scores, weights = problem(rng, 40, 4)
    W = np.diag(weights)
    X = masks - weights @ masks / weights.sum()
    whole = np.column_stack([np.ones(40), masks])
    gap = scores - whole @ np.linalg.solve(whole.T @ W @ whole, whole.T @ W @ scores)
    A = np.linalg.inv(X.T @ W @ X + 2 * np.eye(4))
    sd = np.sqrt(np.diag(gap @ W @ gap / 35 * A @ X.T @ W @ X @ A))
    ends = ridge_interval(Answers(masks=masks, scores=scores, weights=weights), alpha=2.0)
    mean = eblime.fit(masks, scores, weights, eblime.LIME(alpha=2.0)).mean

    assert_allclose(ends, np.stack([mean - 1.959964 * sd, mean + 1.959964 * sd], 1), rtol=1e-6)
