"""BayesSHAP: Shapley values by regression, exact at both ends."""

from itertools import combinations
from math import factorial

import numpy as np
import pytest
from numpy.testing import assert_allclose

import eblime
from eblime.answers import Answers
from eblime.designs.masks import bernoulli, exhaustive, leverage
from eblime.kernels import shapley
from eblime.methods.bayesshap import BayesSHAP


def game(p, seed=0):
    """Scores of all masks, by their code."""
    rng = np.random.default_rng(seed)
    masks = exhaustive(rng, 0, p)
    pairs = np.triu(rng.normal(size=(p, p)), 1)
    drive = masks @ rng.normal(size=p) + np.einsum("ij,jk,ik->i", masks, pairs, masks)
    return masks, 1 / (1 + np.exp(-drive))


def shapley_values(scores, p):
    """The definition: the average gain over all orders of the features."""
    values = np.zeros(p)
    for j in range(p):
        others = [i for i in range(p) if i != j]
        for size in range(p):
            weight = factorial(size) * factorial(p - size - 1) / factorial(p)
            for subset in combinations(others, size):
                code = sum(2**i for i in subset)
                values[j] += weight * (scores[code + 2**j] - scores[code])
    return values


@pytest.mark.parametrize("p", [1, 2, 3, 7])
def test_all_masks_give_shapley_values(p):
    """On all masks the fit is the definition, and so it is in an explanation."""
    masks, scores = game(p)
    truth = shapley_values(scores, p)
    method = BayesSHAP()

    post = eblime.fit(masks, scores, method=method)
    assert_allclose(post.mean, truth, atol=1e-8)
    assert_allclose(post.intercept, scores[0], atol=1e-12)
    model = lambda texts: [scores[sum(2 ** "abcdefg".index(c) for c in t)] for t in texts]  # noqa: E731
    explainer = eblime.TextExplainer(model, tokens="char", method=method)
    e = explainer.explain("abcdefg"[:p])
    assert e.exhaustive
    assert_allclose(e.posterior.mean, truth, atol=1e-8)
    assert e.posterior.estimand == "Shapley values"


@pytest.mark.parametrize("design", [bernoulli, leverage])
def test_every_draw_adds_up(rng, design):
    """Mean and draws add up to the difference of the ends; covariances add up to zero."""
    p = 9
    _, scores = game(p)
    wanted = design(rng, 80, p)
    masks = wanted.masks if design is leverage else np.concatenate([wanted, np.zeros((1, p))])
    asked = scores[(masks @ 2 ** np.arange(p)).astype(int)]
    post = eblime.fit(masks, asked, method="bayesshap")
    gap = scores[-1] - scores[0]

    assert_allclose(post.mean.sum(), gap, atol=1e-10)
    assert_allclose(post.sample(50, rng=0).sum(axis=1), gap, atol=1e-10)
    assert_allclose(post.cov.sum(axis=0), 0, atol=1e-10)
    greater = post.prob_greater()
    draws = post.sample(4000, rng=1)
    seen = (draws[:, :, None] > draws[:, None]).mean(axis=0)
    assert_allclose(greater, seen + 0.5 * np.eye(p), atol=0.04)
    assert_allclose(post.prob_positive(), (draws > 0).mean(axis=0), atol=0.04)


def test_intervals_hold_the_shapley_values():
    """95 % intervals of 60 of 512 masks hold the truth in 91 to 99 % of cases."""
    p, inside = 9, []
    for seed in range(60):
        _, scores = game(p, seed)
        truth, rng = shapley_values(scores, p), np.random.default_rng(seed)
        wanted = leverage(rng, 60, p)
        asked = scores[(wanted.masks @ 2 ** np.arange(p)).astype(int)]
        answers = Answers(
            masks=wanted.masks,
            scores=asked,
            weights=wanted.sampling_weights,
            sampling=wanted.sampling_weights,
        )
        low, high = BayesSHAP().fit(rng, answers).interval().T
        inside.append((low <= truth) & (truth <= high))

    assert 0.91 < np.mean(inside) < 0.99


def test_the_loop_asks_about_both_ends():
    """A design that leaves out an end gets it added, with no weight in the regression."""
    score = lambda texts: [0.2 + ("c" in t) * ("d" in t) + 0.1 * len(t) for t in texts]  # noqa: E731
    explainer = eblime.TextExplainer(
        score, tokens="char", design="bernoulli", n_masks=100, method="bayesshap"
    )
    e = explainer.explain("abcdefghijkl")

    assert e.answers.hidden == pytest.approx(0.2)
    assert e.posterior.estimand == "Shapley values"
    assert_allclose(e.posterior.mean.sum(), score(["abcdefghijkl"])[0] - 0.2)
    assert len(e.masks) <= 101
    assert_allclose(eblime.TextExplainer(score, tokens="char").explain("ab").posterior.mean, 0.1)


def test_without_an_end_the_intercept_is_free():
    """And the posterior says so."""
    masks, scores = game(4)
    post = eblime.fit(masks[1:], scores[1:], method="bayesshap")

    assert post.estimand == "linear fit by the Shapley kernel, free intercept"


def test_the_kernel_is_symmetric_and_sums_by_size():
    """Masks of each size together weigh `(p - 1) / (s (p - s))`."""
    masks = exhaustive(np.random.default_rng(0), 0, 6)
    shown = masks.sum(axis=1).astype(int)
    by_size = np.bincount(shown, weights=shapley(masks))

    assert_allclose(by_size[1:6], 5 / (np.arange(1, 6) * np.arange(5, 0, -1)))
    assert_allclose(shapley(masks), shapley(1 - masks))
    assert np.isfinite(shapley(np.eye(2000))).all()


def test_the_known_sum_counts_in_the_sign(rng):
    """The offset of each value is part of P(phi > 0), also in the columns of a table."""
    masks = (rng.random((200, 4)) > 0.5).astype(float)
    scores = masks @ [3.0, 1.0, 0.1, -1.0] + rng.normal(size=200)
    post = eblime.fit(masks, scores, method="bayesshap")

    assert_allclose(post.prob_positive(), 1 - post.cdf(np.zeros(4)), atol=1e-9)
    assert_allclose(post.columns()["prob_positive"], post.prob_positive(), rtol=1e-12)


def test_one_feature_with_constant_scores_has_importance_zero():
    """And no sign."""
    post = eblime.fit([[0], [1], [1], [0]], np.ones(4), method="bayesshap")

    assert_allclose(post.mean, 0)
    assert_allclose(post.prob_positive(), 0.5)


@pytest.mark.parametrize("p", [1, 3])
def test_the_order_of_the_masks_does_not_matter(rng, p):
    """Several answers to an end that differ do not say what its score is: all of them count."""
    masks = np.concatenate([rng.integers(0, 2, (20, p)), np.ones((3, p)), np.zeros((3, p))])
    scores, order = 2 * masks[:, 0] + rng.normal(size=26), rng.permutation(26)
    post = eblime.fit(masks, scores, method="bayesshap")
    other = eblime.fit(masks[order], scores[order], method="bayesshap")

    assert_allclose(other.mean, post.mean, rtol=1e-8)
    assert_allclose(other.sd, post.sd, rtol=1e-6)
    assert (post.sd > 0).all()
