import mpmath
import numpy as np
import paper
import pytest
from numpy.testing import assert_allclose
from problems import problem
from scipy import integrate, special, stats

import eblime
from eblime.core.lam import GridLambda, log_half_cauchy
from eblime.core.laws import PointValue
from eblime.core.mixture import Mixture

SHAPES = [(14, 3), (5, 8)]  # tall and wide


def settings(flat):
    """A method with priors that matter, scores as they are."""
    intercept = "flat" if flat else "none"
    return eblime.EBLIME(
        a=1.5, b=0.3, intercept=intercept, standardize=False, local=False, finite=False
    )


def literal(flat):
    """The paper's forms with their flat twins; the t law as (location, scale matrix, df)."""
    if not flat:
        return paper.log_posterior, paper.conditional

    def conditional(*data):
        location, scale, df = paper.flat_conditional(*data)
        return location[1:], scale[1:, 1:], df

    return paper.flat_log_posterior, conditional


def expect(data, flat, function, size):
    """E[function(location, scale, df)] over lambda by quad on the printed density."""
    log_posterior, conditional = literal(flat)
    logs = [log_posterior(*data, np.exp(t), 1.5, 0.3) + t for t in np.linspace(-20, 20, 81)]

    def integrand(t):
        density = np.exp(log_posterior(*data, np.exp(t), 1.5, 0.3) + t - max(logs))
        values = np.ravel(function(*conditional(*data, np.exp(t), 1.5, 0.3)))
        return density * np.append(values, 1.0)

    total, _ = integrate.quad_vec(integrand, -22, 60, epsabs=1e-13, epsrel=1e-10, limit=4000)
    return (total[:-1] / total[-1]).reshape(size)


@pytest.mark.parametrize(("n", "p"), SHAPES)
@pytest.mark.parametrize("flat", [True, False])
def test_moments_equal_quad_over_the_printed_forms(rng, n, p, flat):
    """Mean and covariance, to 1e-6 relative, against N x N matrices and an adaptive integral."""
    data = problem(rng, n, p)
    post = eblime.fit(*data, method=settings(flat))
    mean = expect(data, flat, lambda loc, scale, df: loc, p)
    second = expect(
        data, flat, lambda loc, scale, df: scale * df / (df - 2) + np.outer(loc, loc), (p, p)
    )
    cov = second - np.outer(mean, mean)

    assert_allclose(post.mean, mean, rtol=1e-6, atol=1e-8)
    assert_allclose(post.cov, cov, rtol=1e-6, atol=1e-6 * cov.diagonal().min())
    assert_allclose(post.sd, np.sqrt(cov.diagonal()), rtol=1e-6)


@pytest.mark.parametrize(("n", "p"), SHAPES)
@pytest.mark.parametrize("flat", [True, False])
def test_marginals_equal_quad_over_the_printed_forms(rng, n, p, flat):
    """Distribution function, sign and order probabilities, to 1e-6 relative.

    A density may have a narrow peak at zero, where the nodes of lambda give it to 5e-5.
    """
    data = problem(rng, n, p)
    post = eblime.fit(*data, method=settings(flat))
    x = post.quantile([0.03, 0.4, 0.9])

    def marginal(what):
        return lambda loc, scale, df: getattr(stats.t, what)(
            x, df, loc=loc, scale=np.sqrt(scale.diagonal())
        )

    def order(loc, scale, df):
        spread = np.add.outer(scale.diagonal(), scale.diagonal()) - 2 * scale + np.eye(p)
        return stats.t.cdf(np.subtract.outer(loc, loc) / np.sqrt(spread), df)

    assert_allclose(post.pdf(x), expect(data, flat, marginal("pdf"), (3, p)), rtol=5e-5)
    assert_allclose(post.cdf(x), expect(data, flat, marginal("cdf"), (3, p)), rtol=1e-6)
    assert_allclose(post.cdf(x), np.broadcast_to([[0.03], [0.4], [0.9]], (3, p)), rtol=1e-8)
    assert_allclose(post.prob_positive(), 1 - post.cdf(0.0), rtol=1e-9)
    assert_allclose(post.prob_greater(), expect(data, flat, order, (p, p)), rtol=1e-6)


def test_intercept_equals_quad_over_the_printed_forms(rng):
    """The flat intercept has its own posterior: location and distribution function."""
    data = problem(rng, 14, 3)
    post = eblime.fit(*data, method=settings(True))
    law = post.intercept_law
    logs = [paper.flat_log_posterior(*data, np.exp(t), 1.5, 0.3) + t for t in range(-20, 21)]
    x = law.quantile([0.1, 0.7])

    def integrand(t):
        lam = np.exp(t)
        weight = np.exp(paper.flat_log_posterior(*data, lam, 1.5, 0.3) + t - max(logs))
        loc, scale, df = paper.flat_conditional(*data, lam, 1.5, 0.3)
        cdf = stats.t.cdf(x, df, loc=loc[0], scale=np.sqrt(scale[0, 0]))
        return weight * np.array([loc[0], *cdf, 1.0])

    total, _ = integrate.quad_vec(integrand, -22, 60, epsrel=1e-10)
    assert_allclose([post.intercept, 0.1, 0.7], total[:-1] / total[-1], rtol=1e-6)
    assert_allclose(law.interval(0.9), law.quantile([0.05, 0.95]))
    assert_allclose(law.cdf(law.median), 0.5)


def test_mean_and_cdf_equal_thirty_digits():
    """A problem small enough for mpmath: one column, four masks, no intercept, a = 1, b = 1."""
    z, y, w = [1, 0, 1, 1], [0.9, 0.2, 0.7, 0.4], [1.0, 0.5, 0.25, 2.0]
    method = eblime.EBLIME(a=1, b=1, intercept="none", standardize=False, local=False, finite=False)
    post = eblime.fit(np.array(z)[:, None], y, w, method)
    mpmath.mp.dps = 30
    gram = mpmath.fsum(wi * zi for wi, zi in zip(w, z, strict=True))
    cross = mpmath.fsum(wi * zi * yi for wi, zi, yi in zip(w, z, y, strict=True))
    square = mpmath.fsum(wi * yi**2 for wi, yi in zip(w, y, strict=True))
    x = mpmath.mpf(float(post.quantile(0.8)[0]))
    df = 6

    def weight(lam):
        q = square - cross**2 / (gram + lam) + 2
        prior = 1 / (mpmath.sqrt(lam) * (1 + lam))
        return (1 + gram / lam) ** mpmath.mpf(-0.5) * q**-3 * prior

    def cdf(lam):
        q = square - cross**2 / (gram + lam) + 2
        t = (x - cross / (gram + lam)) / mpmath.sqrt(q / df / (gram + lam))
        tail = mpmath.betainc(df / 2, 0.5, 0, df / (df + t**2), regularized=True) / 2
        return 1 - tail if t > 0 else tail

    pieces = [0, 1e-6, 1e-2, 1, 1e2, 1e6, mpmath.inf]
    total = mpmath.quad(weight, pieces)
    mean = mpmath.quad(lambda lam: weight(lam) * cross / (gram + lam), pieces) / total
    chance = mpmath.quad(lambda lam: weight(lam) * cdf(lam), pieces) / total

    assert_allclose(post.mean[0], float(mean), rtol=1e-9)
    assert_allclose(0.8, float(chance), rtol=1e-8)


@pytest.mark.parametrize(("n", "p"), [(200, 13), (30, 40), (12, 12), (6, 30)])
def test_rule_agrees_with_a_much_finer_one(rng, n, p):
    """With 4,001 nodes, equally spaced, nothing moves by 1e-6 relative."""
    post = eblime.fit(*problem(rng, n, p), method=eblime.EBLIME(local=False, finite=False))
    exact = post.law
    x = np.linspace(exact.lam.logs[0], exact.lam.logs[-1], 4_001)
    logs = exact.evidence.log_likelihood(np.exp(x)) + log_half_cauchy(np.exp(x)) + x
    law = GridLambda(nodes=np.exp(x), weights=special.softmax(logs))
    fine = Mixture(basis=exact.basis, evidence=exact.evidence, lam=law, unit=exact.unit)
    q = np.array([0.025, 0.5, 0.975])

    assert_allclose(exact.mean, fine.mean, rtol=1e-6, atol=1e-9 * fine.sd.max())
    assert_allclose(exact.sd, fine.sd, rtol=1e-6)
    assert_allclose(exact.cov, fine.cov, rtol=1e-6, atol=1e-8 * fine.sd.max() ** 2)
    assert_allclose(exact.quantile(q), fine.quantile(q), rtol=1e-6, atol=1e-7 * fine.sd.max())
    ends = fine.quantile(q[[0, 2]])
    assert_allclose(exact.pdf(ends), fine.pdf(ends), rtol=1e-6)
    assert_allclose(exact.cdf(0.0), fine.cdf(np.zeros(p)), rtol=1e-6, atol=1e-30)


@pytest.mark.parametrize("lam", [1e-3, 1.0, 40.0])
def test_all_mass_at_one_lambda_is_the_t_law(rng, lam):
    """With lambda fixed the posterior is Proposition 1 with sigma^2 integrated out."""
    data = problem(rng, 14, 3)
    exact = eblime.fit(*data, method=settings(False)).law
    fixed = Mixture(basis=exact.basis, evidence=exact.evidence, lam=PointValue(value=lam), unit=1.0)
    loc, scale, df = paper.conditional(*data, lam, 1.5, 0.3)

    assert_allclose(fixed.mean, loc, rtol=1e-9)
    assert_allclose(fixed.cov, scale * df / (df - 2), rtol=1e-9, atol=1e-12)
    judge = stats.t(df, loc=loc, scale=np.sqrt(scale.diagonal()))
    assert_allclose(fixed.quantile(np.array([0.2])), judge.ppf([0.2] * 3)[None], rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "p"), [(60, 5), (8, 12)])
@pytest.mark.parametrize("intercept", ["flat", "none"])
def test_draws_follow_the_exact_marginals(rng, n, p, intercept):
    """Kolmogorov-Smirnov of 20,000 draws of every importance; false alarm 1e-6 each."""
    post = eblime.fit(*problem(rng, n, p), method=eblime.EBLIME(intercept=intercept))
    draws = post.draw(20_000, rng)
    chance = post.cdf(draws.beta)

    for column in chance.T:
        assert stats.kstest(column, "uniform").pvalue > 1e-6
    assert stats.kstest(post.sigma2.cdf(draws.sigma2), "uniform").pvalue > 1e-6
    assert stats.kstest(post.lam.cdf(draws.lam), "uniform").pvalue > 1e-6
    if n > p:
        assert_allclose(np.cov(draws.beta.T), post.cov, atol=6 * post.sd.max() ** 2 / 141)


def test_joint_draws_keep_the_correlations(rng):
    """P(beta_i > beta_j) from draws is the exact one within 5 standard errors."""
    masks, scores, weights = problem(rng, 30, 4)
    masks[:, 1] = np.where(rng.random(30) < 0.8, masks[:, 0], masks[:, 1])
    post = eblime.fit(masks, scores, weights)
    beta = post.sample(40_000, rng)
    shares = (beta[:, :, None] > beta[:, None, :]).mean(axis=0) + 0.5 * np.eye(4)

    assert_allclose(shares, post.prob_greater(), atol=5 * 0.5 / 200)


def test_order_probabilities_are_complementary(rng):
    """P(i > j) + P(j > i) = 1, and a copied column is as likely above as below."""
    masks, scores, weights = problem(rng, 50, 6)
    masks[:, 3] = masks[:, 0]
    chance = eblime.fit(masks, scores, weights).prob_greater()

    assert_allclose(chance + chance.T, 1.0)
    assert_allclose(chance[0, 3], 0.5)
    assert_allclose(np.diag(chance), 0.5)


def test_the_noise_of_constant_scores_is_exactly_zero(rng):
    """Its distribution function is a step at zero."""
    masks, _, weights = problem(rng, 20, 3)
    sigma2 = eblime.fit(masks, np.full(20, 0.3), weights, eblime.EBLIME(local=False)).sigma2

    assert sigma2.cdf([-1.0, 0.0, 2.0]).tolist() == [0.0, 1.0, 1.0]
    assert sigma2.mean == 0
    assert sigma2.quantile(0.9) == 0


def test_no_noise_is_below_zero(rng):
    """The distribution function is zero up to there, and rises above."""
    sigma2 = eblime.fit(*problem(rng, 20, 3), eblime.EBLIME(local=False)).sigma2

    assert sigma2.cdf([-1.0, 0.0]).tolist() == [0.0, 0.0]
    assert sigma2.cdf(sigma2.quantile(0.3)) == pytest.approx(0.3)
