"""The held-out R^2: closed forms against refitting, and what it says about noise."""

import pickle
from functools import partial

import numpy as np
import paper
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from problems import problem

import eblime
import eblime.methods.common
from eblime import EBLIME, LIME, BayesLIME
from eblime.answers import Answers
from eblime.core.fit_quality import leave_one_out
from eblime.designs import orthogonal
from eblime.laws import normal_law
from eblime.methods.regression import fit_each
from eblime.posterior import Posterior

METHODS = [
    EBLIME(local=False),
    EBLIME(local=False, intercept="none"),
    EBLIME(local=True),
    EBLIME(local=True, intercept="none"),
    EBLIME.paper(n_lambdas=200),
    BayesLIME(),
    BayesLIME(intercept="flat"),
    BayesLIME(intercept="none"),
    LIME(),
    LIME(intercept="none"),
]
SHAPES = [(40, 5), (12, 20)]  # more masks than features, and fewer


def refitted(method, Z, Y, w, z):
    """The posterior mean at z of a method that is fitted again."""
    post = eblime.fit(Z, Y, w, method)
    return post.intercept + z @ post.mean


@pytest.mark.parametrize(("n", "p"), SHAPES)
@pytest.mark.parametrize("intercept", ["flat", "none", "penalised"])
def test_equals_n_ridge_fits(rng, n, p, intercept):
    """At a fixed lambda the closed form is the literal one."""
    masks, scores, weights = problem(rng, n, p)
    predict = partial(paper.predict_ridge, lam=1.0, intercept=intercept)
    post = eblime.fit(masks, scores, weights, BayesLIME(intercept=intercept))

    assert_allclose(post.r2_held_out, paper.held_out_r2(masks, scores, weights, predict), rtol=1e-8)


@pytest.mark.parametrize(("n", "p"), SHAPES)
@pytest.mark.parametrize("intercept", ["flat", "none", "penalised"])
def test_pairs_are_left_out_together(rng, n, p, intercept):
    """A mask and its complement: the closed form is that of fits without both of them."""
    masks, scores, weights = problem(rng, n, p)
    masks[1::2] = 1 - masks[::2]
    predict = partial(paper.predict_ridge, lam=1.0, intercept=intercept)
    slow = paper.held_out_r2(masks, scores, weights, predict, together=2)

    post = eblime.fit(masks, scores, weights, BayesLIME(intercept=intercept))
    assert_allclose(post.r2_held_out, slow, rtol=1e-8)


@pytest.mark.parametrize(("n", "p"), [(16, 4), (8, 10)])
def test_pairs_are_left_out_together_with_any_lambda(rng, n, p):
    """The posterior of lambda is the one without both rows, too."""
    masks, scores, weights = problem(rng, n, p)
    masks[1::2] = 1 - masks[::2]
    method = EBLIME.paper(n_lambdas=60)
    predict = partial(paper.predict_on_grid, grid=method.grid.lambdas)
    slow = paper.held_out_r2(masks, scores, weights, predict, together=2)

    post = eblime.fit(masks, scores, weights, method)
    assert_allclose(post.r2_held_out, slow, rtol=1e-6)


def test_pairs_predict_new_masks_as_well_as_they_say(rng):
    """Of a model with interactions, which are even: near the R^2 of masks that were not asked."""
    gaps = []
    for _ in range(20):
        half = rng.integers(0, 2, size=(1_050, 20)).astype(float)
        masks = np.stack([half, 1 - half], axis=1).reshape(-1, 20)
        even = [masks[:, j] * masks[:, j + 1] for j in range(0, 20, 2)]
        scores = masks @ rng.normal(size=20) + 3 * np.sum(even, axis=0)
        post = eblime.fit(masks[:100], scores[:100])
        missed = scores[100:] - post.intercept - masks[100:] @ post.mean
        gaps.append(post.r2_held_out - (1 - missed.var() / scores[100:].var()))

    assert abs(np.mean(gaps)) < 0.02 + 3 * np.std(gaps) / np.sqrt(len(gaps))


def test_balanced_masks_are_not_thought_to_predict_worse(rng):
    """Without one of its pairs an array is less balanced than the masks that were asked."""
    gaps = []
    for _ in range(30):
        masks = np.concatenate([orthogonal(rng, 128, 24), rng.integers(0, 2, size=(2000, 24))])
        sets = rng.permuted(np.tile(np.arange(24), (60, 1)), axis=1)[:, :3]
        scores = np.prod(masks[:, sets], axis=2) @ rng.standard_normal(60)
        scores += masks @ rng.standard_normal(24) / 2
        post = eblime.fit(masks[:128], scores[:128])
        missed = scores[128:] - masks[128:] @ post.mean
        gaps.append(post.r2_held_out - (1 - missed.var() / scores[128:].var()))

    assert abs(np.mean(gaps)) < 3 * np.std(gaps) / np.sqrt(len(gaps))
    assert abs(np.mean(gaps)) < 0.05


@pytest.mark.parametrize("intercept", ["flat", "none"])
def test_lime_equals_n_ridge_fits(rng, intercept):
    """Lime's own ridge parameter, any value of it."""
    masks, scores, weights = problem(rng, 30, 6)
    predict = partial(paper.predict_ridge, lam=3.5, intercept=intercept)
    post = eblime.fit(masks, scores, weights, LIME(alpha=3.5, intercept=intercept))

    assert_allclose(post.r2_held_out, paper.held_out_r2(masks, scores, weights, predict), rtol=1e-8)


@pytest.mark.parametrize(("n", "p"), [(15, 4), (8, 10)])
@pytest.mark.parametrize("draws", [None, 50])
def test_equals_n_fits_of_the_published_grid(rng, n, p, draws):
    """The posterior of lambda is the one without the row, too."""
    masks, scores, weights = problem(rng, n, p)
    method = EBLIME.paper(n_lambdas=60, draws=draws)
    predict = partial(paper.predict_on_grid, grid=method.grid.lambdas)
    post = eblime.fit(masks, scores, weights, method)

    assert_allclose(post.r2_held_out, paper.held_out_r2(masks, scores, weights, predict), rtol=1e-6)


@pytest.mark.parametrize(("n", "p"), SHAPES)
def test_equals_n_fits_with_lambda_on_the_half_line(rng, n, p):
    """The closed form integrates over lambda as the fits themselves do."""
    masks, scores, weights = problem(rng, n, p)
    method = EBLIME(local=False)
    post = eblime.fit(masks, scores, weights, method)
    predict = partial(refitted, method)

    assert_allclose(post.r2_held_out, paper.held_out_r2(masks, scores, weights, predict), atol=1e-3)


@pytest.mark.slow
def test_local_scales_are_not_flattered(rng):
    """With a scale for each feature: near the value of N fits, for a signal and for noise."""
    method, gaps = EBLIME(local=True), []
    for _ in range(3):
        masks, scores, weights = problem(rng, 50, 20)
        for answers in (scores, rng.normal(size=50)):
            post = eblime.fit(masks, answers, weights, method)
            slow = paper.held_out_r2(masks, answers, weights, partial(refitted, method))
            gaps.append(post.r2_held_out - slow)

    assert np.max(np.abs(gaps)) < 0.2
    assert abs(np.mean(gaps)) < 0.1


@pytest.mark.parametrize("p", [6, 120])
def test_a_mask_that_decides_a_feature_alone(rng, p):
    """Without it the feature is unknown: that is an error of the effect's size, not 1000 times."""
    masks = rng.integers(0, 2, size=(4 * p, p)).astype(float)
    masks[:, 0] = np.arange(4 * p) == 7
    scores = masks[:, 1:4] @ [1.0, -1.0, 0.5] + 10 * masks[:, 0] + 0.1 * rng.normal(size=4 * p)
    post = eblime.fit(masks, scores)
    kept = np.arange(4 * p) != 7
    others = eblime.fit(masks[kept], scores[kept])
    missed = scores[7] - others.intercept - masks[7] @ others.mean
    total = scores - (scores.sum() - scores) / (4 * p - 1)

    assert 1 - post.r2_held_out == pytest.approx(missed**2 / (total @ total), rel=0.1)
    assert 1 < np.ptp(post.interval()[0]) < 5 * np.ptp(scores)


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_noise_explains_nothing(rng, method):
    """400 features can follow any 300 scores; the held-out value is not flattered."""
    masks = rng.integers(0, 2, size=(300, 400)).astype(float)
    post = eblime.fit(masks, 0.5 + 0.1 * rng.normal(size=300), method=method)

    assert post.r2_held_out < 0.15
    if "free intercept" in post.estimand:  # without it, the in-sample value may be as bad
        assert post.r2_held_out < post.r2


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_approaches_the_in_sample_value_with_many_masks(rng, method):
    """With many masks for few features there is nothing to flatter."""
    masks = rng.integers(0, 2, size=(4000, 4)).astype(float)
    scores = masks @ [0.4, -0.2, 0.1, 0.0] + 0.2 * rng.normal(size=4000)
    post = eblime.fit(masks, scores, method=method)

    assert_allclose(post.r2_held_out, post.r2, atol=0.01)


@given(seed=st.integers(0, 2**32 - 1), alpha=st.floats(1e-3, 1e3), n=st.integers(3, 40))
def test_at_most_the_in_sample_value(seed, alpha, n):
    """Ridge with a free intercept and equal weights: leaving a row out only makes it worse."""
    masks, scores, _ = problem(np.random.default_rng(seed), n, 6)
    post = eblime.fit(masks, scores, method=LIME(alpha=alpha))

    assert post.r2_held_out <= post.r2 + 1e-9


@given(seed=st.integers(0, 2**32 - 1), shift=st.floats(-100, 100), factor=st.floats(0.01, 100))
def test_does_not_depend_on_units(seed, shift, factor):
    """Other units of the scores change nothing."""
    masks, scores, weights = problem(np.random.default_rng(seed), 30, 5)
    post = eblime.fit(masks, scores, weights)
    moved = eblime.fit(masks, shift + factor * scores, weights)

    assert_allclose(moved.r2_held_out, post.r2_held_out, atol=1e-6)


def test_a_mean_predicts_nothing(rng):
    """With an immense ridge parameter only the mean is left: an R^2 of exactly zero."""
    masks, scores, weights = problem(rng, 30, 5)
    post = eblime.fit(masks, scores, weights, LIME(alpha=1e12))

    assert_allclose(post.r2_held_out, 0.0, atol=1e-9)


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_rows_of_weight_zero_do_not_count(rng, method):
    """Answers without weight are neither used nor predicted."""
    masks, scores, weights = problem(rng, 40, 5)
    more = np.vstack([rng.integers(0, 2, size=(3, 5)), masks])
    post = eblime.fit(masks, scores, weights, method)
    padded = eblime.fit(more, [9.0, -9.0, 5.0, *scores], [0.0, 0.0, 0.0, *weights], method)

    assert_allclose(padded.r2_held_out, post.r2_held_out, atol=1e-9)


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_very_unequal_weights_leave_it_finite(rng, method):
    """One row that outweighs all others by 1e12 is predicted from them without a warning."""
    masks, scores, weights = problem(rng, 40, 5)
    weights[7] = 1e12

    assert eblime.fit(masks, scores, weights, method).r2_held_out <= 1


@pytest.mark.parametrize("value", [0.0, 0.3])
@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_constant_scores_have_none(rng, method, value):
    """Nothing moves: R^2 is not a number, and the table says so instead of 1.000."""
    masks = rng.integers(0, 2, size=(30, 4))
    post = eblime.fit(masks, np.full(30, value), method=method)

    assert np.isnan(post.r2_held_out)
    assert post.constant
    assert "masks, constant scores, effective" in str(post)
    assert "R2" not in str(post)


def test_scores_that_barely_move_are_marked(rng):
    """Differences as small as the rounding of single precision are pointed out."""
    masks = rng.integers(0, 2, size=(30, 4))
    post = eblime.fit(masks, 0.7 + 1e-7 * masks[:, 0])

    assert post.nearly_constant
    assert not post.constant
    assert "(scores barely move)" in str(post)
    assert not eblime.fit(masks, 0.7 + 1e-3 * masks[:, 0]).nearly_constant


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_one_and_two_masks(method):
    """Two masks leave one to predict from; a single mask says nothing, and is refused."""
    with pytest.raises(ValueError, match="at least 2 masks; got 1"):
        eblime.fit([[1, 0]], [0.5], method=method)
    assert eblime.fit([[1, 0], [0, 1]], [0.5, 0.9], method=method).r2_held_out <= 1


def test_a_law_alone_does_not_have_it(rng):
    """A law does not say how its method would predict: R^2 is marked as in-sample."""
    masks, scores, weights = problem(rng, 30, 3)
    answers = Answers(masks=masks, scores=scores, weights=weights)
    law = normal_law(np.zeros(3), np.eye(3))
    post = Posterior.from_law(law, answers, method="mine")

    assert post.r2_held_out is None
    assert "masks, in-sample R2 0.000, effective" in str(post)


def test_all_masks_leave_nothing_to_hold_out(rng):
    """With every mask asked it is the R^2 over all of them."""
    masks = np.array([[i >> j & 1 for j in range(3)] for i in range(8)], dtype=float)
    answers = Answers(masks=masks, scores=rng.normal(size=8), weights=np.ones(8))
    post = fit_each(EBLIME(), rng, [answers])[0]

    assert post.r2_held_out == post.r2


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_travels_between_processes(rng, method):
    """A pickled posterior has it, too."""
    post = eblime.fit(*problem(rng, 30, 5), method=method)

    assert pickle.loads(pickle.dumps(post)).r2_held_out == post.r2_held_out


def test_some_rows_are_predicted_as_among_all(rng):
    """Asking for a few rows gives their values among all rows."""
    masks, scores, weights = problem(rng, 40, 5)
    law = eblime.fit(masks, scores, weights, EBLIME(local=False)).law
    only = rng.random(40) < 0.3
    some = leave_one_out(masks, scores, weights, law, flat=True, only=only)

    assert_allclose(some, leave_one_out(masks, scores, weights, law, flat=True)[only], rtol=1e-12)
