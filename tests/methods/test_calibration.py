"""Simulation-based calibration: truth drawn from the prior, ranked in its posterior."""

import numpy as np
import pytest
from scipy import stats

import eblime

REPLICATIONS, DRAWS, BINS = 2_048, 63, 16
FALSE_ALARM = 1e-4  # of one whole test, shared among its chi-square tests
N_MASKS, N_FEATURES, A, B = 20, 4, 3.0, 2.0


def simulate(rng, intercept, *, local=False):
    """One truth from the prior and one data set from the model, (2a)-(2e).

    With local scales tau_j = phi_j^-1/2, where P(tau_j <= t) = 1 - (1 + t^2)^-1/2.
    """
    masks = rng.integers(0, 2, size=(N_MASKS, N_FEATURES)).astype(float)
    weights = rng.uniform(0.2, 1.0, size=N_MASKS)
    lam = 1 / np.tan(rng.random() * np.pi / 2) ** 2  # lambda^-1/2 is half-Cauchy
    sigma2 = B / rng.gamma(A)
    beta = rng.normal(size=N_FEATURES) * np.sqrt(sigma2 / lam)
    if local:
        beta *= np.sqrt((1 - rng.random(N_FEATURES)) ** -2 - 1)
    level = 2.5 if intercept == "flat" else 0.0
    noise = rng.normal(size=N_MASKS) * np.sqrt(sigma2 / weights)
    return (masks, level + masks @ beta + noise, weights), np.array([*beta, sigma2, lam])


@pytest.mark.slow
@pytest.mark.parametrize("intercept", ["flat", "none"])
def test_truth_is_uniform_in_its_posterior(rng, intercept):
    """Ranks among 63 draws and exact probabilities, for beta, sigma^2 and lambda: chi-square."""
    method = eblime.EBLIME(a=A, b=B, intercept=intercept, standardize=False, local=False)
    ranks, chances = [], []
    for _ in range(REPLICATIONS):
        data, truth = simulate(rng, intercept)
        post = eblime.fit(*data, method=method)
        draws = post.draw(DRAWS, rng)
        stacked = np.column_stack([draws.beta, draws.sigma2, draws.lam])
        ranks.append((stacked < truth).sum(axis=0))
        exact = [post.sigma2.cdf(truth[-2]), post.lam.cdf(truth[-1])]
        chances.append([*post.cdf(truth[:N_FEATURES]), *exact])

    places = np.hstack([np.array(ranks) * BINS // (DRAWS + 1), np.array(chances) * BINS])
    places = places.astype(int)
    for column in places.T:
        counts = np.bincount(column, minlength=BINS)
        assert stats.chisquare(counts).pvalue > FALSE_ALARM / places.shape[1]


@pytest.mark.slow
def test_local_scales_are_near_calibration(rng):
    """Truths from the whole hierarchy: the intervals hold what they say, to four points.

    The other features' precisions are fitted, not integrated, so that the match is not exact, and
    the noise of the hierarchy is equal: allowing for more makes these intervals wider. With
    800 correlated truths of 4 features the standard error is below one point.
    """
    method = eblime.EBLIME(a=A, b=B, standardize=False, local=True, noise="equal")
    chances = []
    for _ in range(800):
        data, truth = simulate(rng, "flat", local=True)
        chances.append(eblime.fit(*data, method=method).cdf(truth[:N_FEATURES]))
    off = np.abs(np.array(chances) - 0.5)

    for prob in (0.5, 0.8, 0.95):
        assert np.mean(off < prob / 2) == pytest.approx(prob, abs=0.04)
