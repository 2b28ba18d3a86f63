import tracemalloc

import numpy as np
import paper
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import problem
from scipy import stats

import eblime

COMMON = eblime.EBLIME(local=False)


def test_local_scales_are_the_default_without_a_grid():
    """`local` reads as a bool, and the name says when all features share one scale."""
    grid = eblime.methods.PublishedGrid()

    assert eblime.EBLIME().local is True
    assert eblime.EBLIME() == eblime.EBLIME(local=True)
    assert eblime.EBLIME(grid=grid).local is False
    assert eblime.EBLIME().name == "EBLIME"
    assert COMMON.name == "EBLIME (common ridge)"
    assert eblime.EBLIME(grid=grid).name == "EBLIME (published grid)"
    assert eblime.EBLIME().noise == "unequal"
    assert COMMON.noise == eblime.EBLIME(grid=grid).noise == "equal"
    assert eblime.EBLIME(noise="equal").name == "EBLIME (equal noise)"


def test_default_fit_has_local_scales(rng):
    """`fit` without a method is `EBLIME(local=True)`; the name "eblime-ridge" has one scale."""
    data = problem(rng, 30, 6)
    named, ridge = eblime.fit(*data, method="eblime-ridge"), eblime.fit(*data, method=COMMON)

    assert_array_equal(eblime.fit(*data).mean, eblime.fit(*data, method=eblime.EBLIME()).mean)
    assert_array_equal(named.mean, ridge.mean)
    assert not np.allclose(eblime.fit(*data).mean, ridge.mean, rtol=1e-4)


def test_paper_setting_is_the_published_one():
    """No intercept, a = b = 1, scores as they are, 20,000 values of (0, 1], 2,500 draws."""
    method = eblime.EBLIME.paper()

    assert (method.a, method.b, method.scale) == (1.0, 1.0, 1.0)
    assert (method.intercept, method.standardize, method.local) == ("none", False, False)
    assert (method.grid.n_lambdas, method.grid.upper, method.grid.draws) == (20_000, 1.0, 2_500)
    assert_allclose(method.grid.lambdas[[0, -1]], [5e-5, 1.0])


def test_paper_on_its_grid_equals_the_printed_sums(rng):
    """`draws=None` integrates the published grid exactly: mean and covariance by a literal loop."""
    data = problem(rng, 12, 3)
    post = eblime.fit(*data, method=eblime.EBLIME.paper(n_lambdas=50, upper=2.0, draws=None))
    grid = np.arange(1, 51) / 25
    logs = np.array([paper.log_posterior(*data, lam, 1.0, 1.0) for lam in grid])
    weights = np.exp(logs - logs.max()) / np.exp(logs - logs.max()).sum()
    parts = [paper.conditional(*data, lam, 1.0, 1.0) for lam in grid]
    mean = sum(w * loc for w, (loc, _, _) in zip(weights, parts, strict=True))
    second = sum(
        w * (scale * df / (df - 2) + np.outer(loc, loc))
        for w, (loc, scale, df) in zip(weights, parts, strict=True)
    )

    assert_allclose(post.mean, mean, rtol=1e-9)
    assert_allclose(post.cov, second - np.outer(mean, mean), rtol=1e-8, atol=1e-12)
    assert_allclose(post.lam.mean, paper.expected_lambda(*data, grid, 1.0, 1.0), rtol=1e-9)
    assert post.intercept == 0.0
    assert post.intercept_law is None


@pytest.mark.parametrize("sampler", ["gumbel", "categorical"])
def test_paper_draws_follow_the_integrated_grid(rng, sampler):
    """Algorithms 1 and 2, either sampler: Kolmogorov-Smirnov against the exact marginals."""
    data = problem(rng, 30, 4)
    setting = {"n_lambdas": 500, "upper": 5.0}
    drawn = eblime.fit(
        *data, method=eblime.EBLIME.paper(**setting, draws=8_000, sampler=sampler), rng=rng
    )
    exact = eblime.fit(*data, method=eblime.EBLIME.paper(**setting, draws=None))

    for column in exact.cdf(drawn.law.draws.beta).T:
        assert stats.kstest(column, "uniform").pvalue > 1e-5
    assert_allclose(drawn.mean, exact.mean, atol=5 * exact.sd.max() / np.sqrt(8_000))
    assert_allclose(drawn.sd, exact.sd, rtol=5 / np.sqrt(2 * 8_000))


def test_paper_draws_agree_with_algorithm_1_as_printed(rng):
    """The literal loops and the fast draws: two-sample Kolmogorov-Smirnov for each importance."""
    data = problem(rng, 10, 2)
    grid = np.arange(1, 101) / 100
    logs = np.array([paper.log_posterior(*data, lam, 1.0, 1.0) for lam in grid])
    lambdas = paper.algorithm_2(rng, logs, grid, 1_500)
    slow = paper.algorithm_1(rng, *data, lambdas, 1.0, 1.0)
    method = eblime.EBLIME.paper(n_lambdas=100, draws=6_000, sampler="gumbel")
    fast = eblime.fit(*data, method=method, rng=rng).law.draws

    assert stats.ks_2samp(lambdas, fast.lam).pvalue > 1e-5
    for j in range(2):
        assert stats.ks_2samp(slow[:, j], fast.beta[:, j]).pvalue > 1e-5


def test_paper_draws_are_reproducible(rng):
    """The same rng gives the same draws, another one others."""
    data = problem(rng, 30, 4)
    first, again, other = (eblime.fit(*data, method="eblime-paper", rng=r).mean for r in (1, 1, 2))

    assert_allclose(first, again, rtol=0)
    assert not np.array_equal(first, other)


def test_gumbel_sampler_holds_no_large_array(rng):
    """20,000 x 2,500 exponentials would be 400 MB; less than 30 MB are held at once."""
    data = problem(rng, 30, 4)
    method = eblime.EBLIME.paper(draws=200, sampler="gumbel")
    tracemalloc.start()
    eblime.fit(*data, method=method)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak < 30e6


def test_truncating_lambda_moves_the_answer(rng):
    """Where the data want lambda > 1 the published grid shrinks too little: a known departure."""
    masks, _, weights = problem(rng, 40, 20)
    scores = rng.normal(size=40)
    whole = eblime.fit(masks, scores, weights, eblime.EBLIME(a=1, b=1, intercept="none"))
    grid = eblime.methods.PublishedGrid(draws=None)
    cut = eblime.fit(masks, scores, weights, eblime.EBLIME(a=1, b=1, intercept="none", grid=grid))

    assert whole.lam.cdf(1.0) < 0.5
    assert np.linalg.norm(whole.mean) < np.linalg.norm(cut.mean)


def test_flat_intercept_with_published_grid(rng):
    """The settings combine: draws on the grid with an intercept and standardised scores."""
    masks, scores, weights = problem(rng, 40, 5)
    method = eblime.EBLIME(grid=eblime.methods.PublishedGrid(upper=50.0, draws=20_000))
    drawn = eblime.fit(masks, scores + 7, weights, method)
    exact = eblime.fit(masks, scores + 7, weights, COMMON)

    assert_allclose(drawn.mean, exact.mean, atol=0.1 * exact.sd.max())
    assert_allclose(drawn.intercept, exact.intercept, atol=0.1 * exact.intercept_law.sd)
    assert_allclose(drawn.r2, exact.r2, atol=0.01)


def test_a_linear_score_is_recovered(rng):
    """No lack of fit: the importances are the coefficients and the intervals close on them."""
    masks, _, weights = problem(rng, 80, 6)
    beta = rng.normal(size=6)
    post = eblime.fit(masks, 0.3 + masks @ beta, weights)

    assert_allclose(post.mean, beta, atol=1e-4)
    assert_allclose(post.intercept, 0.3, atol=1e-4)
    assert (np.diff(post.interval()) < 0.01).all()
    assert post.r2 > 1 - 1e-6


def test_scale_of_the_half_cauchy_shrinks(rng):
    """A small scale expects small importances and shrinks more."""
    masks, _, weights = problem(rng, 12, 8)
    scores = rng.normal(size=12)
    sizes = [
        np.linalg.norm(eblime.fit(masks, scores, weights, eblime.EBLIME(scale=s)).mean)
        for s in (0.01, 1.0, 100.0)
    ]

    assert sizes[0] < sizes[1] < sizes[2]


EDGES = {
    "fewer masks than features": (4, 9),
    "two masks": (2, 3),
    "one feature": (30, 1),
}


@pytest.mark.parametrize("case", EDGES)
@pytest.mark.parametrize("method", ["eblime", "eblime-ridge", "eblime-paper", "bayeslime", "lime"])
def test_small_problems_work(rng, case, method):
    """Nothing breaks and no number is NaN, however little there is to learn from."""
    post = eblime.fit(*problem(rng, *EDGES[case]), method=method)

    assert np.isfinite(post.mean).all()
    if method != "lime":
        assert not np.isnan(post.sd).any()
        assert not np.isnan(post.interval()).any()
        assert np.isfinite(post.prob_positive()).all()


@pytest.mark.parametrize(
    "method",
    ["eblime", "eblime-ridge", "bayeslime", eblime.BayesLIME(intercept="flat")],
)
def test_constant_scores_have_importance_zero(rng, method):
    """Scores that never move: a point mass at zero for the methods that do not know their scale."""
    masks, _, weights = problem(rng, 30, 4)
    post = eblime.fit(masks, np.zeros(30), weights, method)

    assert_allclose(post.mean, 0)
    assert_allclose(post.interval(), 0)
    assert_allclose(post.sd, 0)
    assert_allclose(post.cov, 0)
    assert_allclose(post.prob_positive(), 0.5)
    assert post.sigma2.mean == 0
    assert post.r2 == 1.0


@pytest.mark.parametrize(
    "method",
    ["eblime", "eblime-ridge", eblime.EBLIME(grid=eblime.methods.PublishedGrid())],
)
def test_constant_scores_rank_nobody(rng, method):
    """Nothing moves the scores: every rank is as likely as any other, for every feature."""
    post = eblime.fit(problem(rng, 30, 4)[0], np.zeros(30), method=method)

    assert_allclose(post.rank_probability(), 0.25, atol=5 * 0.44 / 100)
    assert_allclose(post.prob_positive(), 0.5)
    assert_allclose(post.prob_greater(), 0.5)
    assert (post.ranking().low == 1).all()
    assert (post.ranking().high == 4).all()


def test_one_heavy_mask_does_not_make_scores_constant(rng):
    """Scores vary, however little the other masks weigh."""
    masks, scores, _ = problem(rng, 60, 4)
    weights = [np.r_[1.0, np.full(59, size)] for size in (1e-20, 1e-31)]
    near, far = (eblime.fit(masks, scores, each, COMMON) for each in weights)
    local, away = (eblime.fit(masks, scores, each) for each in weights)

    assert_allclose(far.mean, near.mean, rtol=0.02)
    assert_allclose(local.mean, near.mean, atol=0.5 * near.sd.max())
    assert_allclose(away.mean, near.mean, atol=0.5 * near.sd.max())


def test_targets_get_the_draws_they_would_get_alone(rng):
    """The same seed for each of several targets."""
    masks, scores, weights = problem(rng, 30, 4)
    many = np.column_stack([scores, scores**2])
    together = eblime.methods.fit_targets(masks, many, weights, "eblime-paper", rng=3)

    for post, column in zip(together, many.T, strict=True):
        assert_allclose(post.mean, eblime.fit(masks, column, weights, "eblime-paper", rng=3).mean)


def test_constant_scores_are_the_intercept(rng):
    """With a free intercept any constant is met exactly."""
    masks, _, weights = problem(rng, 30, 4)
    post = eblime.fit(masks, np.full(30, 0.7), weights)

    assert_allclose(post.mean, 0)
    assert_allclose(post.intercept, 0.7)
    assert_allclose(post.intercept_law.interval(), 0.7)


def test_copied_column_shares_the_importance(rng):
    """Two equal columns: the sum is known, the split is not."""
    masks, _, weights = problem(rng, 100, 4)
    masks[:, 2] = masks[:, 0]
    scores = masks @ [0.6, 0.2, 0.0, -0.3] + 0.05 * rng.normal(size=100)
    post = eblime.fit(masks, scores, weights, COMMON)
    alone = eblime.fit(masks[:, [0, 1, 3]], scores, weights, COMMON)

    assert_allclose(post.mean[0], post.mean[2])
    assert_allclose(post.mean[0] + post.mean[2], alone.mean[0], rtol=0.05)
    total = post.cov[0, 0] + post.cov[2, 2] + 2 * post.cov[0, 2]
    assert total < 0.05 * post.cov[0, 0]


def test_constant_column_is_left_to_the_prior(rng):
    """A feature that is never hidden cannot be told from the intercept."""
    masks, scores, weights = problem(rng, 60, 4)
    masks[:, 1] = 1
    post = eblime.fit(masks, scores, weights)

    assert post.mean[1] == pytest.approx(0, abs=1e-12)
    assert post.prob_positive()[1] == pytest.approx(0.5)
    assert post.sd[1] > 3 * post.sd[0]


def test_two_thousand_features(rng):
    """A wide problem in bounded memory: nothing of size N x N or L x p x p."""
    masks, scores, weights = problem(rng, 400, 2000)
    tracemalloc.start()
    post = eblime.fit(masks, scores, weights)
    interval = post.interval()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert (interval[:, 0] < post.mean).all()
    assert (post.mean < interval[:, 1]).all()
    assert peak < 40 * masks.nbytes


def test_memory_is_linear_in_the_masks(rng):
    """20,000 masks: an N x N matrix would take 3.2 GB, the fit takes a few copies of the masks."""
    masks, scores, weights = problem(rng, 20_000, 20)
    tracemalloc.start()
    eblime.fit(masks, scores, weights).interval()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak < 8 * masks.nbytes


@pytest.mark.parametrize("name", ["a", "b", "scale"])
@pytest.mark.parametrize("value", [np.nan, np.inf, 0.0, -1.0])
def test_prior_settings_must_be_finite_and_positive(name, value):
    """NaN, infinity, zero and negative values are refused by name."""
    with pytest.raises(ValueError, match=rf"`{name}` must be finite and > 0; got"):
        eblime.EBLIME(**{name: value})


def test_other_settings_are_refused_by_name():
    """Words and counts that no method has."""
    with pytest.raises(ValueError, match=r"`intercept` must be one of 'flat', 'none'; got 'free'"):
        eblime.EBLIME(intercept="free")
    with pytest.raises(TypeError, match=r"`a` must be a number; got '1'"):
        eblime.EBLIME(a="1")
    with pytest.raises(ValueError, match=r"`sampler` must be one of 'categorical', 'gumbel'"):
        eblime.EBLIME.paper(sampler="exact")
    with pytest.raises(ValueError, match=r"`n_lambdas` must be >= 1; got 0"):
        eblime.EBLIME.paper(n_lambdas=0)
    with pytest.raises(ValueError, match=r"`upper` must be finite and > 0; got -1"):
        eblime.EBLIME.paper(upper=-1.0)
    with pytest.raises(TypeError, match=r"`grid` must be a PublishedGrid or None; got 5"):
        eblime.EBLIME(grid=5)
    with pytest.raises(TypeError, match=r"`standardize` must be True or False; got 'no'"):
        eblime.EBLIME(standardize="no")
    with pytest.raises(ValueError, match=r"`draws` must be >= 2; got 1"):
        eblime.EBLIME.paper(draws=1)
    with pytest.raises(TypeError, match=r"`local` must be True, False or None; got 1"):
        eblime.EBLIME(local=1)
    with pytest.raises(ValueError, match=r"`local=True`, .* need `grid=None`; got a Publish"):
        eblime.EBLIME(local=True, grid=eblime.methods.PublishedGrid())
