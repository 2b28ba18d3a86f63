"""Least squares without shrinkage, and the size of an importance over many inputs."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from eblime.core.overall import (
    Overall,
    _cells,
    _components,
    absolute_moments,
    fit_overall,
    kendall,
    least_squares,
    same_signs,
)
from eblime.designs.masks import bernoulli, leverage

TRUTHS = {  # the true importances of n inputs; standard errors are about 1
    "none used": lambda rng, n: np.zeros(n),
    "below the noise": lambda rng, n: 0.3 * rng.standard_normal(n),
    "like the noise": lambda rng, n: rng.standard_normal(n),
    "all small and equal": lambda rng, n: np.full(n, 0.5),
    "some used": lambda rng, n: np.where(rng.random(n) < 0.2, 2.0, 0.0),
    "both signs": lambda rng, n: rng.choice([-2.0, 2.0], n),
    "all equal": lambda rng, n: np.full(n, 3.0),
    "large": lambda rng, n: 20 * rng.standard_normal(n),
}


def record(size, **values):
    """The result for 10 inputs of which 0.7 are above zero and 0.3 below."""
    settings = {"mean": 0.1, "mean_se": 0.02, "p_value": 0.01, "n": 10} | values
    shares = {"positive": np.full_like(size, 0.7), "negative": np.full_like(size, 0.3)}
    return Overall(size=size, **shares, **settings)


@pytest.mark.slow
@pytest.mark.parametrize("truth", TRUTHS)
def test_intervals_cover_the_mean_size(rng, truth):
    """At least 95 % of the intervals do, less three standard errors of 40 repetitions."""
    held, repeats, n = 0, 40, 40
    for _ in range(repeats):
        beta, se = TRUTHS[truth](rng, n), rng.uniform(0.7, 1.3, n)
        found = fit_overall(rng, beta + se * rng.standard_normal(n), se, np.ones(n))
        low, high = found.size_interval(0.95)
        held += low <= np.abs(beta).mean() <= high

    assert held / repeats >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / repeats)


def test_noise_alone_is_not_importance(rng):
    """With importances of zero the interval begins at zero and ends below the mean |noise|."""
    n = 300
    found = fit_overall(rng, rng.standard_normal(n), np.ones(n), np.ones(n))

    assert np.quantile(found.size, 0.975) < 0.5 < np.sqrt(2 / np.pi)
    assert np.median(found.size) < 0.3
    # 4 standard errors: at three in 10,000 seeds noise alone would be rejected
    assert found.size_interval(1 - 3e-4)[0] == 0
    assert abs(found.mean) < 4 * found.mean_se


def test_importances_that_are_known_to_be_zero_have_no_sign(rng):
    """Those of a column that nearly all inputs share with the background."""
    estimate, se = np.zeros(40), np.zeros(40)
    estimate[0], se[0] = 50.0, 0.01
    found = fit_overall(rng, estimate, se, np.ones(40))

    assert_allclose(found.positive, 1 / 40)
    assert_allclose(found.negative, 0.0)
    assert_allclose(found.size, 50 / 40, rtol=0.01)


def test_the_size_is_at_least_that_of_the_mean(rng):
    """Small importances of the same sign are not zero, though each is below its error."""
    n = 400
    found = fit_overall(rng, 0.3 + rng.standard_normal(n), np.ones(n), np.ones(n))
    low, high = found.size_interval(0.95)

    assert found.mean - 1.96 * found.mean_se > 0.05  # four standard errors below 0.3
    assert low == pytest.approx(found.mean - 1.96 * found.mean_se, abs=0.1)
    assert found.mean - 1.96 * found.mean_se - 1e-4 <= low < high


def test_an_interval_has_the_draws_of_both_fits():
    """And the interval of the mean; it begins at zero where all importances may be zero."""
    size = np.stack([np.linspace(2.0, 3.0, 1001), np.linspace(1.0, 2.5, 1001)])

    assert record(size).size_interval(0.95) == pytest.approx((1.0375, 2.975))
    assert record(size, p_value=0.026).size_interval(0.95) == pytest.approx((0.0, 2.975))
    assert record(size, p_value=0.024).size_interval(0.95)[0] == pytest.approx(1.0375)
    assert record(size, p_value=0.04).size_interval(0.90)[0] == pytest.approx(1.075)
    narrow = record(size, mean=-4.0, mean_se=0.5).size_interval(0.90)
    assert narrow == pytest.approx((4 - 0.5 * stats.norm.ppf(0.95),) * 2)


@pytest.mark.parametrize("estimate", [[2.0, -3.0, 1.0, 0.5], [1.2, 0.9, 1.1, 1.4], [0.1, 0, 0, 0]])
def test_the_mean_and_its_p_value_are_literal(rng, estimate):
    """Parts of an input count less; the sum of squares sees large importances of both signs."""
    estimate, se, weight = np.array(estimate), np.array([0.9, 0.7, 0.8, 1.0]), [0.5, 0.5, 1, 1]
    found = fit_overall(rng, estimate, se, np.array(weight))
    mean = ((estimate[0] + estimate[1]) / 2 + estimate[2] + estimate[3]) / 3
    mean_se = np.sqrt((0.9**2 + 0.7**2) / 2 + 0.8**2 + 1) / 3  # of errors that are the same
    squares = stats.chi2.sf(np.average((estimate / se) ** 2, weights=weight) * 3, 3)
    same = 2 * stats.norm.sf(abs(mean) / mean_se)

    assert (found.mean, found.mean_se) == pytest.approx((mean, mean_se))
    assert found.p_value == pytest.approx(min(1, 2 * squares, 2 * same))
    assert found.n == 3


def test_cells_keep_the_sums(rng):
    """Weights, importances and squared errors add up; equal inputs share a cell, far ones not."""
    estimate, se, weight = rng.normal(size=300), rng.uniform(0.1, 2, 300), rng.uniform(1, 2, 300)
    cells = _cells(estimate, se, weight)
    apart = np.concatenate([-2.9 + 0.4 * np.arange(15), [-2.9, 50.0, 58.0]])
    few = _cells(apart, np.ones(18), np.ones(18))

    assert len(cells.se) < 300
    np.testing.assert_allclose(cells.weight.sum(), weight.sum())
    np.testing.assert_allclose(cells.weight @ cells.estimate, weight @ estimate)
    np.testing.assert_allclose(cells.weight @ cells.se**2, weight @ se**2)
    assert sorted(few.weight) == [1] * 16 + [2]


def test_components_are_integrals():
    """Each normal component given each cell, by the trapezoid rule; the first is exactly zero."""
    cells = _cells(np.array([0.0, 0.4, -2.5]), np.array([1.0, 0.5, 0.8]), np.ones(3))
    likelihood, *found = _components(cells)
    x = np.linspace(-12.0, 12.0, 8001)
    prior = stats.norm.pdf(x, cells.centre[1:, None], cells.width[1:, None])  # (K, x)
    given = stats.norm.pdf(x, cells.estimate[:, None], cells.se[:, None])  # (G, x)
    evidence = stats.norm.pdf(
        cells.estimate, cells.centre[:, None], np.hypot(cells.se, cells.width[:, None])
    )
    wanted = [
        (prior * values) @ given.T / (prior @ given.T)
        for values in (np.abs(x), x**2, np.heaviside(x, 0.5), np.heaviside(-x, 0.5))
    ]

    np.testing.assert_allclose(likelihood, evidence / evidence.max(axis=0), rtol=1e-9)
    np.testing.assert_allclose(np.stack(found)[:, 1:], wanted, atol=1e-4)
    np.testing.assert_array_equal(np.stack(found)[:, 0], 0.0)


def test_the_grid_of_components_is_symmetric_and_wide_enough():
    """Up to the largest estimate plus two standard errors; steps grow away from zero."""
    cells = _cells(np.array([0.0, 30.0]), np.array([1.0, 1.0]), np.ones(2))
    centre, width = cells.centre[1:], cells.width[1:]
    steps = np.diff(centre[centre >= 0])

    np.testing.assert_allclose(centre, -centre[::-1], atol=1e-12)
    np.testing.assert_allclose(width, width[::-1])
    assert 32 <= centre[-1] < 32 + 2 * steps[-1]
    assert steps[0] == 0.5
    np.testing.assert_allclose(steps[-1] / centre[-2], 0.15, rtol=1e-9)
    assert (np.diff(steps) >= 0).all()
    assert (0.5 * steps < width[centre >= 0][1:]).all()  # they overlap


def test_shares_of_signs(rng):
    """Seven tenths above zero, three tenths below, none of them in doubt."""
    beta = np.repeat([5.0, -5.0], [70, 30])
    found = fit_overall(rng, beta + 0.5 * rng.standard_normal(100), np.full(100, 0.5), np.ones(100))

    np.testing.assert_allclose(np.median(found.positive), 0.7, atol=0.01)
    np.testing.assert_allclose(np.median(found.negative), 0.3, atol=0.01)


def test_exact_estimates_are_averaged(rng):
    """Without errors the result is the plain mean of |estimate|."""
    beta = np.array([0.5, -1.5, 0.0, 4.0])
    found = fit_overall(rng, beta, np.zeros(4), np.ones(4))
    nothing = fit_overall(rng, np.zeros(4), np.zeros(4), np.ones(4))

    np.testing.assert_allclose(found.size, 1.5, rtol=1e-3)
    assert found.mean == 0.75
    assert nothing.size_interval(0.95) == (0.0, 0.0)


def test_two_importances_of_the_same_inputs_are_no_more_certain(rng):
    """Those of two mirrored outputs give the interval of one of them, not a narrower one."""
    b, ones = 3 + rng.standard_normal(50), np.ones(50)
    samples = (b, ones, ones), (np.append(b, -b), np.ones(100), np.full(100, 0.5))
    fits = [[fit_overall(rng, *sample) for _ in range(8)] for sample in samples]
    widths = [np.mean([np.ptp(f.size_interval(0.95)) for f in alike]) for alike in fits]
    one, both = fits[0][0], fits[1][0]

    assert 0.9 * widths[0] <= widths[1] <= 1.1 * widths[0]  # of 8 times 400 draws
    assert both.mean == pytest.approx(0.0, abs=1e-12)
    assert (both.mean_se, both.n) == (pytest.approx(one.mean_se), 50)
    np.testing.assert_allclose(np.median(both.positive), 0.5, atol=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("shared", [True, False])
def test_intervals_cover_where_each_input_has_several_importances(rng, shared):
    """Three of each input, with one error for all of them or one for each."""
    held, repeats, n = 0, 40, 30
    for _ in range(repeats):
        beta = rng.standard_normal((3, 1)) + rng.standard_normal((3, n))
        errors = np.broadcast_to(rng.standard_normal((1 if shared else 3, n)), (3, n))
        sample = (beta + errors).ravel(), np.ones(3 * n), np.full(3 * n, 1 / 3)
        low, high = fit_overall(rng, *sample).size_interval(0.95)
        held += low <= np.abs(beta).mean() <= high

    assert held / repeats >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / repeats)


def test_the_folded_normal_matches_draws(rng):
    """Mean and variance of |x|."""
    mean, sd = np.array([0.0, 0.5, -2.0, 1.0]), np.array([1.0, 1.0, 0.3, 0.0])
    draws = np.abs(mean + sd * rng.standard_normal((200_000, 4)))
    size, variance = absolute_moments(mean, sd)

    np.testing.assert_allclose(size, draws.mean(axis=0), atol=0.01)
    np.testing.assert_allclose(variance, draws.var(axis=0), atol=0.01)


@pytest.mark.parametrize("design", [bernoulli, leverage])
def test_standard_errors_match_the_spread_over_draws(rng, design):
    """Also with unequal noise, and with pairs whose even part cancels."""
    p, n, repeats = 10, 120, 400
    found = np.empty((repeats, 2, p))
    for i in range(repeats):
        drawn = design(rng, n, p)
        masks = getattr(drawn, "masks", drawn)
        scores = masks[:, 0] - masks[:, 1] + 2 * masks[:, 0] * masks[:, 1]
        scores = scores + masks[:, 2] * masks[:, 3] * masks[:, 0]
        found[i] = least_squares(masks, scores, np.ones(n), intercept=True)
    spread = found[:, 0].std(axis=0)

    # HC3 is a little too large; a standard deviation of 400 draws has a relative error of 3.5 %
    np.testing.assert_allclose(np.sqrt((found[:, 1] ** 2).mean(axis=0)) / spread, 1.05, atol=0.16)


def test_least_squares_needs_enough_masks(rng):
    """None with too few masks, or with a feature that never varies."""
    masks = bernoulli(rng, 6, 5)
    assert least_squares(masks, masks[:, 0], np.ones(6), intercept=True) is None
    masks = bernoulli(rng, 60, 5)
    masks[:, 2] = 1
    assert least_squares(masks, masks[:, 0], np.ones(60), intercept=True) is None
    assert least_squares(masks, masks[:, 0], np.ones(60), intercept=False) is not None


def test_least_squares_matches_the_normal_equations(rng):
    """Weights and a missing intercept are respected; rows of weight zero do not count."""
    masks, weights = bernoulli(rng, 40, 3), rng.random(40)
    scores = rng.random(40)
    weights[5] = 0
    weighted = masks.T * weights
    estimate, _ = least_squares(masks, scores, weights, intercept=False)

    np.testing.assert_allclose(estimate, np.linalg.solve(weighted @ masks, weighted @ scores))


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("pairs", [True, False])
def test_standard_errors_are_those_of_hc3(rng, intercept, pairs):
    """The literal sandwich, with explicit inverses; the two masks of a pair are one observation."""
    half = rng.integers(0, 2, size=(12, 5)).astype(float)
    masks = np.stack([half, 1 - half], axis=1).reshape(24, 5) if pairs else bernoulli(rng, 24, 5)
    scores, weights = rng.normal(size=24), np.repeat(rng.uniform(0.5, 1.0, size=12), 2)
    X = np.column_stack([np.ones(24), masks]) if intercept else masks
    V = np.linalg.inv(X.T @ np.diag(weights) @ X)
    beta = V @ X.T @ np.diag(weights) @ scores
    leverage = weights * np.einsum("ij,jk,ik->i", X, V, X)
    moved = V @ X.T * (weights * (scores - X @ beta) / (1 - leverage))
    if pairs:
        moved = moved[:, ::2] + moved[:, 1::2]
    estimate, se = least_squares(masks, scores, weights, intercept=intercept)

    np.testing.assert_allclose(estimate, beta[-5:], rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(se, np.sqrt((moved**2).sum(axis=1))[-5:], rtol=1e-8)


def test_two_answers_to_spare_are_enough():
    """Six masks for an intercept and three slopes, not five."""
    masks = np.concatenate([np.eye(3), 1 - np.eye(3)])

    assert least_squares(masks, masks[:, 0], np.ones(6), intercept=True) is not None
    assert least_squares(masks[:5], masks[:5, 0], np.ones(5), intercept=True) is None


def test_weighted_rankings_are_those_of_repeated_entries(rng):
    """Kendall's tau-b of entries that occur as often as they weigh; by size, not by sign."""
    first, second = rng.normal(size=6).round(1), rng.normal(size=6).round(1)
    first[3], times = -first[2], np.array([1, 4, 2, 3, 1, 2])
    repeated = stats.kendalltau(*(np.abs(np.repeat(v, times)) for v in (first, second))).statistic

    assert kendall(first, second, times.astype(float)) == pytest.approx(repeated)
    assert kendall(first, second) == pytest.approx(kendall(first, second, np.full(6, 2.0)))
    assert np.isnan(kendall(first, np.array([1.0, -1, 1, 1, 1, 1])))
    assert np.isnan(kendall(np.ones(6), second))


def test_signs_are_compared_among_the_top_of_either():
    """Features 0 and 1 are the first's top, 0 and 2 the second's; two of three have one sign."""
    first, second = np.array([3.0, -2.0, 1.0, 0.5]), np.array([4.0, 0.2, 2.0, -0.1])

    assert same_signs(first, second, 2) == pytest.approx(2 / 3)
