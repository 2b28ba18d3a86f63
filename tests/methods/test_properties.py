from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from problems import problem

import eblime
from eblime.core.laws import PointValue
from eblime.core.mixture import Mixture

SEEDS = st.integers(0, 2**32 - 1)
COMMON = eblime.EBLIME(local=False)
METHODS = st.sampled_from([COMMON, eblime.EBLIME(local=True)])
SHAPES = st.tuples(st.integers(2, 40), st.integers(1, 12))


def made(seed, shape):
    """A problem of any shape from a seed."""
    rng = np.random.default_rng(seed)
    return rng, *problem(rng, *shape)


def assert_same(ours, theirs, scale):
    """Equal to 1e-7 of the posterior's scale, infinities in the same places."""
    assert_allclose(ours, theirs, rtol=1e-7, atol=1e-7 * scale)


@given(method=METHODS, seed=SEEDS, shape=SHAPES)
def test_permuting_features_permutes_the_answer(seed, shape, method):
    """Names carry no information."""
    rng, masks, scores, weights = made(seed, shape)
    order = rng.permutation(shape[1])
    post = eblime.fit(masks, scores, weights, method)
    moved = eblime.fit(masks[:, order], scores, weights, method)

    scale = np.abs(post.mean).max() + 1e-9
    assert_same(moved.mean, post.mean[order], scale)
    assert_same(moved.quantile(0.9), post.quantile(0.9)[order], scale)


@given(method=METHODS, seed=SEEDS, shape=SHAPES)
def test_permuting_masks_changes_nothing(seed, shape, method):
    """The order in which masks were asked carries no information."""
    rng, masks, scores, weights = made(seed, shape)
    order = rng.permutation(shape[0])
    post = eblime.fit(masks, scores, weights, method)
    moved = eblime.fit(masks[order], scores[order], weights[order], method)

    assert_same(moved.quantile(0.1), post.quantile(0.1), np.abs(post.mean).max() + 1e-9)


@given(method=METHODS, seed=SEEDS, shape=SHAPES)
def test_flipping_signs_flips_the_answer(seed, shape, method):
    """Negated scores negate beta; a complemented mask column negates its own importance.

    At even odds: otherwise the importances share a sign. And of the masks that were asked alone:
    the others are weighed by what they show.
    """
    _, masks, scores, weights = made(seed, shape)
    method = replace(method, finite=False)
    post = eblime.fit(masks, scores, weights, method)
    negated = eblime.fit(masks, -scores, weights, method)
    flipped = masks.copy()
    flipped[:, 0] = 1 - flipped[:, 0]
    turned = eblime.fit(flipped, scores, weights, method)
    scale = np.abs(post.mean).max() + 1e-9
    even, other = (each.law.alone if method.local else each for each in (post, turned))

    assert_same(negated.mean, -post.mean, scale)
    assert_same(negated.quantile(0.1), -post.quantile(0.9), scale)
    assert_same(other.mean[0], -even.mean[0], scale)
    assert_same(other.mean[1:], even.mean[1:], scale)
    if not method.local:
        assert_same(turned.intercept, post.intercept + post.mean[0], scale)


@given(method=METHODS, seed=SEEDS, shape=SHAPES, power=st.integers(-12, 12))
def test_scaling_the_scores_scales_the_answer(seed, shape, power, method):
    """Units do not matter to the default method, from 1e-12 to 1e12."""
    _, masks, scores, weights = made(seed, shape)
    factor = 10.0**power
    post = eblime.fit(masks, scores, weights, method)
    scaled = eblime.fit(masks, scores * factor, weights, method)
    scale = np.abs(post.mean).max() + 1e-9

    assert_same(scaled.mean / factor, post.mean, scale)
    assert_same(scaled.interval() / factor, post.interval(), scale)
    assert_allclose(scaled.prob_positive(), post.prob_positive(), rtol=1e-7)
    assert_allclose(scaled.lam.median, post.lam.median, rtol=1e-6)
    assert_allclose(scaled.r2, post.r2, atol=1e-9)


@given(
    method=METHODS,
    seed=SEEDS,
    shape=SHAPES,
    power=st.integers(-12, 12),
    sign=st.sampled_from([-1, 1]),
)
def test_shifting_the_scores_moves_the_intercept_only(seed, shape, power, sign, method):
    """A constant added, up to 1e12; scores are rounded so that the sum itself is exact."""
    _, masks, scores, weights = made(seed, shape)
    shift = sign * np.round(10.0**power * 2**10) / 2**10
    scores = np.round(scores * 2**10) / 2**10
    post = eblime.fit(masks, scores, weights, method)
    moved = eblime.fit(masks, scores + shift, weights, method)
    scale = np.abs(post.mean).max() + 1e-9

    assert_same(moved.mean, post.mean, scale)
    assert_same(moved.interval(), post.interval(), scale)
    assert_allclose(moved.r2, post.r2, atol=1e-9)
    assert_allclose(moved.intercept, post.intercept + shift, rtol=1e-9, atol=1e-9)


@given(seed=SEEDS, shape=SHAPES, lam=st.floats(1e-3, 1e3))
def test_repeating_masks_equals_weighing_them(seed, shape, lam):
    """At a fixed lambda, seeing a mask twice or three times is the mean of weighing it so."""
    rng, masks, scores, _ = made(seed, shape)
    times = rng.integers(1, 4, size=len(scores))
    method = eblime.EBLIME(local=False, finite=False)
    repeated = eblime.fit(np.repeat(masks, times, axis=0), np.repeat(scores, times), method=method)
    weighed = eblime.fit(masks, scores, times, method)
    means = [
        Mixture(
            basis=post.law.basis,
            evidence=post.law.evidence,
            lam=PointValue(value=lam),
            unit=post.law.unit,
        ).mean
        for post in (repeated, weighed)
    ]

    assert_allclose(means[0], means[1], rtol=1e-7, atol=1e-9)


@given(method=METHODS, seed=SEEDS, power=st.integers(-12, 6))
def test_small_weights_do_not_hand_over_to_the_prior(seed, power, method):
    """A kernel that makes all weights small moves the answer by a fraction of a width only."""
    _, masks, scores, weights = made(seed, (60, 5))
    post = eblime.fit(masks, scores, weights, method)
    scaled = eblime.fit(masks, scores, weights * 10.0**power, method)

    assert_allclose(scaled.mean, post.mean, atol=post.sd.max())
    assert_allclose(scaled.sd, post.sd, rtol=0.35)


@given(method=METHODS, seed=SEEDS, shape=SHAPES)
def test_summaries_are_coherent(seed, shape, method):
    """Quantiles increase, the cdf inverts them, the covariance is a covariance."""
    _, masks, scores, weights = made(seed, shape)
    post = eblime.fit(masks, scores, weights, method)
    q = np.array([0.01, 0.3, 0.5, 0.8, 0.99])
    x = post.quantile(q)

    assert (np.diff(x, axis=0) >= 0).all()
    if np.ptp(scores) > 0:
        assert_allclose(post.cdf(x), np.broadcast_to(q[:, None], x.shape), rtol=1e-7)
    if np.isfinite(post.cov).all():
        assert np.linalg.eigvalsh(post.cov).min() >= -1e-9 * np.trace(post.cov)
    assert post.r2 <= 1 + 1e-12
    assert 1 - 1e-9 <= post.ess <= len(scores) + 1e-9


@pytest.mark.parametrize("method", ["bayeslime", "lime"])
@pytest.mark.parametrize("factor", [1e-12, 1e12])
def test_peers_are_scale_free_too(rng, method, factor):
    """BayesLIME and LIME scale with the scores."""
    masks, scores, weights = problem(rng, 30, 4)

    assert_allclose(
        eblime.fit(masks, scores * factor, weights, method).mean / factor,
        eblime.fit(masks, scores, weights, method).mean,
    )
