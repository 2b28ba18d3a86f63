"""DMM-MEN: each step of the sampler against numerical integrals, and known mixtures."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate

from eblime.family.mixture import (
    _INTERCEPT,
    draw_coefficients,
    draw_scales,
    fit_mixture,
    log_normaliser,
    start,
    sweep,
)


@pytest.mark.parametrize(("l1", "l2"), [(0.1, 3.0), (5.0, 0.2), (30.0, 0.05)])
def test_the_normaliser_is_the_integral(l1, l2):
    """Of exp(-l1 |b| - l2 b^2 / 2)."""
    found = integrate.quad(lambda b: np.exp(-l1 * b - l2 * b**2 / 2), 0, np.inf)[0]

    assert_allclose(np.exp(log_normaliser(np.array(l1), np.array(l2))), 2 * found, rtol=1e-7)


def test_coefficients_have_the_elastic_net_posterior(rng):
    """One slope at fixed penalties and noise: mean and spread of the printed density."""
    x = np.column_stack([np.ones(8), rng.normal(size=8)])
    y = 0.4 * x[:, 1] + rng.normal(size=8)
    state = replace(
        start(rng, x, y, 2),
        labels=np.zeros(8, dtype=int),
        penalties=np.full((2, 2), [4.0, 0.5]),
        sigma2=np.array([0.7, 0.7]),
    )
    values = []
    for _ in range(6000):
        state = draw_coefficients(rng, draw_scales(rng, state), x, y)
        values.append(state.beta[0, 1])
    b, a = np.meshgrid(np.linspace(-4, 4, 801), np.linspace(-4, 4, 401))
    gap = y - a[..., None] - b[..., None] * x[:, 1]
    size = np.abs(b) / np.sqrt(0.7)
    log = -np.sum(gap**2, axis=-1) / 1.4 - 4.0 * size - 0.5 * size**2 / 2
    chance = np.exp(log - _INTERCEPT * a**2 / 1.4)
    mean = np.sum(chance * b) / chance.sum()
    sd = np.sqrt(np.sum(chance * (b - mean) ** 2) / chance.sum())

    assert_allclose(np.mean(values), mean, atol=5 * sd * 3 / np.sqrt(6000))
    assert_allclose(np.std(values), sd, rtol=0.07)


@pytest.mark.slow
def test_the_sampler_keeps_the_joint_law(rng):
    """Scores drawn anew after every sweep: parameters keep their priors (Geweke, 2004)."""
    x = np.column_stack([np.ones(6), rng.normal(size=(6, 1))])
    state, alphas, penalties, precisions = None, [], [], []
    state = start(rng, x, rng.normal(size=6), 2)
    y = np.zeros(6)
    for _ in range(4_000):
        drawn = rng.normal(size=6) * np.sqrt(state.sigma2[state.labels])
        y = np.sum(x * state.beta[state.labels], axis=1) + drawn
        state = sweep(rng, state, x, y)
        alphas.append(state.alpha)
        penalties.append(state.penalties[0])
        precisions.append(1 / state.sigma2[0])

    # priors: alpha ~ Gamma(5, 1), l2 ~ Gamma(4, 1/2), 1 / sigma^2 ~ Gamma(1/2, 1/2); the chain is
    # correlated, hence wide limits
    assert_allclose(np.mean(alphas), 5.0, atol=0.6)
    assert_allclose(np.mean(penalties, axis=0), [2.0, 8.0], rtol=0.3)
    assert_allclose(np.mean(np.array(precisions) < 0.4549), 0.5, atol=0.12)  # median of chi^2_1


def known(rng, n=240):
    """Two linear regimes; the last column decides which one applies."""
    rows = rng.normal(size=(n, 4)) * [1.0, 10.0, 1.0, 1.0]
    first = rows[:, 3] > 0
    slopes = np.where(first[:, None], [2.0, 0.0, 0.0, 0.0], [0.0, -0.3, 1.0, 0.0])
    offset = np.where(first, 8.0, 0.0)
    return rows, np.sum(rows * slopes, axis=1) + offset + 0.1 * rng.normal(size=n), first, slopes


def test_a_known_mixture_comes_back(rng):
    """Components, their shares, and the slopes of single rows within five standard deviations."""
    rows, scores, first, slopes = known(rng)
    found = fit_mixture(rows, scores, draws=150, burn_in=150)
    shares = np.sort([np.bincount(draw, minlength=6) for draw in found.labels], axis=1) / 240

    assert_allclose(shares[:, -2:].sum(axis=1), 1, atol=0.05)
    assert_allclose(shares.mean(axis=0)[-1], max(first.mean(), 1 - first.mean()), atol=0.05)
    for number in range(0, 240, 40):
        post = found.local(rows[number], scores[number])
        assert (np.abs(post.mean - slopes[number]) < 5 * post.sd + 0.01).all()
        assert post.r2 > 0.98
        assert post.method == "DMM-MEN"


def test_refusals(rng):
    """Settings that cannot work, and rows of another length."""
    rows, scores, *_ = known(rng, 20)
    with pytest.raises(ValueError, match="`n_components` must be >= 2; got 1"):
        fit_mixture(rows, scores, n_components=1)
    with pytest.raises(ValueError, match="`rows` must be 2-D"):
        fit_mixture(rows[0], scores)
    with pytest.raises(ValueError, match="`burn_in` must be >= 0; got -1"):
        fit_mixture(rows, scores, burn_in=-1)
    with pytest.raises(TypeError, match=r"`burn_in` must be a whole number; got 0\.5"):
        fit_mixture(rows, scores, burn_in=0.5)
    found = fit_mixture(rows, scores, draws=2, burn_in=0)
    with pytest.raises(ValueError, match="`x` must have 4 columns; got 3"):
        found.local([1.0, 2.0, 3.0], 0.0)
