"""Laws known by draws and mixtures of normal laws, against loops and SciPy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from eblime.core.derived import select_features
from eblime.core.laws import Draws, DrawsLaw, NormalMixture, NoSpreadError, PointMass, PointValue

WEIGHTS = np.array([0.3, 0.7])


@pytest.fixture
def mixture(rng):
    """Two normal laws of three importances, times two."""
    roots = rng.normal(size=(2, 3, 3))
    covs = roots @ roots.transpose(0, 2, 1)
    return NormalMixture(weights=WEIGHTS, means=rng.normal(size=(2, 3)), covs=covs, unit=2.0)


def parts(law, j):
    """The two normal laws of one importance."""
    spreads = np.sqrt(np.diagonal(law.covs, axis1=1, axis2=2))
    return [stats.norm(2 * m[j], 2 * s[j]) for m, s in zip(law.means, spreads, strict=True)]


def test_summaries_of_draws_are_those_of_a_loop(rng):
    """Mean, spread, quantiles and shares; ties count one half."""
    beta = rng.integers(-2, 3, size=(9, 3)).astype(float)
    law, q = DrawsLaw(draws=Draws(beta=beta)), np.array([0.0, 0.1, 0.55, 1.0])
    greater = [[np.mean((a > b) + (a == b) / 2) for b in beta.T] for a in beta.T]

    assert law.n_features == 3
    assert_allclose(law.mean, beta.mean(axis=0))
    assert_allclose(law.cov, np.cov(beta.T))
    assert_allclose(law.sd, np.sqrt(np.diag(law.cov)))
    assert_allclose(law.quantile(q), np.quantile(beta, q, axis=0))
    assert_allclose(
        law.cdf(np.array([[-1.0], [0.5]])), [(beta <= x).mean(axis=0) for x in (-1, 0.5)]
    )
    assert_allclose(law.prob_positive(), ((beta > 0) + (beta == 0) / 2).mean(axis=0))
    assert_allclose(law.prob_greater(), greater)


@pytest.mark.parametrize("prob", [0.5, 0.8, 0.99])
def test_the_shortest_interval_of_draws_is_found(rng, prob):
    """Among all pairs of draws that are so many places apart; with few draws, all of them."""
    beta = rng.normal(size=(10, 2))
    apart = min(9, int(np.ceil(prob * 10)))
    found = DrawsLaw(draws=Draws(beta=beta)).hdi(prob)

    for column, ends in zip(np.sort(beta, axis=0).T, found, strict=True):
        shortest = min(
            zip(column, column[apart:], strict=False), key=lambda pair: pair[1] - pair[0]
        )
        assert_array_equal(ends, shortest)


def test_densities_and_further_draws_of_draws(rng):
    """SciPy's kernel estimate, and rows of the draws with their extras; or those of the source."""
    beta = rng.normal(size=(50, 2))
    draws = Draws(beta=beta, extras={"lam": beta[:, 0] + 10})
    both = Draws(beta=beta, extras={"lam": np.ones(50), "sigma2": np.full(50, 2.0)})
    law, x = DrawsLaw(draws=draws), np.linspace(-2, 2, 5)[:, None]
    again = law.draw(rng, 200)
    source = NormalMixture(weights=np.ones(1), means=np.zeros((1, 2)), covs=np.eye(2)[None])
    sourced = DrawsLaw(draws=draws, source=source)

    assert_allclose(law.pdf(x), np.stack([stats.gaussian_kde(b)(x[:, 0]) for b in beta.T], axis=1))
    assert_array_equal(again.lam, again.beta[:, 0] + 10)
    assert again.beta.shape == (200, 2)
    assert {*again.beta[:, 1]} <= {*beta[:, 1]}
    assert len({*again.beta[:, 1]}) > 40  # of 50; all but 4 % are among 200 draws, or more
    assert_allclose(sourced.pdf(x), stats.norm.pdf(x).repeat(2, axis=1))
    assert not {*sourced.draw(rng, 5).beta[:, 1]} & {*beta[:, 1]}
    assert (both.lam[0], both.sigma2[0]) == (1.0, 2.0)
    with pytest.raises(AttributeError, match="no 'sigma2'"):
        _ = draws.sigma2


def test_a_mixture_of_normal_laws_is_one_of_scipys(mixture):
    """Mean, covariance, density, distribution function and quantiles of every importance."""
    x = np.linspace(-3, 3, 4)[:, None]
    second = sum(
        w * (c + np.outer(m, m))
        for w, m, c in zip(WEIGHTS, 2 * mixture.means, 4 * mixture.covs, strict=True)
    )
    mean = 2 * WEIGHTS @ mixture.means

    def mix(f):
        return np.stack([WEIGHTS @ [f(part) for part in parts(mixture, j)] for j in range(3)], -1)

    assert_allclose(mixture.mean, mean)
    assert_allclose(mixture.cov, second - np.outer(mean, mean), atol=1e-12)
    assert_allclose(mixture.sd, np.sqrt(np.diag(mixture.cov)))
    assert_allclose(mixture.pdf(x), mix(lambda part: part.pdf(x[:, 0])), rtol=1e-9)
    assert_allclose(mixture.cdf(x), mix(lambda part: part.cdf(x[:, 0])), rtol=1e-9)
    assert_allclose(mixture.prob_positive(), mix(lambda part: part.sf(0.0)), rtol=1e-9)
    q = np.array([0.1, 0.6])
    assert_allclose(mixture.cdf(mixture.quantile(q)), np.tile(q[:, None], 3), rtol=1e-8)


def test_the_order_of_two_normal_importances(mixture):
    """The chance that their difference is positive; one half for the same importance."""
    found = mixture.prob_greater()

    for i, j in ((0, 1), (2, 0)):
        chances = [
            stats.norm.sf(0, m[i] - m[j], np.sqrt(c[i, i] + c[j, j] - 2 * c[i, j]))
            for m, c in zip(mixture.means, mixture.covs, strict=True)
        ]
        assert_allclose(found[i, j], WEIGHTS @ chances)
    assert_allclose(np.diag(found), 0.5)


def test_draws_of_a_mixture_have_its_moments(rng, mixture):
    """Within five standard errors of 40,000 draws; the components are in random order."""
    beta = mixture.draw(rng, 40_000).beta
    centred = beta - mixture.mean
    products = centred[:, :, None] * centred[:, None]
    error = products.std(axis=0) / 200
    halves = beta[:20_000].mean(axis=0) - beta[20_000:].mean(axis=0)

    assert (np.abs(beta.mean(axis=0) - mixture.mean) < 5 * mixture.sd / 200).all()
    assert (np.abs(products.mean(axis=0) - mixture.cov) < 5 * error).all()
    assert (np.abs(halves) < 5 * mixture.sd / 100).all()


@pytest.mark.parametrize("kind", ["mixture", "draws"])
def test_a_selection_with_fixed_features(rng, mixture, kind):
    """Every summary is that of the law itself; a fixed feature is exactly zero."""
    draws = Draws(beta=rng.normal(size=(40, 3)), extras={"lam": np.arange(40.0)})
    law = mixture if kind == "mixture" else DrawsLaw(draws=draws)
    places, known = np.array([2, -1, 0]), np.array([True, False, True])
    chosen, q = select_features(law, places), np.array([0.2, 0.7])
    x = np.array([[0.3, 0.0, -0.4], [-1.0, -0.1, 1.0]])
    whole = np.stack([x[:, 2], np.zeros(2), x[:, 0]], axis=1)  # in the order of the law

    assert chosen.n_features == 3
    for found, all_of_it in (
        (chosen.mean, law.mean),
        (chosen.sd, law.sd),
        (chosen.quantile(q), law.quantile(q)),
        (chosen.hdi(0.9).T, law.hdi(0.9).T),
    ):
        assert_allclose(found[..., known], all_of_it[..., [2, 0]], rtol=1e-7)
        assert_array_equal(found[..., 1], 0.0)
    assert_allclose(chosen.cov[np.ix_(known, known)], law.cov[np.ix_([2, 0], [2, 0])])
    assert_array_equal([chosen.cov[1], chosen.cov[:, 1]], np.zeros((2, 3)))
    assert_allclose(chosen.pdf(x)[:, known], law.pdf(whole)[:, [2, 0]], rtol=1e-7)
    assert_allclose(chosen.cdf(x)[:, known], law.cdf(whole)[:, [2, 0]], rtol=1e-7)
    assert_array_equal(chosen.cdf(x)[:, 1], [1.0, 0.0])
    assert_allclose(chosen.prob_positive()[known], law.prob_positive()[[2, 0]])
    assert chosen.prob_positive()[1] == 0.5
    greater, positive = chosen.prob_greater(), chosen.prob_positive()
    assert_allclose(greater[np.ix_(known, known)], law.prob_greater()[np.ix_([2, 0], [2, 0])])
    assert_allclose(greater[known, 1], positive[known])
    assert_allclose(greater[1, known], 1 - positive[known])
    assert_array_equal(chosen.draw(rng, 9).beta[:, 1], 0.0)


def test_a_point_estimate_refuses_every_spread():
    """With its own message, if it has one."""
    law = PointMass(mean=np.zeros(2), method="mine")

    for ask in (lambda: law.sd, lambda: law.cov, lambda: law.quantile(np.array([0.5]))):
        with pytest.raises(NoSpreadError, match="mine gives a point estimate"):
            ask()
    with pytest.raises(NoSpreadError, match=r"^no more$"):
        _ = PointMass(mean=np.zeros(2), method="mine", refusal="no more").sd
    chosen = select_features(PointMass(mean=np.array([3.0, 4.0]), method="m"), np.array([1, -1]))
    assert_array_equal(chosen.mean, [4.0, 0.0])


def test_a_known_number_is_a_rule_of_one_node():
    """Sums over nodes give the number."""
    known = PointValue(value=0.3)

    assert known.weights @ known.nodes == 0.3
    assert_array_equal(known.cdf([0.2, 0.3, 0.4]), [0, 1, 1])
    assert known.sample(4).tolist() == [0.3] * 4
