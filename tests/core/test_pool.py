import numpy as np
import paper
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import eblime
from eblime.answers import Answers
from eblime.core.laws import NoSpreadError
from eblime.core.local import Level
from eblime.core.pool import CENTRES, WIDTHS, PooledPrior, learn_weights


def leaning(p, towards=1):
    """A smooth prior of p features, mostly positive, on seven components."""
    some, weights = slice(len(CENTRES) // 2 - 3, len(CENTRES) // 2 + 4), np.zeros(len(CENTRES))
    weights[some] = [1, 2, 4, 6, 6, 5, 4][::towards]
    return PooledPrior(inputs=7, weights=np.tile(weights / weights.sum(), (p, 1)))


def regression(rng, n, p):
    """Columns without pairs of complements, scores that lean to the positive, random weights."""
    columns = rng.normal(size=(n, p))
    scores = columns @ rng.normal(0.3, 0.4, size=p) + 0.7 * rng.normal(size=n)
    return columns, scores, rng.uniform(0.5, 2.0, size=n)


@pytest.mark.parametrize(("n", "p"), [(12, 2), (4, 2), (12, 3)])
def test_moments_equal_the_literal_mixture(rng, n, p):
    """Mean and sd agree with a sum over all choices of components, to a fiftieth of an sd."""
    columns, scores, weights = regression(rng, n, p)
    prior = leaning(p)
    method = eblime.EBLIME(noise="equal", finite=False, pooled=prior)
    post = eblime.fit(columns, scores, weights, method=method)
    centred = scores - np.average(scores, weights=weights)
    unit = np.sqrt(np.average(centred**2, weights=weights))
    used, step = np.flatnonzero(prior.weights[0]), unit / p**0.5
    laws = [(prior.weights[0, k], step * CENTRES[k], step * WIDTHS[k]) for k in used]
    variances = post.sigma2.mean * np.exp(np.linspace(-4, 4, 17 if p == 3 else 33))
    b = 1e-6 * weights.mean() * unit**2
    mean, variance = paper.pooled_moments(columns, scores, weights, laws, variances, 1e-6, b)

    assert_allclose(post.mean, mean, atol=0.02 * np.sqrt(variance).min())
    assert_allclose(post.sd, np.sqrt(variance), rtol=0.03)


def independent_levels(rng, law, inputs=60, p=8):
    """Regressions on orthogonal columns whose noise is known well, and their coefficients."""
    d, df, sigma = np.full(p, 100.0), 1e4, 1.0
    beta = law(size=(inputs, p)) / p**0.5
    k = np.sqrt(d) * beta + sigma * rng.normal(size=(inputs, p))
    level = [
        Level(
            basis=np.eye(p)[None], d=d[None], k=each[None], floor=np.array([df]), df=np.array([df])
        )
        for each in k
    ]
    return level, k / np.sqrt(d), sigma / np.sqrt(d[0])


def test_weights_equal_those_of_the_literal_algorithm(rng):
    """With orthogonal columns they are those of expectation and maximisation on the estimates."""
    levels, estimates, se = independent_levels(rng, lambda size: rng.exponential(size=size))
    [found] = learn_weights(levels, [np.zeros(8, dtype=int)] * len(levels))
    heavy = np.gradient(CENTRES) / (1 + CENTRES**2) ** 1.5
    default = weights = heavy / heavy.sum()
    for _ in range(15):
        chances = weights * stats.norm.pdf(
            estimates.reshape(-1, 1), CENTRES / 8**0.5, np.sqrt(se**2 + WIDTHS**2 / 8)
        )
        counts = (chances / chances.sum(axis=1, keepdims=True)).sum(axis=0) + 20 * default
        weights = counts / counts.sum()

    assert_allclose(np.cumsum(found), np.cumsum(weights), atol=1e-2)
    assert found[CENTRES > 0.1].sum() > 0.8


def test_neither_order_nor_company_changes_the_weights(rng):
    """Inputs in reverse order, and beside inputs with another number of features."""
    levels, _, _ = independent_levels(rng, lambda size: rng.normal(size=size))
    others, _, _ = independent_levels(rng, lambda size: rng.normal(size=size), p=5)
    both = [*levels, *others]
    laws = [np.zeros(level.basis.shape[1], dtype=int) for level in both]

    assert_allclose(learn_weights(both, laws), learn_weights(both[::-1], laws[::-1]), rtol=1e-9)


def test_a_named_feature_has_a_law_of_its_own(rng):
    """The law of a feature that is large in every input lies where it is; the others' do not."""

    def law(size):
        return rng.normal([3.0, *[0.0] * (size[1] - 1)], 0.2, size=size)

    levels, _, _ = independent_levels(rng, law)
    own = learn_weights(levels, [np.array([0, *[1] * 7])] * len(levels))

    assert own[0, CENTRES > 1].sum() > 0.7
    assert own[1, CENTRES > 1].sum() < 0.1


@given(seed=st.integers(0, 2**32 - 1), scale=st.floats(0.01, 100.0))
def test_scores_may_be_scaled_and_turned_round(seed, scale):
    """Importances scale with the scores; of -y they are mirrored, with the mirrored prior."""
    columns, scores, weights = regression(np.random.default_rng(seed), 20, 4)
    one, other = (eblime.EBLIME(pooled=leaning(4, towards)) for towards in (1, -1))
    post = eblime.fit(columns, scores, weights, method=one)
    scaled = eblime.fit(columns, scale * scores, weights, method=one)
    mirrored = eblime.fit(columns, -scores, weights, method=other)

    assert_allclose(scaled.interval(), scale * post.interval(), rtol=1e-6, atol=1e-9 * scale)
    assert_allclose(mirrored.mean, -post.mean, atol=1e-9)
    assert_allclose(mirrored.prob_positive(), 1 - post.prob_positive(), atol=1e-9)


def test_few_masks_and_constant_scores(rng):
    """Fewer masks than features have intervals and a held-out R2; constant scores are zero."""
    masks = rng.integers(0, 2, size=(12, 20)).astype(float)
    y = masks @ rng.exponential(size=20)
    asked = [Answers(masks=masks, scores=scores, weights=np.ones(12)) for scores in (y, 0 * y)]
    methods = eblime.EBLIME().pool([(each, None) for each in asked], inputs=2)
    few, none = (m.fit(rng, each) for m, each in zip(methods, asked, strict=True))

    assert (few.interval()[:, 0] < few.mean).all()
    assert -1 < few.r2_held_out < 1
    assert np.isfinite(few.cov).all()
    assert few.method == "EBLIME (pooled over 2 inputs)"
    assert_array_equal(none.mean, 0.0)


def test_the_joint_law_has_the_marginals(rng):
    """Draws have the means, the spread and the signs of the importances, within 5 errors."""
    columns, scores, weights = regression(rng, 15, 3)
    post = eblime.fit(columns, scores, weights, method=eblime.EBLIME(pooled=leaning(3)))
    beta = post.sample(20_000, rng=rng)

    assert_allclose(beta.mean(axis=0), post.mean, atol=5 * (post.sd / 20_000**0.5).max())
    assert_allclose(beta.std(axis=0), post.sd, rtol=0.05)
    assert_allclose(np.sqrt(np.diag(post.cov)), post.sd)
    with pytest.raises(NoSpreadError, match="has no ridge parameter"):
        _ = post.lam


def test_refusals():
    """A prior that is none, and settings that it does not fit."""
    with pytest.raises(ValueError, match="`weights` must be at least 0"):
        PooledPrior(inputs=1, weights=np.ones((2, 3)))
    with pytest.raises(ValueError, match="`inputs` must be"):
        PooledPrior(inputs=0, weights=leaning(1).weights)
    with pytest.raises(TypeError, match="`pooled` must be"):
        eblime.EBLIME(pooled=[1.0])
    with pytest.raises(ValueError, match="local=True"):
        eblime.EBLIME(local=False, pooled=leaning(1))
    with pytest.raises(ValueError, match="2 features; got 3"):
        eblime.fit(np.eye(3), np.arange(3.0), method=eblime.EBLIME(pooled=leaning(2)))
