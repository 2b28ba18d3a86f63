import numpy as np
import pytest
from numpy.testing import assert_allclose
from problems import problem
from scipy import stats

import eblime


def published(masks, scores, weights):
    """The published recipe, dense: mean, V and s^2 of [intercept, beta]."""
    X = np.column_stack([np.ones(len(masks)), masks])
    W = np.diag(weights)
    V = np.linalg.inv(X.T @ W @ X + np.eye(X.shape[1]))
    phi = V @ X.T @ W @ scores
    gap = scores - X @ phi
    return phi, V, (gap @ W @ gap + phi @ phi) / len(scores)


@pytest.mark.parametrize(("n", "p"), [(50, 6), (5, 9)])
def test_closed_form_equals_the_published_recipe(rng, n, p):
    """Mean, variance and interval of the Student t with N degrees of freedom."""
    data = problem(rng, n, p)
    post = eblime.fit(*data, method="bayeslime")
    phi, V, s2 = published(*data)
    judge = stats.t(n, loc=phi[1:], scale=np.sqrt(s2 * np.diag(V)[1:]))

    assert_allclose(post.mean, phi[1:], rtol=1e-9, atol=1e-12)
    assert_allclose(post.intercept, phi[0], rtol=1e-9)
    assert_allclose(post.interval(0.9).T, judge.interval(0.9), rtol=1e-9)
    assert_allclose(post.cov, s2 * V[1:, 1:] * n / (n - 2), rtol=1e-8, atol=1e-12)
    assert_allclose(post.intercept_law.sd**2, s2 * V[0, 0] * n / (n - 2), rtol=1e-9)


def test_interval_equals_the_published_sampling(rng):
    """10,000 draws, the 95th percentile of |draw - mean|: within 5 standard errors of ours."""
    masks, scores, weights = problem(rng, 60, 5)
    post = eblime.fit(masks, scores, weights, "bayeslime")
    phi, V, s2 = published(masks, scores, weights)
    sigma2 = len(scores) * s2 / rng.chisquare(len(scores), 10_000)
    noise = rng.multivariate_normal(np.zeros(len(phi)), V, 10_000) * np.sqrt(sigma2)[:, None]
    half = np.percentile(np.abs(noise), 95, axis=0)[1:]

    ours = np.diff(post.interval()).ravel() / 2
    assert_allclose(half / ours, 1.0, atol=5 * 0.0107)  # sd of the percentile, normal law


def test_draws_of_a_penalised_intercept_without_full_rank(rng):
    """Fewer masks than features: draws still follow the exact marginals."""
    post = eblime.fit(*problem(rng, 5, 9), method="bayeslime")
    chance = post.cdf(post.sample(20_000, rng))

    assert min(stats.kstest(column, "uniform").pvalue for column in chance.T) > 1e-6
    assert_allclose(np.cov(post.sample(50_000, rng).T), post.cov, atol=0.15 * post.sd.max() ** 2)


@pytest.mark.parametrize("intercept", ["flat", "none"])
def test_other_intercepts_equal_ridge_with_lambda_one(rng, intercept):
    """The mean is lime's ridge with alpha = 1 and the same intercept."""
    data = problem(rng, 40, 5)
    post = eblime.fit(*data, method=eblime.BayesLIME(intercept=intercept))
    ridge = eblime.fit(*data, method=eblime.LIME(intercept=intercept))

    assert_allclose(post.mean, ridge.mean)
    assert_allclose(post.intercept, ridge.intercept, atol=1e-15)
    assert post.lam.mean == 1.0


def test_flat_intercept_needs_two_masks(rng):
    """One mask leaves no degree of freedom at all."""
    with pytest.raises(ValueError, match="at least 2 masks of positive weight; got 1"):
        eblime.fit([[1, 0], [0, 1]], [0.3, 0.1], [1, 0], method=eblime.BayesLIME(intercept="flat"))
    with pytest.raises(ValueError, match="`intercept` must be one of 'penalised'"):
        eblime.BayesLIME(intercept="free")
