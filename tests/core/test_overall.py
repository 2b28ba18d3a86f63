"""Least squares without shrinkage, and the size of an importance over many inputs."""

import numpy as np
import pytest

from eblime.core.overall import (
    absolute_moments,
    least_squares,
    overall_each,
    pool_fits,
)
from eblime.designs.masks import bernoulli, paired

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


def overall(rng, *sample):
    """The fit to one feature: estimates, standard errors and weights."""
    return overall_each(rng, [sample])[0]


@pytest.mark.slow
@pytest.mark.parametrize("truth", TRUTHS)
def test_intervals_cover_the_mean_size(rng, truth):
    """At least 95 % of the intervals do, less three standard errors of 40 repetitions."""
    held, repeats, n = 0, 40, 40
    for _ in range(repeats):
        beta, se = TRUTHS[truth](rng, n), rng.uniform(0.7, 1.3, n)
        found = overall(rng, beta + se * rng.standard_normal(n), se, np.ones(n))
        low, high = found.size_interval(0.95)
        held += low <= np.abs(beta).mean() <= high

    assert held / repeats >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / repeats)


def test_noise_alone_is_not_importance(rng):
    """With importances of zero the interval begins at zero and ends below the mean |noise|."""
    n = 300
    found = overall(rng, rng.standard_normal(n), np.ones(n), np.ones(n))

    assert np.quantile(found.size, 0.975) < 0.5 < np.sqrt(2 / np.pi)
    assert np.median(found.size) < 0.3
    # 4 standard errors: at three in 10,000 seeds noise alone would be rejected
    assert found.size_interval(1 - 3e-4)[0] == 0
    assert abs(found.mean) < 4 * found.mean_se


def test_the_size_is_at_least_that_of_the_mean(rng):
    """Small importances of the same sign are not zero, though each is below its error."""
    n = 400
    found = overall(rng, 0.3 + rng.standard_normal(n), np.ones(n), np.ones(n))
    low, high = found.size_interval(0.95)

    assert found.mean - 1.96 * found.mean_se > 0.05  # four standard errors below 0.3
    assert low == pytest.approx(found.mean - 1.96 * found.mean_se, abs=0.1)
    assert found.mean - 1.96 * found.mean_se - 1e-4 <= low < high


def test_shares_of_signs(rng):
    """Seven tenths above zero, three tenths below, none of them in doubt."""
    beta = np.repeat([5.0, -5.0], [70, 30])
    found = overall(rng, beta + 0.5 * rng.standard_normal(100), np.full(100, 0.5), np.ones(100))

    np.testing.assert_allclose(np.median(found.positive), 0.7, atol=0.01)
    np.testing.assert_allclose(np.median(found.negative), 0.3, atol=0.01)


def test_exact_estimates_are_averaged(rng):
    """Without errors the result is the plain mean of |estimate|."""
    beta = np.array([0.5, -1.5, 0.0, 4.0])
    found = overall(rng, beta, np.zeros(4), np.ones(4))
    nothing = overall(rng, np.zeros(4), np.zeros(4), np.ones(4))

    np.testing.assert_allclose(found.size, 1.5, rtol=1e-3)
    assert found.mean == 0.75
    assert nothing.size_interval(0.95) == (0.0, 0.0)


def test_two_importances_of_the_same_inputs_are_no_more_certain(rng):
    """Those of two mirrored outputs give the interval of one of them, not a narrower one."""
    b, ones = 3 + rng.standard_normal(50), np.ones(50)
    one, other = overall(rng, b, ones, ones), overall(rng, -b, ones, ones)
    both = pool_fits([one, other], np.array([0.5, 0.5]))
    widths = [np.ptp(found.size_interval(0.95)) for found in (one, other, both)]

    assert 0.9 * min(widths[:2]) <= widths[2] <= 1.1 * max(widths[:2])  # of 400 draws
    assert both.mean == pytest.approx(0.0, abs=1e-12)
    assert both.mean_se == one.mean_se
    np.testing.assert_allclose(np.median(both.positive), 0.5, atol=0.01)


def test_several_features_at_once_are_those_one_by_one(rng):
    """In their order, whatever their numbers of inputs; ends agree within Monte Carlo error."""
    samples = []
    for n, size in ((400, 5.0), (3, 1.0), (60, 0.0), (200, 2.0)):
        se = rng.uniform(0.7, 1.3, n)
        samples.append((size + se * rng.standard_normal(n), se, np.ones(n)))
    together = overall_each(rng, samples)

    assert [found.n for found in together] == [400, 3, 60, 200]
    for sample, found in zip(samples, together, strict=True):
        alone = overall(rng, *sample)
        width = np.ptp(alone.size_interval(0.95))
        np.testing.assert_allclose(
            found.size_interval(0.95), alone.size_interval(0.95), atol=0.35 * width
        )


def test_the_folded_normal_matches_draws(rng):
    """Mean and variance of |x|."""
    mean, sd = np.array([0.0, 0.5, -2.0, 1.0]), np.array([1.0, 1.0, 0.3, 0.0])
    draws = np.abs(mean + sd * rng.standard_normal((200_000, 4)))
    size, variance = absolute_moments(mean, sd)

    np.testing.assert_allclose(size, draws.mean(axis=0), atol=0.01)
    np.testing.assert_allclose(variance, draws.var(axis=0), atol=0.01)


@pytest.mark.parametrize("design", [bernoulli, paired])
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
