from functools import partial

import numpy as np
import paper
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import problem
from scipy import integrate, stats

import eblime
from eblime.answers import Answers
from eblime.core.lam import (
    Evidence,
    few_lambdas,
    half_line_lambda,
    log_local_precision,
)
from eblime.core.local import GaussianCopula, Level, conditionals, fit_local
from eblime.core.student import share_of_positive

A, B = 1.5, 0.4
METHOD = eblime.EBLIME(a=A, b=B, standardize=False, local=True)


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


@pytest.mark.parametrize("null", [False, True])
def test_few_lambdas_integrate_as_many_do(rng, null):
    """Means of functions of lambda under a strong, a weak and no signal, several at once."""
    d, signal = np.sort(rng.gamma(2.0, 20.0, size=(3, 6)), axis=1)[:, ::-1], rng.normal(size=(3, 6))
    k = signal * np.array([[30.0], [1.0], [0.0]])
    floor, df = np.array([0.5, 40.0, 40.0]), np.array([50.0, 50.0, 20.5])
    x, weights, q = few_lambdas(d, k, floor, df, n=15, scale=1.5, null=null)
    for b in range(3):
        evidence = Evidence(d=d[b], k=k[b], floor=floor[b], df=df[b])
        law = half_line_lambda(evidence, scale=1.5, null=null)
        for function in (lambda x: 1 / (1 + np.exp(x) / 30), lambda x: x, lambda x: np.exp(-x / 4)):
            exact = law.weights @ function(np.log(law.nodes))
            assert_allclose(weights[b] @ function(x[b]), exact, rtol=5e-3, atol=5e-3)
        assert_allclose(q[b], evidence.q(np.exp(x[b])))


def level_of(law):
    """The regression at the fitted precisions, B = 1."""
    return Level.join([law.basis], [law.evidence])


@pytest.mark.parametrize(("n", "p"), [(20, 3), (8, 10)])
def test_released_laws_equal_the_literal_forms(rng, n, p):
    """Location, scale and relative evidence of one feature's precision, by explicit inverses."""
    data = problem(rng, n, p)
    data[0][1] = 0  # every column varies
    law = eblime.fit(*data, method=METHOD).law
    level = level_of(law)
    found = conditionals(level, 8, 1.0)
    x = found.x[..., 0]
    steps = np.array([-6.0, -1.0, 0.0, 3.0])
    penalty = np.exp(x)[:, :, None, None] * np.exp(steps)[:, None]
    f, q, log_evidence = found.release(penalty, level.df)
    locs = found.b[:, :, None] / f
    spreads = np.sqrt(q / level.df[0] * found.spread[:, :, None] / f)
    scales = np.exp(-law.fitted / 2)
    for node in (2, 5):
        for j in range(p):
            kappa = np.exp(x[0, node] + law.fitted)
            one = paper.local_log_evidence(*data, kappa, A, B)
            for step, log_psi in enumerate(steps):
                kappa[j] = np.exp(x[0, node] + law.fitted[j] + log_psi)
                loc, cov, _ = paper.local_conditional(*data, kappa, A, B)
                ratio = paper.local_log_evidence(*data, kappa, A, B) - one - 0.5 * log_psi
                ours = log_evidence[0, node, :, j]

                assert_allclose(locs[0, node, step, j] * scales[j], loc[j], rtol=1e-6, atol=1e-9)
                assert_allclose(spreads[0, node, step, j] * scales[j], cov[j, j] ** 0.5, rtol=1e-6)
                assert_allclose(ours[step] - ours[2], ratio, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("p", [1, 5, 13])
def test_many_at_once_equal_each_alone_to_the_last_bit(rng, p):
    """Inputs of a run may be fitted in any company."""
    many = []
    for _ in range(7):
        masks, scores, weights = problem(rng, 60, p)
        many.append(Answers(masks=masks, scores=scores, weights=weights))
    together = eblime.EBLIME().fit_targets(many)
    for answers, post in zip(many, together, strict=True):
        alone = eblime.EBLIME().fit(rng, answers)

        assert_array_equal(post.mean, alone.mean)
        assert_array_equal(post.interval(), alone.interval())
        assert post.r2_held_out == alone.r2_held_out


def test_the_careful_way_agrees_where_both_apply(rng):
    """Decomposing the masks again at every step, or the sums of squares alone."""
    data = Answers(**dict(zip(("masks", "scores", "weights"), problem(rng, 50, 6), strict=True)))
    method = eblime.EBLIME(noise="equal")
    [given] = method._problems([data])
    [careful] = fit_local(
        partial(method._careful_level, given), np.array([given.response.unit]), 6, scale=1.0
    )
    [quick] = method._local_laws([given])

    assert_allclose(quick.mean, careful.mean, rtol=1e-9)
    assert_allclose(
        quick.quantile(np.array([0.025, 0.9])), careful.quantile(np.array([0.025, 0.9]))
    )


def test_marginals_equal_a_literal_double_integral(rng):
    """The distribution function of each importance, by brute force over (lambda, phi_j)."""
    data = problem(rng, 14, 2)
    post = eblime.fit(*data, method=METHOD)
    at = post.law.alone.quantile(np.array([[0.025], [0.3], [0.975]]))
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

        assert_allclose(weights @ chances / weights.sum(), [0.025, 0.3, 0.975], atol=5e-4)


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


def copula_of(*functions):
    """Functions of normal scores with correlations .6 and -.5, as tables."""
    z = np.linspace(-8.0, 8.0, 4001)
    correlation = np.array([[1.0, 0.6, 0.0], [0.6, 1.0, -0.5], [0.0, -0.5, 1.0]])
    x = np.stack([f(z) for f in functions], axis=1)
    return GaussianCopula(x=x, z=np.tile(z[:, None], 3), correlation=correlation)


def test_covariances_of_the_copula_are_those_of_log_normal_laws():
    """`exp(s_i z_i)` have `e^((s_i^2 + s_j^2) / 2) (e^(s_i s_j rho) - 1)`, a closed form."""
    sizes = np.array([0.5, 0.8, 1.0])
    copula = copula_of(*(lambda z, s=s: np.exp(s * z) for s in sizes))
    squares = sizes**2 / 2
    wanted = np.exp(squares[:, None] + squares) * np.expm1(
        np.outer(sizes, sizes) * copula.correlation
    )

    assert_allclose(copula.covariance(), wanted, rtol=1e-4, atol=1e-12)


def test_the_order_in_the_copula_is_that_of_normal_laws(rng):
    """Lines are jointly normal; draws have their correlations within five standard errors."""
    places, sizes = np.array([0.2, 0.0, -0.5]), np.array([1.0, 2.0, 0.7])
    copula = copula_of(*(lambda z, m=m, s=s: m + s * z for m, s in zip(places, sizes, strict=True)))
    cov = np.outer(sizes, sizes) * copula.correlation
    variance = np.diag(cov)[:, None] + np.diag(cov) - 2 * cov + 1e-300 * np.eye(3)
    wanted = stats.norm.cdf((places[:, None] - places) / np.sqrt(variance))
    draws = copula.draw(rng, 40_000)

    assert_allclose(copula.prob_greater(), wanted, atol=1e-6)
    assert_allclose(draws.mean(axis=0), places, atol=5 * 2 / 200)
    assert_allclose(np.corrcoef(draws.T), copula.correlation, atol=5 / 200)


def test_copied_columns_move_against_each_other(rng):
    """Two equal columns: the sum is known better than either, also in the draws.

    Releasing one while its copy stays as fitted gives each somewhat more than its half.
    """
    masks, _, weights = problem(rng, 100, 4)
    masks[:, 2] = masks[:, 0]
    scores = masks @ [0.6, 0.2, 0.0, -0.3] + 0.05 * rng.normal(size=100)
    post = eblime.fit(masks, scores, weights, eblime.EBLIME(local=True))

    assert_allclose(post.mean[0], post.mean[2])
    assert_allclose(post.law.alone.mean[[0, 2]].sum(), 0.6, rtol=0.2)
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


def signed_problem(rng):
    """Twenty features, sixteen of them positive, and hardly more masks than features."""
    beta = np.where(np.arange(20) < 16, 1.0, -1.0) * rng.gamma(1.0, size=20) * 0.05
    masks = rng.integers(0, 2, size=(40, 20)).astype(float)
    return beta, masks, masks @ beta + 0.2 * rng.normal(size=40)


def test_the_law_with_signs_is_the_density_times_the_odds(rng):
    """Mean, sd, distribution function, quantiles and shortest intervals, by sums over a grid."""
    _, masks, scores = signed_problem(rng)
    law = eblime.fit(masks, scores).law
    x = np.linspace(-3, 3, 60_001)
    density = law.alone.pdf(x[:, None]) * np.where(x[:, None] > 0, law.odds, 1.0)
    density /= density.sum(axis=0)
    mean = (density * x[:, None]).sum(axis=0)
    chances = np.cumsum(density, axis=0)

    assert (law.odds > 1.2).all()
    assert_allclose(law.mean, mean, atol=1e-5)
    assert_allclose(law.sd, np.sqrt((density * x[:, None] ** 2).sum(axis=0) - mean**2), rtol=1e-4)
    assert_allclose(law.prob_positive(), density[x > 0].sum(axis=0), atol=6e-4)
    assert_allclose(law.cdf(x[::3000, None]), chances[::3000], atol=6e-4)
    assert_allclose(law.cdf(law.quantile(np.array([0.1, 0.5]))[0]), 0.1, atol=1e-9)
    shortest = law.hdi(0.8)
    assert_allclose(law.cdf(shortest[:, 1]) - law.cdf(shortest[:, 0]), 0.8, atol=1e-9)
    for low, high, column in zip(*shortest.T, chances.T, strict=True):
        ends = np.interp(column + 0.8, column, x, right=np.nan)  # of an interval from each x on
        assert high - low == pytest.approx(np.nanmin(ends - x), abs=2e-3)


def test_the_share_of_positive_signs_is_the_most_probable(rng):
    """The mode of the literal product over a grid; sure signs count nothing."""
    chances = rng.uniform(0.2, 0.99, size=30)
    grid = np.linspace(0.001, 0.999, 9981)[:, None]
    weights = 2 * np.sqrt(chances * (1 - chances))
    log = np.sum(weights * np.log(grid * chances + (1 - grid) * (1 - chances)), axis=1)
    log += 3 * np.log(grid * (1 - grid)).ravel()

    assert share_of_positive(chances, 3.0) == pytest.approx(grid[np.argmax(log), 0], abs=2e-4)
    assert share_of_positive(np.ones(9), 3.0) == pytest.approx(0.5)
    assert share_of_positive(1 - chances, 3.0) == pytest.approx(1 - share_of_positive(chances, 3.0))


def test_most_importances_of_one_sign_are_noticed(rng):
    """Sixteen of twenty are positive: stated chances are nearer to the true shares, in ten bins."""
    stated, true = {"even": [], "signed": []}, []
    for _ in range(150):
        beta, masks, scores = signed_problem(rng)
        law = eblime.fit(masks, scores).law
        true.extend(beta > 0)
        stated["even"].extend(law.alone.prob_positive())
        stated["signed"].extend(law.prob_positive())
    error = {}
    for name, chances in stated.items():
        gap = np.bincount((np.array(chances) * 10).astype(int), np.array(true) - chances)
        error[name] = np.abs(gap).sum() / len(true)

    assert error["signed"] < 0.8 * error["even"]
