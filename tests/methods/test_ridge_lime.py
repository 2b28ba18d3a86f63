import numpy as np
import pytest
from numpy.testing import assert_allclose
from problems import problem
from sklearn.linear_model import Ridge

import eblime


@pytest.mark.parametrize(("n", "p"), [(50, 6), (5, 9)])
@pytest.mark.parametrize("intercept", ["flat", "none"])
@pytest.mark.parametrize("alpha", [1e-3, 1.0, 30.0])
def test_equals_weighted_ridge(rng, n, p, intercept, alpha):
    """Coefficients, intercept and R^2 are scikit-learn's to 1e-10."""
    masks, scores, weights = problem(rng, n, p)
    post = eblime.fit(masks, scores, weights, eblime.LIME(alpha=alpha, intercept=intercept))
    judge = Ridge(alpha=alpha, fit_intercept=intercept == "flat", solver="cholesky")
    judge.fit(masks, scores, sample_weight=weights)

    assert_allclose(post.mean, judge.coef_, rtol=1e-10, atol=1e-10)
    assert_allclose(post.intercept, judge.intercept_, rtol=1e-10, atol=1e-10)
    assert_allclose(post.r2, judge.score(masks, scores, sample_weight=weights), atol=1e-10)
    assert post.lam.mean == alpha


@pytest.mark.parametrize("size", [1e5, 1e8, 1e-8])
def test_equals_ridge_on_badly_scaled_columns(rng, size):
    """A column in other units: no feature is taken for one that never varies."""
    masks, scores, weights = problem(rng, 50, 6)
    masks[:, 0] *= size
    post = eblime.fit(masks, scores, weights, "lime")
    judge = Ridge(alpha=1.0, solver="svd").fit(masks, scores, sample_weight=weights)

    assert_allclose(post.mean, judge.coef_, rtol=1e-7, atol=1e-12)


def test_spread_is_refused_with_a_way_out(rng):
    """A point estimate has no interval; the error names the methods that have one."""
    post = eblime.fit(*problem(rng, 30, 4), method="lime")
    for ask in (
        lambda: post.sd,
        lambda: post.cov,
        lambda: post.sigma2,
        post.interval,
        post.hdi,
        post.prob_positive,
        post.prob_greater,
        lambda: post.quantile(0.5),
        lambda: post.pdf(0.0),
        lambda: post.cdf(0.0),
        lambda: post.sample(3),
        lambda: post.top_k_probability(1),
        post.ranking,
    ):
        with pytest.raises(eblime.core.NoSpreadError, match=r"(?i)eblime.*bayeslime"):
            ask()


def test_table_of_a_point_estimate_has_means_only(rng):
    """The table prints what there is."""
    text = str(eblime.fit(*problem(rng, 30, 4), method="lime"))

    assert "mean" in text
    assert "low" not in text


def test_alpha_must_be_positive():
    """A ridge parameter of zero is refused."""
    with pytest.raises(ValueError, match="`alpha` must be finite and > 0; got 0"):
        eblime.LIME(alpha=0)
    assert np.isfinite(eblime.LIME(alpha=1e-8).alpha)
