import numpy as np
import paper
import pytest
from numpy.testing import assert_allclose
from problems import problem
from scipy import integrate, stats

import eblime
from eblime.core.lam import gauss_rule, log_local_precision
from eblime.core.local import release

A, B = 1.5, 0.4
METHOD = eblime.EBLIME(a=A, b=B, standardize=False, local=True)


def test_gauss_rule_keeps_the_moments(rng):
    """Ten nodes have the first twenty moments of a measure of two hundred."""
    x, weights = np.sort(rng.normal(size=200)), rng.dirichlet(np.ones(200))
    nodes, few = gauss_rule(x, weights, 10)

    for degree in range(20):
        assert_allclose(few @ nodes**degree, weights @ x**degree, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("size", [1, 3])
def test_gauss_rule_of_a_few_points_is_those_points(size):
    """Asked for more nodes than there are, it gives the measure itself."""
    x, weights = np.arange(size) + 5.0, np.full(size, 1 / size)
    nodes, few = gauss_rule(x, weights, 10)

    assert_allclose(nodes, x)
    assert_allclose(few, weights)


def test_local_prior_is_a_density_with_the_stated_distribution():
    """It integrates to one, and P(tau <= t) = 1 - (1 + t^2)^-1/2."""

    def density(x):
        return np.exp(log_local_precision(np.array(x)))

    assert_allclose(integrate.quad(density, -80, 80)[0], 1.0, rtol=1e-8)
    for t in (0.3, 1.0, 5.0):  # tau <= t where log(phi) >= -2 log(t)
        assert_allclose(
            integrate.quad(density, -2 * np.log(t), 80)[0], 1 - (1 + t**2) ** -0.5, rtol=1e-8
        )
    assert_allclose(log_local_precision(np.log(0.2)), paper.log_local_prior(0.2) + np.log(0.2))


@pytest.mark.parametrize(("n", "p"), [(20, 3), (8, 10)])
def test_released_laws_equal_the_literal_forms(rng, n, p):
    """Location, scale and relative evidence of one feature's precision, by explicit inverses."""
    data = problem(rng, n, p)
    data[0][1] = 0  # every column varies
    law = eblime.fit(*data, method=METHOD).law
    found = release(law.base, law.fitted, n_lambdas=8)
    locs, spreads = found.laws()
    x, _ = gauss_rule(np.log(law.base.lam.nodes), law.base.lam.weights, 8)
    scales = np.exp(-law.fitted / 2)
    start = 32  # where the precision is the fitted one
    for node in (2, 5):
        for j in range(p):
            kappa = np.exp(x[node] + law.fitted)
            one = paper.local_log_evidence(*data, kappa, A, B) + paper.log_local_prior(
                np.exp(law.fitted[j])
            )
            for step in (26, 31, 35):
                kappa[j] = np.exp(x[node] + found.logs[step, j])
                loc, cov, _ = paper.local_conditional(*data, kappa, A, B)
                log_ratio = paper.local_log_evidence(*data, kappa, A, B) - one
                log_ratio += paper.log_local_prior(np.exp(found.logs[step, j])) + (step - start)
                ours = found.weights[node, :, j]

                assert_allclose(locs[node, step, j] * scales[j], loc[j], rtol=1e-6, atol=1e-9)
                assert_allclose(spreads[node, step, j] * scales[j], cov[j, j] ** 0.5, rtol=1e-6)
                assert_allclose(np.log(ours[step] / ours[start]), log_ratio, rtol=1e-6, atol=1e-6)


def test_marginals_equal_a_literal_double_integral(rng):
    """The distribution function of each importance, by brute force over (lambda, phi_j)."""
    data = problem(rng, 14, 2)
    post = eblime.fit(*data, method=METHOD)
    at = post.quantile([0.025, 0.3, 0.975])
    log_lambdas, log_phis = np.arange(-14.0, 36.0), np.arange(-36.0, 20.0)
    for j in range(2):
        logs, chances = [], []
        for x in log_lambdas:
            for y in log_phis[log_phis + x > -14]:  # the inverses have no digits below
                own = post.law.fitted.copy()
                own[j] = y
                kappa = np.exp(x + own)
                prior = paper.log_prior(np.exp(x)) + x + paper.log_local_prior(np.exp(y)) + y
                logs.append(paper.local_log_evidence(*data, kappa, A, B) + prior)
                loc, cov, df = paper.local_conditional(*data, kappa, A, B)
                chances.append(stats.t.cdf((at[:, j] - loc[j]) / np.sqrt(cov[j, j]), df))
        weights = np.exp(np.array(logs) - np.max(logs))

        assert_allclose(weights @ chances / weights.sum(), [0.025, 0.3, 0.975], atol=2e-4)


def exact_pair(data):
    """Means and sds of the whole hierarchy, p = 2: every precision integrated."""
    x, y = np.arange(-8, 13, 1.5), np.arange(-13, 14, 1.5)
    nodes = np.array(np.meshgrid(x, y, y, indexing="ij")).reshape(3, -1).T
    logs, locs, variances = [], [], []
    for lam, *own in nodes:
        kappa = np.exp(lam + np.array(own))
        prior = paper.log_prior(np.exp(lam)) + lam
        prior += sum(paper.log_local_prior(np.exp(v)) + v for v in own)
        logs.append(paper.local_log_evidence(*data, kappa, A, B) + prior)
        loc, cov, df = paper.local_conditional(*data, kappa, A, B)
        locs.append(loc)
        variances.append(np.diag(cov) * df / (df - 2))
    weights = np.exp(np.array(logs) - np.max(logs))
    weights /= weights.sum()
    mean = weights @ np.array(locs)
    return mean, np.sqrt(weights @ (np.array(variances) + (np.array(locs) - mean) ** 2))


@pytest.mark.slow
def test_the_whole_hierarchy_is_near(rng):
    """The other features' precisions are fitted, not integrated: a fraction of an sd away."""
    data = problem(rng, 16, 2)
    post = eblime.fit(*data, method=METHOD)
    mean, sd = exact_pair(data)

    assert_allclose(post.mean, mean, atol=0.1 * sd.max())
    assert_allclose(post.sd, sd, rtol=0.1)


@pytest.mark.slow
def test_joint_law_agrees_with_its_draws_and_marginals(rng):
    """Quantiles, covariance and order probabilities against 8,000 draws."""
    data = problem(rng, 40, 6)
    post = eblime.fit(*data, method=METHOD)
    n = 8_000
    beta = post.sample(n, rng=1)
    chances = post.cdf(beta)
    greater = (beta[:, :, None] > beta[:, None]).mean(axis=0)
    np.fill_diagonal(greater, 0.5)

    for column in chances.T:
        assert stats.kstest(column, "uniform").pvalue > 1e-5
    assert_allclose(greater, post.prob_greater(), atol=5 * 0.5 / np.sqrt(n) + 0.002)
    sd = np.outer(post.sd, post.sd)
    assert_allclose(np.cov(beta, rowvar=False) / sd, post.cov / sd, atol=0.08)
    assert_allclose(post.prob_positive(), (beta > 0).mean(axis=0), atol=5 * 0.5 / np.sqrt(n))
    assert_allclose(np.diag(post.cov), post.sd**2)
    assert np.linalg.eigvalsh(post.cov).min() > 0


def test_copied_columns_move_against_each_other(rng):
    """Two equal columns: the sum is known better than either, also in the draws.

    Releasing one while its copy stays as fitted gives each somewhat more than its half.
    """
    masks, _, weights = problem(rng, 100, 4)
    masks[:, 2] = masks[:, 0]
    scores = masks @ [0.6, 0.2, 0.0, -0.3] + 0.05 * rng.normal(size=100)
    post = eblime.fit(masks, scores, weights, eblime.EBLIME(local=True))

    assert_allclose(post.mean[0], post.mean[2])
    assert_allclose(post.mean[0] + post.mean[2], 0.6, rtol=0.2)
    assert post.cov[0, 2] < -0.8 * post.cov[0, 0]


def test_a_large_importance_among_many_small_is_not_shrunk(rng):
    """One strong feature of sixty: its own scale shrinks it less, and the others more."""
    masks = rng.integers(0, 2, size=(90, 60)).astype(float)
    scores = 2.0 * masks[:, 0] + rng.normal(size=90)
    common, local = (
        eblime.fit(masks, scores, method=eblime.EBLIME(local=local)) for local in (False, True)
    )

    assert common.mean[0] < local.mean[0]
    assert np.mean(local.sd[1:]) < np.mean(common.sd[1:])


def test_a_column_that_never_varies_keeps_the_common_scale(rng):
    """Nothing is known about it: no heavy tail that would rank it first."""
    masks, scores, weights = problem(rng, 60, 4)
    masks[:, 1] = 1
    post = eblime.fit(masks, scores, weights, eblime.EBLIME(local=True))

    assert post.law.fitted[1] == 0
    assert post.mean[1] == pytest.approx(0, abs=1e-12)
    assert post.prob_positive()[1] == pytest.approx(0.5)
    assert np.isfinite(post.sd[1])
