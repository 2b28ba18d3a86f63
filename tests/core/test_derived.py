"""Unequal noise: the sandwich factors against dense formulas, and the stretched law; selections."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import problem

import eblime
from eblime.core.derived import noise_factors
from eblime.core.pairs import pair_numbers
from eblime.core.spectrum import decompose, rescale, respond
from eblime.designs.adaptive import in_pairs

LOCAL = [False, True]
COMMON = eblime.EBLIME(local=False, finite=False)


def unequal(local=False):
    """The method under test."""
    return eblime.EBLIME(noise="unequal", local=local, finite=False)


def dense_factors(masks, scores, weights, post):
    """The documented formula with an explicit inverse, every mask a group of its own."""
    law = post.law
    lam, sigma2 = law.lam.median, float(law.evidence.q(np.array([law.lam.median]))[0])
    sigma2 *= law.unit**2 / law.evidence.df
    centre, mean = (np.average(values, axis=0, weights=weights) for values in (masks, scores))
    z, y, w = masks - centre, scores - mean, np.diag(weights)
    inverse = np.linalg.inv(z.T @ w @ z + lam * np.eye(z.shape[1]))
    leverage = weights * (np.einsum("ij,jk,ik->i", z, inverse, z) + 1 / weights.sum())
    residual = weights * (y - z @ post.mean) / np.sqrt(1 - leverage)
    noise = inverse @ (z.T * residual**2) @ z @ inverse
    prior = lam * sigma2 * inverse @ inverse
    return np.sqrt(np.maximum(np.diag(noise + prior) / np.diag(sigma2 * inverse), 1))


def loud_where_shown(rng, n=300, loud=0.05):
    """A feature that is seldom shown, and scores that are noisy where it is."""
    masks = np.column_stack([rng.random(n) < loud, rng.random((n, 2)) < 0.5]).astype(float)
    noise = rng.normal(size=n) * np.where(masks[:, 0] > 0, 3.0, 0.1)
    return masks, masks @ [1.0, 0.5, 0.0] + noise


def test_factors_equal_the_dense_formula(rng):
    """The fast form is the sandwich in the docstring, with HC2 residuals."""
    masks, scores, weights = problem(rng, 200, 20)
    masks[20:, 0] = 0
    scores += 3 * rng.normal(size=200) * masks[:, 0]
    post = eblime.fit(masks, scores, weights, unequal())
    found = np.diag(post.law.matrix)

    assert_array_equal(pair_numbers(masks), np.arange(200))  # no complements in this problem
    assert found[0] > 1.05
    assert_allclose(found, dense_factors(masks, scores, weights, post), rtol=1e-8)


@pytest.mark.parametrize("together", [False, True])
def test_factors_from_sums_of_squares_equal_those_of_every_row(rng, together, monkeypatch):
    """With a scale for each feature, at the median of lambda or near it; also in pairs."""
    monkeypatch.setattr(eblime.methods.common, "find_aliasing", lambda *_: None)
    masks, scores, weights = problem(rng, 400, 6)
    if together:
        masks = np.stack([masks[:200], 1 - masks[:200]], axis=1).reshape(400, 6)
    scores = scores + rng.normal(size=400) * masks[:, 0]
    equal = eblime.fit(masks, scores, weights, eblime.EBLIME(noise="equal", finite=False))
    wide = eblime.fit(masks, scores, weights)
    spectrum = decompose(masks, weights, flat=True)
    response = respond(spectrum, scores, standardize=True)
    scales = np.exp(-equal.law.fitted / 2)
    slow = noise_factors(
        rescale(spectrum, scales),
        response,
        equal.law.base,
        pair_numbers(masks),
    )

    assert slow.max() > 1.05
    assert_allclose(wide.sd / equal.sd, slow, rtol=2e-2)


@pytest.mark.parametrize("local", LOCAL)
def test_only_the_spread_changes(rng, local):
    """Means stay; no interval becomes narrower; the noisy feature's becomes much wider."""
    masks, scores = loud_where_shown(rng)
    equal = eblime.fit(
        masks, scores, method=eblime.EBLIME(local=local, noise="equal", finite=False)
    )
    post = eblime.fit(masks, scores, method=unequal(local))

    wide, narrow = (each.law.alone if local else each for each in (post, equal))  # even odds

    assert_allclose(wide.mean, narrow.mean, rtol=1e-12)
    assert (wide.sd >= narrow.sd * (1 - 1e-12)).all()
    assert post.sd[0] > 2 * equal.sd[0]
    assert_allclose(post.r2, equal.r2, atol=0.01 * local)


@pytest.mark.parametrize("local", LOCAL)
def test_summaries_of_the_stretched_law_agree(rng, local):
    """Quantiles invert the distribution function; draws and order probabilities follow them."""
    masks, scores = loud_where_shown(rng)
    post = eblime.fit(masks, scores, method=unequal(local))
    q = np.array([0.05, 0.3, 0.9])
    draws = post.sample(40_000, rng=1)
    x = post.quantile(q)
    grid = np.linspace(*post.interval(0.9999).T, 4001)
    area = np.sum((post.pdf(grid)[1:] + post.pdf(grid)[:-1]) / 2 * np.diff(grid, axis=0), axis=0)

    assert_allclose(post.cdf(x), np.repeat(q[:, None], 3, axis=1), atol=1e-6)
    assert_allclose((draws[:, None] < x).mean(axis=0), post.cdf(x), atol=5 * 0.5 / 200)
    assert_allclose(area, 0.9999, atol=1e-3)
    greater = (draws[:, :, None] > draws[:, None]).mean(axis=0)
    off = ~np.eye(3, dtype=bool)
    assert_allclose(greater[off], post.prob_greater()[off], atol=5 * 0.5 / 200)


def test_coverage_where_noise_is_unequal():
    """The noisy feature is covered nearly as often as stated, and not if noise counts as equal."""
    fits = 200
    inside = {"equal": 0, "unequal": 0}
    for seed in range(fits):
        masks, scores = loud_where_shown(np.random.default_rng(seed), n=600)
        for noise in inside:
            post = eblime.fit(masks, scores, method=eblime.EBLIME(noise=noise, local=False))
            low, high = post.interval(0.95)[0]
            inside[noise] += low <= 1.0 <= high

    error = np.sqrt(0.95 * 0.05 * fits)
    assert inside["unequal"] > 0.93 * fits - 3 * error
    assert inside["equal"] < 0.95 * fits - 5 * error


def test_pairs_count_as_one(rng):
    """Where a mask and its complement have opposite residuals, half of them are informative."""
    masks = in_pairs(rng.integers(0, 2, size=(200, 10)).astype(float))
    signs = 2 * masks - 1
    scores = masks[:, 0] + np.prod(signs[:, :3], axis=1)  # odd: opposite for complements
    together = eblime.fit(masks, scores, method=unequal(), rng=0)
    order = np.concatenate([np.arange(0, 400, 2), np.arange(1, 400, 2)])
    apart = eblime.fit(masks[order], scores[order], method=unequal(), rng=0)

    assert_allclose(together.sd / apart.sd, np.sqrt(2), rtol=0.1)


def test_constant_scores_and_rank_deficient_masks(rng):
    """No residuals, or more features than masks: still a law, never narrower."""
    masks, scores, weights = problem(rng, 6, 9)
    constant = eblime.fit(masks, np.ones(6), weights, unequal())
    wide, equal = (eblime.fit(masks, scores, weights, m) for m in (unequal(), COMMON))

    assert_array_equal(constant.mean, 0.0)
    assert np.isfinite(wide.interval()).all()
    assert (np.diff(wide.interval()) >= np.diff(equal.interval()) * (1 - 1e-9)).all()


def test_a_mask_that_decides_a_feature_beside_a_column_that_never_varies():
    """What a fit without the mask misses is of the scores' size, not 1000 times as large."""
    masks, scores = np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]]), np.array([10.0, 0.0, 0.01])
    low, high = eblime.fit(masks, scores).interval()[0]

    assert 10 < high - low < 1000


def test_unequal_noise_needs_the_half_line():
    """The published setting is exactly as published."""
    with pytest.raises(ValueError, match="need `grid=None`"):
        eblime.EBLIME(noise="unequal", grid=eblime.methods.PublishedGrid())
    with pytest.raises(ValueError, match="`noise` must be"):
        eblime.EBLIME(noise="loud")


METHODS = ["eblime", "eblime-ridge", "eblime-paper", "bayeslime", "bayesshap", "quadrature"]


@pytest.mark.parametrize("method", [*METHODS, unequal(), unequal(local=True)], ids=str)
def test_some_features_have_the_law_they_have_among_all(rng, method):
    """Every summary of a selection equals that of all features; also of a selection of one."""
    masks, scores, weights = problem(rng, 60, 6)
    masks = (masks > 0.5).astype(float)
    post = eblime.fit(masks, scores, None if method == "quadrature" else weights, method=method)
    features, x = np.array([4, 1, 2]), rng.normal(size=(5, 3))
    chosen, wide = post.select(features), np.zeros((5, 6))
    wide[:, features] = x

    assert_allclose(chosen.mean, post.mean[features], rtol=1e-12)
    assert_allclose(chosen.sd, post.sd[features], rtol=1e-12)
    assert_allclose(chosen.cov, post.cov[np.ix_(features, features)], rtol=1e-12)
    assert_allclose(chosen.interval(), post.interval()[features], rtol=1e-9)
    assert_allclose(chosen.hdi(), post.hdi()[features], rtol=1e-5, atol=1e-5)
    assert_allclose(chosen.pdf(x), post.pdf(wide)[:, features], rtol=1e-9)
    assert_allclose(chosen.cdf(x), post.cdf(wide)[:, features], rtol=1e-9)
    assert_allclose(chosen.prob_positive(), post.prob_positive()[features], rtol=1e-7)
    greater = post.prob_greater()[np.ix_(features, features)]
    assert_allclose(chosen.prob_greater(), greater, rtol=1e-9)
    assert chosen.sample(7, rng=0).shape == (7, 3)
    assert_allclose(chosen.select(np.array([2])).mean, post.mean[[2]], rtol=1e-12)
    for name, values in chosen.columns().items():
        assert_allclose(values, post.columns()[name][features], rtol=1e-7)


def test_a_point_estimate_can_be_selected_from(rng):
    """It has means and no spread."""
    post = eblime.fit(*problem(rng, 30, 4), method="lime")
    chosen = post.select(np.array([3, 0]))

    assert_array_equal(chosen.mean, post.mean[[3, 0]])
    assert chosen.columns() == {}
