"""Laws at the edges: point masses, missing numbers, weak priors and moments that do not exist."""

from __future__ import annotations

import numpy as np
import pytest

import eblime
from eblime.core.lam import GridLambda
from eblime.core.laws import PointValue
from eblime.core.overall import least_squares
from eblime.laws import Draws, DrawsLaw, normal_law

GRID = GridLambda(nodes=np.arange(1, 1001) / 1000, weights=np.full(1000, 1 / 1000))
NUMBERS = [GRID, PointValue(value=1.0)]


def constant() -> eblime.Posterior:
    """The posterior of scores that are all the same: every importance is exactly zero."""
    masks = np.random.default_rng(0).integers(0, 2, size=(20, 3))
    return eblime.fit(masks, np.full(20, 0.3), method=eblime.EBLIME(local=False))


@pytest.mark.parametrize("law", NUMBERS, ids=lambda law: type(law).__name__)
def test_a_missing_number_has_no_probability(law) -> None:
    """NaN stays NaN; the ends of the line are 0 and 1."""
    assert np.isnan(law.cdf(np.nan))
    assert law.cdf(-np.inf) == 0
    assert law.cdf(np.inf) == 1


def test_importances_that_are_known_exactly_are_a_step() -> None:
    """Infinite arguments are allowed, and NaN stays NaN."""
    x = np.array([-np.inf, 0.0, np.inf, np.nan])[:, None]
    post = constant()

    np.testing.assert_array_equal(post.cdf(x)[:, 0], [0, 1, 1, np.nan])
    np.testing.assert_array_equal(post.pdf(x)[:, 0], [0, np.inf, 0, np.nan])


@pytest.mark.parametrize(
    "law",
    [normal_law(np.zeros(1), np.zeros((1, 1))), DrawsLaw(draws=Draws(beta=np.zeros((3, 1))))],
    ids=["normal", "draws"],
)
def test_the_density_of_a_point_mass(law) -> None:
    """Infinite at its place, zero elsewhere, NaN at NaN."""
    np.testing.assert_array_equal(
        law.pdf(np.array([[0.0], [1.0], [np.nan]])).ravel(), [np.inf, 0, np.nan]
    )


@pytest.mark.parametrize("precision", [1e-6, 1e-12, 1e-18])
def test_a_weak_prior_has_the_spread_of_least_squares(precision, rng) -> None:
    """Without any prior the covariance is `sigma^2 (Z'Z)^-1`, of centred masks."""
    masks = rng.integers(0, 2, size=(200, 4)).astype(float)
    scores = masks @ [1.0, -0.5, 0.2, 0.0] + 0.01 * rng.normal(size=200)
    post = eblime.fit(masks, scores, method=eblime.BayLIME(prior_precision=precision))
    centred = masks - masks.mean(axis=0)
    expected = post.sigma2.mean * np.linalg.inv(centred.T @ centred)

    np.testing.assert_allclose(post.cov, expected, rtol=1e-6, atol=1e-9 * expected.max())


def test_covariances_that_do_not_exist_agree_with_the_standard_deviations() -> None:
    """With two degrees of freedom a Shapley value has no variance."""
    masks = np.array([[1, 1, 1], [0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0]])
    scores = np.array([1.0, 0.0, 0.3, 0.1, 0.2, 0.6])
    post = eblime.fit(masks, scores, method="bayesshap")

    assert np.isinf(post.sd).all()
    np.testing.assert_array_equal(np.diag(post.cov), post.sd**2)
    assert np.isnan(post.cov[0, 1])


def test_a_last_mask_without_partner_leaves_the_other_pairs_together(rng) -> None:
    """What is even in the complement is no noise of the importances, with or without it."""
    half = rng.integers(0, 2, size=(30, 3)).astype(float)
    masks = np.stack([half, 1 - half], axis=1).reshape(-1, 3)
    scores = masks @ [1.0, 0.5, 0.0] + 5 * (masks[:, 0] == masks[:, 1])
    _, paired = least_squares(masks, scores, np.ones(60), intercept=True)
    _, odd = least_squares(masks[:-1], scores[:-1], np.ones(59), intercept=True)

    assert paired.max() < 1e-9
    assert odd.max() < 0.5  # 0.7 and more if each mask counted by itself


@pytest.mark.parametrize("beta", [np.zeros((1, 3)), np.zeros(3)], ids=["one draw", "one axis"])
def test_draws_without_spread_are_refused(beta) -> None:
    """A standard deviation needs two draws."""
    with pytest.raises(ValueError, match=r"`draws.beta` must have shape \(n, p\) with at least 2"):
        DrawsLaw(draws=Draws(beta=beta))


def test_a_normal_law_takes_lists_and_refuses_other_shapes() -> None:
    """Mean and covariance must be of the same features."""
    assert normal_law([1.0, 2.0], [[1.0, 0.0], [0.0, 4.0]]).sd.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match=r"got shapes \(2,\) and \(3, 3\)"):
        normal_law([1.0, 2.0], np.eye(3))
