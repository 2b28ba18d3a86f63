"""Quadrature: exact cases, degenerate inputs, and coverage over functions from the prior."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import paper
import pytest
from numpy.testing import assert_allclose

import eblime
from eblime.answers import Answers
from eblime.core.indices import banzhaf, shapley
from eblime.core.laws import NoSpreadError
from eblime.core.quadrature import (
    Released,
    _with_marginals,
    exact_values,
    prediction_errors,
    read_table,
    root_of_part,
    solve_part,
)
from eblime.core.walsh import Parameters, Prior
from eblime.designs.adaptive import in_pairs
from eblime.designs.arrays import orthogonal
from eblime.designs.masks import exhaustive
from eblime.kernels import ExponentialKernel
from eblime.methods import quadrature
from eblime.methods.quadrature import INDICES, Quadrature, fit_indices

RNG = np.random.default_rng


def all_masks(p: int) -> np.ndarray:
    """All masks."""
    return exhaustive(RNG(0), 0, p)


def game(masks: np.ndarray) -> np.ndarray:
    """A function with interactions of two and three features."""
    z = np.asarray(masks, dtype=float)
    return z[:, 0] - 0.5 * z[:, 1] + z[:, 2] * z[:, 3] - 0.7 * z[:, 0] * z[:, 1] * z[:, -1]


def pairs_of(p: int, n: int, seed: int = 0) -> np.ndarray:
    """N masks in complementary pairs, none twice."""
    rows = RNG(seed).choice(2 ** (p - 1), size=n // 2, replace=False)
    half = all_masks(p)[rows]
    return np.concatenate([half, 1 - half])


@pytest.mark.parametrize("index", ["lime", "banzhaf", "shapley"])
def test_intervals_close_on_the_exact_values_when_every_mask_was_asked(index) -> None:
    """Intervals close on the exact values when every mask was asked."""
    masks = all_masks(6)
    method = Quadrature(index=index)
    post = eblime.fit(masks, game(masks), method=method)
    np.testing.assert_allclose(post.mean, exact_values(masks, game(masks), method.functional(6)))
    np.testing.assert_allclose(post.interval(), np.column_stack([post.mean, post.mean]))


@pytest.mark.parametrize("index", ["lime", "banzhaf", "shapley"])
def test_the_truth_is_near_with_some_of_the_masks(index) -> None:
    """The truth is near with some of the masks."""
    masks = pairs_of(8, 90)
    method = Quadrature(index=index)
    post = eblime.fit(masks, game(masks), method=method)
    whole = all_masks(8)
    truth = exact_values(whole, game(whole), method.functional(8))
    assert np.abs(post.mean - truth).max() < 5 * post.sd.max()
    assert np.abs(post.mean - truth).max() < 0.05


def test_the_error_is_smaller_than_that_of_the_regression() -> None:
    """The error is smaller than that of the regression."""
    whole, errors = all_masks(9), []
    truth = exact_values(whole, game(whole), Quadrature().functional(9))
    for seed in range(10):
        masks = pairs_of(9, 100, seed)
        weights = ExponentialKernel()(masks)
        ours = eblime.fit(masks, game(masks), method="quadrature").mean
        theirs = eblime.fit(masks, game(masks), weights).mean
        errors.append([np.mean((mean - truth) ** 2) for mean in (ours, theirs)])
    ours, theirs = np.sqrt(np.mean(errors, axis=0))
    assert ours < 0.5 * theirs


def test_shapley_values_sum_to_the_difference_of_the_ends() -> None:
    """Shapley values sum to the difference of the ends."""
    p = 7
    half = np.concatenate([np.ones((1, p)), pairs_of(p, 40)[:20]])
    masks = np.concatenate([half, 1 - half])
    post = eblime.fit(masks, game(masks), method=Quadrature(index="shapley"))
    ends = game(np.ones((1, p))) - game(np.zeros((1, p)))
    assert post.mean.sum() == pytest.approx(float(ends[0]), abs=1e-6)
    np.testing.assert_allclose(post.sample(50).sum(axis=1), ends[0], atol=1e-4)


def test_the_posterior_given_parameters_is_that_of_a_gaussian_process() -> None:
    """The literal formulas on all masks: condition on some, apply the index to the rest."""
    p, whole = 6, all_masks(6)
    masks = whole[RNG(3).choice(64, size=30, replace=False)]
    table = read_table(masks, game(masks))
    parameters = Parameters(vector=Prior.of(p, split=False).mean, split=False)
    part = table.parts[0]
    solved = solve_part(part, parameters, 0)
    signs = 2 * whole - 1
    between = parameters.walsh.covariance(part, signs, part.signs)
    everywhere = parameters.walsh.covariance(part, signs, signs)
    by_hand = np.stack([exact_values(whole, one, shapley(p)) for one in np.eye(64)], axis=1)
    mean = by_hand @ between @ solved.alpha
    cov = by_hand @ (everywhere - between @ solved.inverse @ between.T) @ by_hand.T
    cross = parameters.walsh.cross(part, shapley(p), part.signs)
    np.testing.assert_allclose(cross @ solved.alpha, mean, atol=1e-9)
    left = parameters.walsh.own(part, shapley(p)) - cross @ solved.inverse @ cross.T
    np.testing.assert_allclose(left, cov, atol=1e-9)


def test_intervals_cover_functions_of_the_prior() -> None:
    """95 % intervals of functions drawn from the prior, 40 pairs of 8 features each."""
    p, inside = 8, []
    whole = all_masks(p)
    signs = 2 * whole - 1
    for seed in range(40):
        rng = RNG(seed)
        rho = 0.95 / (1 + np.exp(2.0 - 0.6 * rng.normal(size=p)))
        covariance = np.prod(1 + rho * signs[:, None] * signs, axis=2)
        values = np.linalg.cholesky(covariance + 1e-9 * np.eye(2**p)) @ rng.normal(size=2**p)
        masks = pairs_of(p, 80, seed)
        scores = values[(masks @ 2.0 ** np.arange(p)).astype(int)]
        post = eblime.fit(masks, scores, method=Quadrature(index="banzhaf"))
        low, high = post.interval().T
        truth = exact_values(whole, values, banzhaf())
        inside.append(np.mean((low <= truth) & (truth <= high)))
    assert 0.92 <= np.mean(inside) <= 1.0


def test_constant_scores_have_no_importances() -> None:
    """Constant scores have no importances."""
    post = eblime.fit(pairs_of(5, 20), np.full(20, 0.3), method="quadrature")
    assert post.constant
    np.testing.assert_array_equal(post.interval(), np.zeros((5, 2)))


def test_one_feature_is_answered_exactly() -> None:
    """One feature is answered exactly."""
    post = eblime.fit([[1], [0]], [0.9, 0.2], method="quadrature")
    np.testing.assert_allclose(post.interval(), [[0.7, 0.7]])


def test_fewer_masks_than_features_give_wide_intervals() -> None:
    """Fewer masks than features give wide intervals."""
    masks = in_pairs(RNG(0).integers(0, 2, size=(5, 30)).astype(float))
    post = eblime.fit(masks, masks[:, 0], method="quadrature")
    low, high = post.interval().T
    assert np.isfinite(post.sd).all()
    assert (high - low).min() > 0.2


def test_a_model_with_chance_in_it_is_covered() -> None:
    """A model with chance in it is covered."""
    inside = []
    truth = np.array([1.0, -0.5, 0.0, 0.0, 0.3, 0.0])
    for seed in range(40):
        rng = RNG(seed)
        masks = rng.integers(0, 2, size=(120, 6)).astype(float)
        scores = masks @ truth + 0.3 * rng.normal(size=120)
        low, high = eblime.fit(masks, scores, method=Quadrature(index="banzhaf")).interval().T
        inside.append(np.mean((low <= truth) & (truth <= high)))
    assert np.mean(inside) > 0.85


def test_noisy_answers_are_not_taken_for_exact_ones() -> None:
    """Each of all 64 masks once: without noise the values are known, with noise they are not."""
    truth = np.array([1.0, -0.5, 0.0, 0.0, 0.3, 0.0])
    masks, inside = all_masks(6), []
    for seed in range(40):
        scores = masks @ truth + 0.3 * RNG(seed).normal(size=64)
        known = Answers(masks=masks, scores=scores, weights=np.ones(64))
        assert Quadrature(index="banzhaf").fit(RNG(0), known).sd.max() == 0
        post = Quadrature(index="banzhaf").fit(RNG(0), replace(known, noisy=True))
        low, high = post.interval().T
        inside.append(np.mean((low <= truth) & (truth <= high)))
    assert np.mean(inside) > 0.85


@pytest.mark.parametrize("domain", ["table", "text"])
def test_explainers_say_whether_chance_fills_in_what_is_hidden(domain, tmp_path) -> None:
    """It does not; files remember it."""
    if domain == "table":
        rows = RNG(0).normal(size=(50, 4))
        explainer, x = eblime.TabularExplainer(lambda some: some[:, 0], rows), rows[0]
    else:
        explainer, x = eblime.TextExplainer(lambda some: [len(t) for t in some]), "one two three"
    e = replace(explainer, method="quadrature", n_masks=20).explain(x)
    e.save(tmp_path / "e.eblime")
    again = eblime.load(tmp_path / "e.eblime")

    assert e.answers.noisy is again.answers.noisy is False
    np.testing.assert_array_equal(again.posterior.mean, e.posterior.mean)


def test_answers_that_are_a_line_are_met_exactly() -> None:
    """Answers that are a line are met exactly."""
    masks = pairs_of(8, 40)
    post = eblime.fit(masks, masks[:, 0] - 2 * masks[:, 5], method="quadrature")
    np.testing.assert_allclose(post.mean[[0, 5]], [1, -2], atol=0.01)


@pytest.mark.parametrize("step", [1, 2])  # in pairs, and without partners
@pytest.mark.slow
def test_a_few_features_among_hundreds_are_found(step) -> None:
    """The search for the parameters does not stop where all answers look like noise."""
    masks = in_pairs(RNG(0).integers(0, 2, size=(150 * step, 250)).astype(float))[::step]
    scores = masks[:, 0] - 0.5 * masks[:, 1] + 0.4 * masks[:, 2] * masks[:, 3]
    post = eblime.fit(masks, scores, method=Quadrature(index="banzhaf"))

    np.testing.assert_allclose(post.mean[:5], [1.0, -0.5, 0.2, 0.2, 0.0], atol=0.02)
    assert post.r2_held_out > 0.95


def test_any_index_with_a_kernel_that_is_no_product() -> None:
    """Any index with a kernel that is not a product."""
    whole = all_masks(7)
    method = Quadrature(kernel="cosine")
    truth = exact_values(whole, game(whole), method.functional(7))
    post = eblime.fit(pairs_of(7, 80), game(pairs_of(7, 80)), method=method)
    assert np.abs(post.mean - truth).max() < 0.1


@pytest.mark.parametrize("width", [0.11, 0.05])
def test_a_narrow_kernel_compares_the_input_with_one_feature_hidden(width) -> None:
    """In the limit of no width only the input and its nearest masks count."""
    whole = all_masks(5)
    scores = game(whole)
    post = eblime.fit(whole, scores, method=Quadrature(kernel=ExponentialKernel(width=width)))
    without = [scores[-1 - 2**j] for j in range(5)]
    np.testing.assert_allclose(post.mean, scores[-1] - without)


def test_weights_that_contradict_the_kernel_are_refused() -> None:
    """Weights that contradict the kernel are refused."""
    masks = pairs_of(6, 30)
    scores, weights = game(masks), ExponentialKernel()(masks)
    free = eblime.fit(masks, scores, method="quadrature")
    given = eblime.fit(masks, scores, 3 * weights, method="quadrature")
    np.testing.assert_array_equal(free.mean, given.mean)
    with pytest.raises(ValueError, match="`weights` must be those of Quadrature's own kernel"):
        eblime.fit(masks, scores, weights**2, method="quadrature")


def test_masks_that_are_not_binary_are_refused() -> None:
    """Masks that are not binary are refused."""
    with pytest.raises(ValueError, match="zeros and ones for Quadrature"):
        eblime.fit([[0.5, 1.0], [1.0, 0.0]], [1.0, 2.0], method="quadrature")


def test_a_kernel_of_more_than_the_size_is_refused() -> None:
    """A kernel of more than the size is refused."""

    def first_only(masks: np.ndarray) -> np.ndarray:
        return 0.5 + 0.5 * masks[:, 0]

    with pytest.raises(ValueError, match="depend on the number of features shown only"):
        eblime.fit(pairs_of(5, 12), np.arange(12.0), method=Quadrature(kernel=first_only))


@pytest.mark.parametrize(
    "kernel", [lambda masks: 0.5 + 0.5 * masks[:, 0], ExponentialKernel(width=0.01)]
)
def test_a_kernel_without_an_index_is_refused_before_the_model_is_asked(kernel) -> None:
    """One that is of more than the size, and one that only the input itself has weight under."""
    asked = []

    def score(texts: list[str]) -> np.ndarray:
        asked.extend(texts)
        return np.ones(len(texts))

    explainer = eblime.TextExplainer(score, method="quadrature", kernel=kernel)
    with pytest.raises(ValueError, match="`kernel` must"):
        explainer.explain("one two three four five six seven eight nine ten eleven")
    assert not asked


def test_too_many_masks_are_refused_with_what_to_do_instead() -> None:
    """Too many masks are refused with what to do instead."""
    masks = RNG(0).integers(0, 2, size=(3_100, 30)).astype(float)
    with pytest.raises(ValueError, match=r"at most 3,000 distinct masks; got 3,100.*EBLIME"):
        eblime.fit(masks, masks[:, 0], method="quadrature")


def test_unknown_settings_are_refused() -> None:
    """Unknown settings are refused."""
    with pytest.raises(ValueError, match="index"):
        Quadrature(index="owen")
    with pytest.raises(TypeError, match="kernel"):
        Quadrature(kernel=3)


def test_the_same_seed_gives_the_same_posterior() -> None:
    """The same seed gives the same posterior."""
    masks = pairs_of(6, 40)
    first, second = (eblime.fit(masks, game(masks), method="quadrature", rng=1) for _ in range(2))
    np.testing.assert_array_equal(first.interval(), second.interval())


@pytest.mark.parametrize("seed", range(4))
def test_a_function_that_is_learnt_exactly_is_fitted(seed) -> None:
    """A tiny nugget leaves a covariance that rounding makes singular."""
    rng = RNG(seed)
    masks = np.concatenate([np.ones((1, 8)), np.zeros((1, 8)), rng.integers(0, 2, size=(70, 8))])
    scores = masks[:, 0] * masks[:, 2] + 0.4 * masks[:, 6]
    post = eblime.fit(masks, scores, method=Quadrature(kernel="cosine"), rng=seed)
    assert np.isfinite(post.sd).all()
    np.testing.assert_allclose(post.mean[[1, 3, 4, 5, 7]], 0, atol=0.01)


@pytest.mark.parametrize("index", ["lime", "shapley"])
def test_neither_the_order_of_features_nor_the_seed_matters(index):
    """Means and standard deviations are the same to a hundredth of a standard deviation."""
    rng = np.random.default_rng(0)
    masks = rng.integers(0, 2, (40, 7)).astype(float)
    scores = masks[:, 0] * masks[:, 1] + np.tanh(masks @ rng.normal(size=7))
    method, order = eblime.Quadrature(index=index), rng.permutation(7)
    first = eblime.fit(masks, scores, method=method, rng=0)
    other = eblime.fit(masks[:, order], scores, method=method, rng=1)

    assert (np.abs(other.mean - first.mean[order]) < 0.01 * other.sd).all()
    assert_allclose(other.sd, first.sd[order], rtol=0.01)
    assert_allclose(other.cov, first.cov[np.ix_(order, order)], atol=0.01 * first.sd.max() ** 2)


def test_interactions_keep_their_pairs():
    """The order in which the features are fitted does not show in the result."""
    rng = np.random.default_rng(0)
    masks = rng.integers(0, 2, (200, 6)).astype(float)
    answers = Answers(masks=masks, scores=masks[:, 4] * masks[:, 1], weights=np.ones(200))
    pairs = banzhaf().pairwise()
    (found,) = fit_indices(answers, [pairs], ["pairs"])

    assert pairs.subsets(6)[np.argmax(found.mean)].tolist() == [1, 4]


def test_one_mask_has_no_interval():
    """Nothing is known: no interval is better than one of width zero."""
    post = eblime.fit([[1, 0, 1], [1, 0, 1]], [1.0, 1.0], method="quadrature")

    assert not post.has_spread
    with pytest.raises(NoSpreadError, match="at least 2 distinct masks"):
        post.interval()


def test_a_kernel_function_has_no_address():
    """The representation is the same in every process."""

    def fading(closeness: np.ndarray) -> np.ndarray:
        return np.asarray(0.9 ** (1 - closeness).sum(axis=1))

    assert "0x" not in repr(Quadrature(kernel=fading))
    assert repr(Quadrature()) == "Quadrature(kernel=None, index='lime')"


@pytest.mark.parametrize("pairs", [True, False])
@pytest.mark.parametrize("index", ["lime", "shapley"])
def test_released_linear_variances_are_those_of_the_literal_form(pairs, index):
    """The rank-one formula beside a covariance that is built and inverted for every psi."""
    p, rng = 5, RNG(3)
    masks = pairs_of(p, 14) if pairs else rng.permutation(all_masks(p))[:15]
    table = read_table(masks, game(masks))
    vector = Prior.of(p, split=pairs).mean + 0.3 * rng.normal(size=p + 3)
    best = Parameters(vector=vector, split=pairs, psi=np.exp(rng.normal(size=p)))
    part, walsh, kind = table.parts[0], best.walsh, Quadrature(index=index).functional(p)
    root = root_of_part(part, best, 0)
    cross, own = walsh.cross(part, kind, part.signs), walsh.own(part, kind)
    known, pull = np.linalg.solve(root, part.scores), np.linalg.solve(root, cross.T)
    released = Released.of(best, part, root, known)
    left = np.diag(own - pull.T @ pull)
    shift, within, between = released.moments(pull, left)
    mean, variance, moved = paper.released_moments(
        *(root @ root.T, part.signs, part.scores, cross, np.diag(own)),
        *(walsh.extra, np.asarray(best.psi), np.arange(-8.0, 9.0)),
    )

    assert_allclose(known @ pull + shift, mean, rtol=1e-7, atol=1e-9)
    assert_allclose(within, variance, rtol=1e-6, atol=1e-9)
    assert_allclose(between, moved, rtol=1e-6, atol=1e-9)


def test_one_large_effect_is_covered_with_fewer_masks_than_features():
    """A feature whose own effect is far larger than the others' is not shrunk."""
    inside = []
    for seed in range(20):
        rng = RNG(seed)
        masks = in_pairs(rng.integers(0, 2, size=(8, 20)).astype(float))
        scores = masks @ np.r_[3.0, 0.3 * rng.normal(size=19)]
        low, high = eblime.fit(masks, scores, method=Quadrature(index="banzhaf")).interval()[0]
        inside.append(low <= 3.0 <= high)
    assert np.mean(inside) > 0.85  # none before


def test_shapley_values_keep_their_sum():
    """Releasing the linear variances moves single values, not their sum, which is known."""
    masks = np.concatenate([np.ones((1, 8)), np.zeros((1, 8)), pairs_of(8, 40)])
    post = eblime.fit(masks, game(masks), method=Quadrature(index="shapley"))
    ones = np.ones(8)

    assert_allclose(post.mean.sum(), game(masks)[0] - game(masks)[1], rtol=1e-5)
    assert ones @ post.cov @ ones < 1e-4 * np.trace(post.cov)


def test_a_known_sum_moves_no_value_far():
    """What the values gain together is taken from each in proportion to its variance."""
    rng = RNG(0)
    apart = np.eye(8) - 1 / 8
    cov = apart @ np.diag(np.exp(rng.normal(size=8))) @ apart
    shift, spread = 0.1 * rng.normal(size=8), 0.3 * np.diag(cov) * rng.random(8)
    mean, new = _with_marginals(np.zeros(8), cov, shift, spread)

    assert_allclose([mean.sum(), new.sum()], 0, atol=1e-12)
    assert np.abs(mean - shift).max() <= np.abs(shift.sum())
    assert_allclose(np.diag(new), np.diag(cov) + spread, rtol=0.2)


def test_r2_of_a_function_and_of_a_line_have_names_of_their_own(rng):
    """On the same answers both methods print an R2, of different things."""
    masks = rng.integers(0, 2, size=(120, 8)).astype(float)
    scores = 0.3 * masks[:, 0] + (2 * masks[:, 1] - 1) * (2 * masks[:, 2] - 1)
    function, line = (eblime.fit(masks, scores, method=m) for m in (Quadrature(), "eblime"))

    assert re.search(r"held-out function R2 (1\.0|0\.9)\d*, linear R2 -?0\.[01]", str(function))
    assert "function" not in str(line)
    assert re.search(r"held-out R2 -?0\.[01]", str(line))


def test_prediction_errors_of_a_round_are_those_of_the_literal_form():
    """The odd part of later pairs, given the earlier ones."""
    p, rng = 6, RNG(4)
    masks = pairs_of(p, 40).reshape(2, 20, p).swapaxes(0, 1).reshape(-1, p)  # pairs together
    scores = game(masks) + np.sin(masks @ rng.normal(size=p))
    before, after = read_table(masks[:24], scores[:24]), read_table(masks[24:], scores[24:])
    vector = Prior.of(p, split=True).mean + 0.3 * rng.normal(size=p + 3)
    parameters = Parameters(vector=vector, split=True)
    old, new = before.parts[0], after.parts[0]
    signs = np.concatenate([old.signs, new.signs])
    odd = np.concatenate([old.scores, new.scores * after.unit / before.unit])
    noise = parameters.nugget(0) * np.concatenate([old.noise, new.noise])
    covariance = parameters.walsh.covariance(old, signs, signs) + np.diag(noise)

    errors = prediction_errors(before, after, parameters)
    assert_allclose(errors, paper.prediction_errors(covariance, odd, 12), rtol=1e-4)


def _in_rounds(scores: np.ndarray, masks: np.ndarray, sizes: tuple[int, ...]) -> Answers:
    """Answers that came in rounds."""
    known = Answers.none([str(j) for j in range(masks.shape[1])])
    for rows in np.split(np.arange(len(masks)), np.cumsum(sizes)):
        known = known.append(masks[rows], scores[rows], np.ones(len(rows)))
    return known


def test_shapley_values_are_widened_as_much_as_banzhaf_values(monkeypatch):
    """On balanced masks, whose fit leaves little lack of fit to be seen; other masks stay."""
    balanced, others = orthogonal(RNG(0), 128, 12), RNG(1).integers(0, 2, (128, 12)).astype(float)

    def spreads(masks):
        scores = np.tanh(3 * game(masks)) + masks[:, 4] * masks[:, 5] * masks[:, 6]
        made = [eblime.fit(masks, scores, method=Quadrature(index=name)) for name in INDICES]
        return np.array([post.sd for post in made])

    wide, same = spreads(balanced), spreads(others)
    monkeypatch.setattr(quadrature, "_least_variance", lambda _: 0.0)
    factor = wide / spreads(balanced)

    assert factor.min() > 1.2
    assert_allclose(factor[2], factor[1])
    assert_allclose(same, spreads(others))


def test_rounds_that_were_predicted_badly_widen_the_intervals():
    """A function that is a line until the last two rounds; the means stay."""
    masks = pairs_of(7, 64).reshape(2, 32, 7).swapaxes(0, 1).reshape(-1, 7)
    scores = masks @ np.arange(7.0) + 0.01 * game(masks)
    scores[40:] += 3 * np.prod(2 * masks[40:, :3] - 1, axis=1)
    late = _in_rounds(scores, masks, (24, 16))
    once = replace(late, rounds=None)
    wide, plain = (Quadrature(index="banzhaf").fit(RNG(0), one) for one in (late, once))

    assert wide.extras["widening"].mean > 2
    assert "widening" not in plain.extras
    assert_allclose(wide.mean, plain.mean, atol=1e-9)
    assert_allclose(wide.sd, plain.sd * np.sqrt(wide.extras["widening"].mean))


def test_rounds_that_were_predicted_well_change_little():
    """The factor is near one, and never below."""
    masks = pairs_of(8, 90, 3).reshape(2, 45, 8).swapaxes(0, 1).reshape(-1, 8)
    post = Quadrature(index="banzhaf").fit(RNG(0), _in_rounds(game(masks), masks, (40, 20, 14)))

    assert 1 <= post.extras["widening"].mean < 1.5


@pytest.mark.parametrize("rounds", [[0, 90, 500], [1], [3, 3, -1]])
def test_rounds_of_a_strange_file_do_no_harm(rounds):
    """Numbers beyond the answers are passed over, and pairs that are cut apart."""
    masks = pairs_of(6, 40)
    known = Answers(masks=masks, scores=game(masks), weights=np.ones(40))
    post = Quadrature().fit(RNG(0), replace(known, rounds=np.array(rounds)))
    assert_allclose(post.mean, Quadrature().fit(RNG(0), known).mean)


@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("complements", [False, True])
def test_features_that_could_change_places_have_the_same_importance(rng, index, complements):
    """Nothing in the answers tells them apart, so the draws of the parameters must not either."""
    masks = rng.integers(0, 2, (12, 6)).astype(float)
    masks = np.concatenate([masks, 1 - masks]) if complements else masks
    masks = np.unique(np.concatenate([masks, masks[:, [1, 0, 2, 3, 4, 5]]]), axis=0)
    both = masks[:, 0] + masks[:, 1]
    scores = (
        both + 0.7 * (both > 1) + masks[:, 2] * both * masks[:, 3] + np.sin(masks[:, 4:] @ [1, 2])
    )
    post = eblime.fit(masks, scores, method=Quadrature(index=index))

    assert_allclose(post.mean[0], post.mean[1], rtol=1e-9)
    assert_allclose(post.sd[0], post.sd[1], rtol=1e-7)
