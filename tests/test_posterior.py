import numpy as np
import pytest
from numpy.testing import assert_allclose
from problems import problem
from scipy import stats

import eblime

METHODS = [
    "eblime",
    "eblime-paper",
    "bayeslime",
    eblime.EBLIME.paper(draws=None, n_lambdas=1000),
    eblime.EBLIME(local=True),
    eblime.EBLIME(local=False),
    eblime.EBLIME(noise="unequal", local=False),
    eblime.EBLIME(noise="unequal", local=True),
]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("n", "p"), [(40, 6), (5, 9), (3, 1)])
def test_every_summary_has_its_shape(rng, method, n, p):
    """The public names of the posterior, whatever the method."""
    post = eblime.fit(*problem(rng, n, p), method=method)

    assert post.mean.shape == post.sd.shape == post.prob_positive().shape == (p,)
    assert post.cov.shape == post.prob_greater().shape == post.rank_probability().shape == (p, p)
    assert post.interval().shape == post.hdi(0.5).shape == (p, 2)
    assert post.quantile(0.3).shape == post.cdf(0.0).shape == post.pdf(0.1).shape == (p,)
    assert post.quantile([0.3, 0.4]).shape == (2, p)
    assert post.quantile([[0.3], [0.4]]).shape == (2, 1, p)
    assert post.cdf(np.linspace(-1, 1, 7)[:, None]).shape == (7, p)
    assert post.top_k_probability(1).shape == (p,)
    assert post.sample(11, rng=0).shape == (11, p)
    assert post.sigma2.sample(4, rng=0).shape == post.lam.sample(4, rng=0).shape == (4,)
    assert post.n_features == p
    assert post.n_masks == n
    assert f"n_features={p}" in repr(post)


@pytest.mark.parametrize("method", METHODS)
def test_summaries_agree_with_each_other(rng, method):
    """Intervals are quantiles, sd is the root of the covariance's diagonal, hdi is not wider."""
    post = eblime.fit(*problem(rng, 40, 6), method=method)
    interval = post.interval(0.9)

    assert_allclose(interval.T, post.quantile([0.05, 0.95]))
    assert_allclose(post.sd**2, np.diag(post.cov), rtol=1e-9)
    assert (np.diff(post.hdi(0.9)) <= np.diff(interval) * (1 + 1e-6)).all()
    assert (interval[:, 0] < post.mean).all()
    assert (post.mean < interval[:, 1]).all()
    assert_allclose(post.sigma2.cdf(post.sigma2.median), 0.5, atol=1e-9)


def test_sigma2_equals_the_mixture_of_inverse_gammas(rng):
    """Mean and distribution function against scipy's law at every node."""
    method = eblime.EBLIME(a=2, b=1, standardize=False, local=False)
    post = eblime.fit(*problem(rng, 40, 6), method=method)
    evidence, law = post.law.evidence, post.lam
    parts = stats.invgamma(evidence.df / 2, scale=evidence.q(law.nodes) / 2)
    x = np.array([0.02, 0.05, 0.1])

    assert_allclose(post.sigma2.mean, law.weights @ parts.mean(), rtol=1e-10)
    assert_allclose(post.sigma2.cdf(x), [law.weights @ parts.cdf(v) for v in x], rtol=1e-10)
    assert_allclose(post.sigma2.cdf(post.sigma2.quantile([0.01, 0.99])), [0.01, 0.99], rtol=1e-9)
    assert_allclose(post.sigma2.cdf(0.0), 0.0)


def test_r2_and_ess_equal_their_definitions(rng):
    """Weighted R^2 at the posterior mean, and (sum w)^2 / sum w^2."""
    masks, scores, weights = problem(rng, 40, 6)
    post = eblime.fit(masks, scores, weights)
    fitted = post.intercept + masks @ post.mean
    mean = np.average(scores, weights=weights)
    r2 = 1 - weights @ (scores - fitted) ** 2 / (weights @ (scores - mean) ** 2)

    assert_allclose(post.r2, r2)
    assert_allclose(post.ess, weights.sum() ** 2 / (weights**2).sum())


def test_table_lists_the_most_important_first(rng):
    """The printed table names the features and cuts the list."""
    post = eblime.fit(*problem(rng, 60, 6))
    names = ["age", "income", "job", "rooms", "sex", "zip"]
    lines = post.table(names, top=2).splitlines()

    assert lines[0].startswith("EBLIME: 60 masks, held-out R2 0.")
    assert lines[2].split()[0] == names[np.argmax(np.abs(post.mean))]
    assert lines[-1] == "... and 4 more features"
    assert post.table(names, top=5).splitlines()[-1] == "... and 1 more feature"
    assert "feature 0" in str(post)


@pytest.mark.parametrize("size", [0.0, 1e-9, 1e9])
def test_table_shows_any_magnitude(rng, size):
    """Tiny, huge and zero importances keep their digits."""
    masks, scores, weights = problem(rng, 60, 3)
    post = eblime.fit(masks, scores * size, weights)
    cell = post.table().splitlines()[2].split()[2]

    assert_allclose(float(cell), post.mean[np.argmax(np.abs(post.mean))], rtol=2e-3)


@pytest.mark.parametrize("prob", [0, 1, -0.1, 1.5, np.nan])
def test_prob_outside_the_unit_interval_is_refused(rng, prob):
    """Every summary that takes a probability says what it must be."""
    post = eblime.fit(*problem(rng, 20, 3))
    for ask in (post.interval, post.hdi, post.table):
        with pytest.raises(ValueError, match=r"`prob` must be > 0 and < 1; got"):
            ask(prob=prob)
    with pytest.raises(ValueError, match=r"`q` must be > 0 and < 1; got"):
        post.quantile([0.5, prob])


@pytest.mark.parametrize("method", METHODS)
def test_nan_stays_nan(rng, method):
    """The distribution functions do not invent an answer for NaN."""
    post = eblime.fit(*problem(rng, 20, 3), method=method)

    assert np.isnan(post.cdf(np.nan)).all()
    assert np.isnan(post.pdf(np.nan)).all()
    assert np.isnan(post.sigma2.cdf(np.nan))


def test_other_refusals(rng):
    """k, by, n, names and x are checked with their names."""
    post = eblime.fit(*problem(rng, 20, 3))
    with pytest.raises(ValueError, match=r"`k` must be >= 1 and <= 3; got 4"):
        post.top_k_probability(4)
    with pytest.raises(ValueError, match=r"`by` must be one of 'abs', 'value'; got 'size'"):
        post.ranking("size")
    with pytest.raises(TypeError, match=r"`n` must be a whole number; got 2.5"):
        post.sample(2.5)
    with pytest.raises(ValueError, match=r"`n` must be >= 1; got 0"):
        post.sample(0)
    with pytest.raises(ValueError, match=r"one entry for each of the 3 features; got 2"):
        post.table(["a", "b"])
    with pytest.raises(ValueError, match=r"`prob` must be one number; got shape \(2,\)"):
        post.interval([0.5, 0.9])
    with pytest.raises(ValueError, match=r"`k` must be >= 1 and <= 3; got 4"):
        post.ranking().credible_set(4)
    with pytest.raises(ValueError, match=r"`x` must broadcast against the 3 features"):
        post.pdf(np.zeros(7))


def test_posterior_is_frozen(rng):
    """Results cannot be changed behind the user's back."""
    post = eblime.fit(*problem(rng, 20, 3))
    with pytest.raises(AttributeError):
        post.r2 = 1.0


def test_no_probability_is_printed_as_zero_or_one(rng):
    """The prior decides the last digits; numbers stay as they are."""
    masks = rng.integers(0, 2, size=(100, 3))
    post = eblime.fit(masks, masks @ [1.0, -1.0, 0.0] + 0.01 * rng.normal(size=100))
    first, second, _ = post.table(top=3).split("\n")[2:]

    assert {first.split()[-1], second.split()[-1]} == {">.99", "<.01"}
    assert post.prob_positive()[0] > 0.9999
