"""BayLIME: the formulas of its paper, written out; the evidence of scikit-learn; its priors."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from problems import problem

import eblime
from eblime.methods.baylime import BayLIME


def dense(masks, scores, weights, centre, precision, alpha):
    """The posterior as printed, with inverses: mean and covariance."""
    X = masks - weights @ masks / weights.sum()
    y = scores - weights @ scores / weights.sum()
    S = np.linalg.inv(np.diag(precision) + alpha * (X.T * weights) @ X)
    return S @ (precision * centre + alpha * (X.T * weights) @ y), S


def mackay(masks, scores, weights, precision=None, centre=0.0):
    """Evidence maximisation as printed, with the hyper-priors' rate in units of the scores."""
    X = (masks - weights @ masks / weights.sum()) * np.sqrt(weights)[:, None]
    left = scores - masks @ np.full(masks.shape[1], centre)
    y = (left - weights @ left / weights.sum()) * np.sqrt(weights)
    n, p = X.shape
    unit = y @ y / weights.sum()
    alpha, lam = 1 / unit, 1.0
    for _ in range(5000):
        prior = lam * np.eye(p) if precision is None else np.diag(precision)
        S = np.linalg.inv(prior + alpha * X.T @ X)
        beta = alpha * S @ X.T @ y
        gamma = np.trace(alpha * S @ X.T @ X)
        alpha = (n - gamma + 2e-6) / (np.sum((y - X @ beta) ** 2) + 2e-6 * unit)
        lam = (gamma + 2e-6) / (beta @ beta + 2e-6 * unit)
    return alpha, lam


@pytest.mark.parametrize(("n", "p"), [(40, 5), (6, 9)])
def test_full_prior_equals_the_dense_formula(rng, n, p):
    """Mean and covariance with a prior of its own for each feature, exactly."""
    masks, scores, weights = problem(rng, n, p)
    centre, precision = rng.normal(size=p), rng.uniform(0.5, 20, size=p)
    method = BayLIME(prior_mean=centre, prior_precision=precision, noise_precision=3.0)
    post = eblime.fit(masks, scores, weights, method)
    mean, cov = dense(masks, scores, weights, centre, precision, 3.0)

    assert method.name == "BayLIME (full prior)"
    assert_allclose(post.mean, mean, rtol=1e-9, atol=1e-12)
    assert_allclose(post.cov, cov, rtol=1e-9, atol=1e-12)
    assert post.sigma2.mean == pytest.approx(1 / 3)


def test_non_informative_equals_evidence_maximisation(rng):
    """Both precisions are those of the printed iteration, with weights."""
    data = problem(rng, 40, 5)
    post = eblime.fit(*data, method="baylime")
    alpha, lam = mackay(*data)
    mean, cov = dense(*data, np.zeros(5), np.full(5, lam), alpha)

    assert_allclose(1 / post.sigma2.mean, alpha, rtol=1e-7)
    assert_allclose(post.lam.mean, lam / alpha, rtol=1e-7)
    assert_allclose(post.mean, mean, rtol=1e-7, atol=1e-10)
    assert_allclose(post.cov, cov, rtol=1e-6, atol=1e-12)


def test_non_informative_equals_scikit_learn(rng):
    """The judge of the original is scikit-learn's BayesianRidge; scores of variance one."""
    linear_model = pytest.importorskip("sklearn.linear_model")
    masks, scores, _ = problem(rng, 60, 4)
    scores = scores / scores.std()
    judge = linear_model.BayesianRidge(tol=1e-12, max_iter=5000).fit(masks, scores)
    post = eblime.fit(masks, scores, method="baylime")

    assert_allclose(post.mean, judge.coef_, rtol=1e-6)
    assert_allclose(post.sd, np.sqrt(np.diag(judge.sigma_)), rtol=1e-5)
    assert_allclose(post.intercept, judge.intercept_, rtol=1e-6)


def test_partial_prior_fits_the_noise_alone(rng):
    """The precision of the noise is fitted, given the prior of the importances."""
    data, precision = problem(rng, 40, 3), np.array([1.0, 5.0, 50.0])
    post = eblime.fit(*data, method=BayLIME(prior_mean=0.2, prior_precision=precision))
    alpha, _ = mackay(*data, precision=precision, centre=0.2)
    mean, cov = dense(*data, np.full(3, 0.2), precision, alpha)

    assert_allclose(1 / post.sigma2.mean, alpha, rtol=1e-7)
    assert_allclose(post.mean, mean, rtol=1e-7)
    assert_allclose(post.cov, cov, rtol=1e-7, atol=1e-12)


def test_units_do_not_matter(rng):
    """Scores a million times smaller have importances a million times smaller."""
    masks, scores, weights = problem(rng, 40, 4)
    post = eblime.fit(masks, scores, weights, "baylime")
    small = eblime.fit(masks, 1e-6 * scores, weights, "baylime")

    assert_allclose(small.mean, 1e-6 * post.mean, rtol=1e-6)
    assert_allclose(small.sd, 1e-6 * post.sd, rtol=1e-6)


def test_prior_from_another_explanation():
    """The means and precisions of an explanation are the prior, and stay in a saved file."""
    score = lambda texts: [("good" in t) - 0.5 * ("bad" in t) for t in texts]  # noqa: E731
    text = "a good film with a bad end and a few nice songs"
    explainer = eblime.TextExplainer(score, n_masks=64)
    first = explainer.explain(text, rng=0)
    method = BayLIME(prior=first)
    second = eblime.TextExplainer(score, n_masks=64, method=method).explain(text, rng=1)

    assert_allclose(method.prior_mean, first.posterior.mean)
    assert_allclose(method.prior_precision, first.posterior.sd**-2)
    assert second.posterior.method == "BayLIME (partial prior)"
    assert (second.posterior.sd < first.posterior.sd).all()


def test_a_prior_survives_a_file(tmp_path):
    """A saved explanation has the prior's numbers and the same posterior."""
    score = lambda texts: [("good" in t) - 0.5 * ("bad" in t) for t in texts]  # noqa: E731
    text = "a good film with a bad end and a few nice songs"
    e = eblime.TextExplainer(score, n_masks=64).explain(text)
    new = e.refit(BayLIME(prior=e, noise_precision=30.0))
    loaded = eblime.load(new.save(tmp_path / "e.eblime"))

    assert loaded.method == new.method
    assert_allclose(loaded.posterior.mean, new.posterior.mean)


def test_held_out_r2_equals_refits(rng):
    """Leave-one-out at the fitted precisions, one fit per answer."""
    masks, scores, weights = problem(rng, 25, 3)
    centre, precision = np.array([0.3, 0.0, -0.2]), np.array([2.0, 9.0, 4.0])
    method = BayLIME(prior_mean=centre, prior_precision=precision, noise_precision=5.0)
    post = eblime.fit(masks, scores, weights, method)
    missed, about = [], []
    for i in range(25):
        rest = np.arange(25) != i
        one = eblime.fit(masks[rest], scores[rest], weights[rest], method)
        missed.append(scores[i] - one.intercept - masks[i] @ one.mean)
        about.append(scores[i] - weights[rest] @ scores[rest] / weights[rest].sum())

    assert_allclose(
        post.r2_held_out,
        1 - weights @ np.square(missed) / (weights @ np.square(about)),
        rtol=1e-8,
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"noise_precision": 0.5}, "`noise_precision` need `prior_precision`"),
        ({"prior_mean": 0.5}, "`prior_mean` and `noise_precision` need `prior_precision`"),
        ({"prior_precision": [1.0, -1.0]}, "`prior_precision` must be > 0"),
        ({"prior_mean": [np.nan], "prior_precision": 1.0}, "`prior_mean` must be a finite number"),
    ],
)
def test_contradictions_are_refused(settings, message):
    """Settings without the one that they need are refused."""
    with pytest.raises(ValueError, match=message):
        BayLIME(**settings)


def test_other_refusals(rng):
    """A prior without a spread, of something else, or for other features."""
    data = problem(rng, 30, 4)
    with pytest.raises(ValueError, match="is a point estimate; give `prior_precision` too"):
        BayLIME(prior=eblime.fit(*data, method="lime"))
    with pytest.raises(TypeError, match="`prior` must be an explanation or a posterior; got a str"):
        BayLIME(prior="lime")
    with pytest.raises(ValueError, match="one per feature; got 2 for 4"):
        eblime.fit(*data, method=BayLIME(prior_mean=[0.0, 1.0], prior_precision=1.0))
