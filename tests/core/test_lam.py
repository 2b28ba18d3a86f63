from itertools import pairwise

import numpy as np
import paper
import pytest
from numpy.testing import assert_allclose
from problems import problem
from scipy import integrate, stats

from eblime.core.lam import (
    Evidence,
    GridLambda,
    grid_lambda,
    gumbel_sample,
    half_line_lambda,
    log_half_cauchy,
)
from eblime.core.laws import PointValue
from eblime.core.spectrum import decompose, respond


def made(n, d, k, floor):
    """Evidence from its parts."""
    return Evidence(d=np.array(d, float), k=np.array(k, float), floor=floor, df=float(n))


def fitted(rng, n, p):
    """Evidence of a real problem."""
    masks, scores, weights = problem(rng, n, p)
    spectrum = decompose(masks, weights, flat=True)
    response = respond(spectrum, scores, standardize=True)
    return made(n - 1, spectrum.d, response.k, 2e-6 + response.residual)


CASES = {
    "tall": lambda rng: fitted(rng, 200, 13),
    "wide": lambda rng: fitted(rng, 30, 40),
    "many features": lambda rng: fitted(rng, 900, 300),
    "two modes": lambda rng: made(60, [1e6] * 4 + [1e-6] * 4, [2.5**0.5] * 8, 1.0),
    "near 1e-10": lambda rng: made(2000, [1e3] * 40, [5] * 40, 1e-9),
    "near 1e10": lambda rng: made(4000, [1e10] * 60, [0.9] * 60, 3000.0),
    "many masks, good fit": lambda rng: made(1e5, np.ones(200), np.ones(200), 1e-4),
    "no information": lambda rng: made(1, [], [], 1.0),
    "one mask": lambda rng: made(2e-6, [3.0], [0.0], 1.0),
}


def dense(evidence):
    """The density of x = log(lambda) on two hundred thousand points, normalised by trapezoids."""
    x = np.linspace(-160, 160, 200_001)
    logs = np.concatenate(
        [
            evidence.log_likelihood(np.exp(part)) + log_half_cauchy(np.exp(part)) + part
            for part in np.array_split(x, 50)
        ]
    )
    density = np.exp(logs - logs.max())
    return x, density / integrate.trapezoid(density, x)


@pytest.mark.parametrize("case", CASES)
def test_half_line_rule_agrees_with_a_much_finer_one(rng, case):
    """Mass, location and shape of P(log lambda | Y), wherever it sits."""
    evidence = CASES[case](rng)
    law = half_line_lambda(evidence)
    x, density = dense(evidence)
    logs = np.log(law.nodes)
    spread = np.sqrt(
        integrate.trapezoid(density * x**2, x) - integrate.trapezoid(density * x, x) ** 2
    )

    assert_allclose(law.weights.sum(), 1.0, rtol=1e-12)
    assert_allclose(law.log_mean, integrate.trapezoid(density * x, x), atol=1e-6 * spread)
    for middle in np.log(law.quantile([0.02, 0.5, 0.98])):  # smooth, as the moments of beta are
        smooth = 1 / (1 + np.exp(-(x - middle)))
        ours = law.weights @ (1 / (1 + np.exp(-(logs - middle))))
        assert_allclose(ours, integrate.trapezoid(density * smooth, x), rtol=1e-7)


def test_the_two_modes_are_two():
    """The bimodal case is one: the density dips between its modes."""
    x, density = dense(CASES["two modes"](None))
    inner = density[1:-1]
    peaks = np.flatnonzero((inner > density[:-2]) & (inner > density[2:]))

    assert len(peaks) == 2
    assert_allclose(x[peaks], [-17.8, 11.0], atol=0.2)
    assert inner[peaks[0] : peaks[1]].min() < 1e-10 * inner[peaks].min()


@pytest.mark.parametrize("case", CASES)
def test_half_line_cdf_agrees_with_quad(rng, case):
    """The distribution function is the integral of the density, by an independent rule."""
    evidence = CASES[case](rng)
    law = half_line_lambda(evidence)
    x, density = dense(evidence)
    cumulated = integrate.cumulative_trapezoid(density, x, initial=0)
    at = np.interp([0.01, 0.3, 0.5, 0.9, 0.999], cumulated, x)

    assert_allclose(law.cdf(np.exp(at)), [0.01, 0.3, 0.5, 0.9, 0.999], atol=2e-5)
    edge = law.quantile(0.3)
    top = max(evidence.log_likelihood(law.nodes) + log_half_cauchy(law.nodes))

    def density_at(t):
        lam = np.exp([t])
        return np.exp(evidence.log_likelihood(lam) + log_half_cauchy(lam) - top + t)[0]

    breaks = np.log(law.quantile(np.linspace(0.02, 0.98, 25)))
    pieces = [law.logs[0], *np.sort(np.append(breaks, np.log(edge))), law.logs[-1]]
    parts = [
        integrate.quad(density_at, low, high, epsabs=0, epsrel=1e-10, limit=200)[0]
        for low, high in pairwise(pieces)
    ]
    below = np.array(pieces[1:]) <= np.log(edge) + 1e-12
    assert_allclose(np.sum(np.array(parts)[below]) / np.sum(parts), 0.3, rtol=1e-7)


@pytest.mark.parametrize("case", CASES)
def test_quantile_inverts_cdf(rng, case):
    """cdf(quantile(q)) is q, far into both tails, in the shape of q."""
    law = half_line_lambda(CASES[case](rng))
    q = np.array([[1e-6, 0.025, 0.5], [0.9, 0.975, 1 - 1e-6]])

    assert law.quantile(q).shape == q.shape
    assert_allclose(law.cdf(law.quantile(q)), q, rtol=1e-9)
    assert_allclose(law.median, law.quantile(0.5))


def test_half_line_mean_is_infinite(rng):
    """The tail of P(lambda | Y) is lambda^-3/2, so that only the published grid has a mean."""
    evidence = CASES["tall"](rng)

    assert half_line_lambda(evidence).mean == np.inf
    assert 0 < grid_lambda(evidence, np.arange(1, 101) / 100).mean < 1


@pytest.mark.parametrize("case", ["tall", "wide", "two modes", "no information"])
def test_half_line_draws_follow_the_cdf(rng, case):
    """A Kolmogorov-Smirnov test of 20,000 draws, false alarm 1e-5."""
    law = half_line_lambda(CASES[case](rng))

    assert stats.kstest(law.cdf(law.sample(20_000, rng)), "uniform").pvalue > 1e-5


def test_cdf_outside_the_half_line(rng):
    """Nothing lies at or below zero, everything below infinity; NaN stays NaN."""
    law = half_line_lambda(CASES["tall"](rng))

    assert_allclose(law.cdf([-1.0, 0.0, np.inf]), [0.0, 0.0, 1.0], atol=1e-15)
    assert np.isnan(law.cdf(np.nan))


def test_samplers_of_the_grid_have_one_law(rng):
    """Gumbel trick, inverse cdf and Algorithm 2 as printed: chi-square against the weights."""
    weights = np.array([0.4, 0.05, 0.3, 0.0, 0.25])
    grid = GridLambda(nodes=np.arange(1.0, 6.0), weights=weights)
    n = 20_000
    log_weights = np.log(np.maximum(weights, 1e-300))
    printed = paper.algorithm_2(rng, log_weights, grid.nodes, 2_000)
    for draws in (
        gumbel_sample(rng, grid, n),
        grid.sample(n, rng),
        printed,
    ):
        counts = np.array([(draws == value).sum() for value in grid.nodes])

        assert counts[3] == 0
        kept = weights > 0
        assert stats.chisquare(counts[kept], weights[kept] * len(draws)).pvalue > 1e-5


def test_gumbel_blocks_change_nothing():
    """The stream of exponentials is cut into blocks, not changed by them."""
    grid = GridLambda(nodes=np.arange(1.0, 400_001.0), weights=np.full(400_000, 1 / 400_000))
    whole = np.random.default_rng(5).standard_exponential((7, 400_000))

    assert_allclose(gumbel_sample(np.random.default_rng(5), grid, 7), 1 + whole.argmin(axis=1))


def test_grid_quantile_and_cdf():
    """On a grid the quantile is the first value whose cumulated weight reaches q."""
    grid = GridLambda(nodes=np.array([1.0, 2.0, 4.0]), weights=np.array([0.5, 0.25, 0.25]))

    assert_allclose(grid.quantile([0.2, 0.6, 0.9]), [1.0, 2.0, 4.0])
    assert_allclose(grid.cdf([0.5, 1.0, 3.0, 9.0]), [0.0, 0.5, 0.75, 1.0])
    assert grid.mean == 2.0


def test_fixed_lambda_never_moves():
    """A lambda set by hand is its own mean, quantile and draw."""
    law = PointValue(value=2.0)

    assert (law.mean, law.median, float(law.quantile(0.9))) == (2.0, 2.0, 2.0)
    assert_allclose(law.sample(3), 2.0)
    assert_allclose(law.cdf([1.0, 2.0]), [0.0, 1.0])
