"""Features that no perturbed input changes: their importance is zero, whatever asks for it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import eblime
from eblime.family import UnRAVEL

NAMES = ["a", "same", "b", "c"]
FIXED = [False, True, False, False]


def background():
    """Numbers; the second column is the same in all rows."""
    return np.insert(np.random.default_rng(0).normal(size=(30, 3)), 1, 7.0, axis=1)


def score(rows):
    """Two columns act together."""
    return rows[:, 0] + 2 * rows[:, 2] * rows[:, 3] + rows[:, 1]


def explained(**settings):
    """An explanation of the first row as a game, and its explainer."""
    settings = {"n_masks": 6, "rows_per_mask": 5, **settings}
    with pytest.warns(UserWarning, match="'same'"):
        explainer = eblime.TabularExplainer(score, background(), names=NAMES, **settings)
    return explainer, explainer.explain(background()[0])


def alone(e):
    """The same explanation without the column."""
    rows = np.delete(background(), 1, axis=1)

    def whole(some):
        return score(np.insert(some, 1, 7.0, axis=1))

    explainer = eblime.TabularExplainer(whole, rows, n_masks=6, rows_per_mask=5, method=e.method)
    return explainer.explain(rows[0])


METHODS = ["eblime", "eblime-ridge", "bayeslime", "bayesshap", "lime", "quadrature"]


@pytest.mark.parametrize("method", METHODS)
def test_they_change_no_other_number(method):
    """Every method, and every kind of law, has them besides what it had without them."""
    _, e = explained(method=method)
    other, varying = alone(e), np.flatnonzero(~np.array(FIXED))

    assert e.features[1] == "same = 7"
    assert_array_equal(e.answers.fixed, FIXED)
    assert e.posterior.mean[1] == 0
    assert_allclose(e.posterior.mean[varying], other.posterior.mean, rtol=1e-9)
    if e.posterior.has_spread:
        for name in ("interval", "hdi", "prob_positive"):
            found = getattr(e.posterior, name)()
            assert_allclose(found[varying], getattr(other.posterior, name)(), rtol=1e-9)
        assert_array_equal(e.posterior.interval()[1], 0)
        assert e.posterior.prob_positive()[1] == 0.5


@pytest.mark.parametrize("method", ["eblime", "bayesshap", "quadrature", "baylime"])
def test_their_law_is_a_point_mass(method):
    """In every summary of the law."""
    post = explained(method=method)[1].posterior
    chance, draws = post.prob_greater(), post.sample(50, 0)

    assert post.sd[1] == 0
    assert_array_equal(post.law.cov[1], 0)
    assert_array_equal(post.law.cov[:, 1], 0)
    assert_array_equal(post.cdf(np.array([-1e-9, 0.0])[:, None])[:, 1], [0, 1])
    assert_array_equal(post.pdf(np.array([-1.0, 0.0])[:, None])[:, 1], [0, np.inf])
    assert_array_equal(draws[:, 1], 0)
    assert_allclose(chance + chance.T, 1)
    assert_allclose(chance[:, 1], post.prob_positive())


def test_they_stay_zero_after_everything(tmp_path):
    """Another method, more masks, other indices, a file."""
    explainer, e = explained()
    e.save(tmp_path / "e.eblime")
    loaded = eblime.load(tmp_path / "e.eblime")
    found = [
        loaded,
        e.refit("bayeslime"),
        e.refit("quadrature"),
        e.more(1),
        loaded.more(1, explainer=explainer, x=background()[0]),
    ]

    assert_array_equal(loaded.posterior.interval(), e.posterior.interval())
    for one in found:
        assert list(one.scene.columns) == NAMES
        assert_array_equal(one.posterior.interval()[1], 0)
    for index in ("lime", "banzhaf", "shapley"):
        assert_array_equal(e.importances(index).interval()[1], 0)
    assert "same" not in " ".join(e.interactions().names)
    assert len(e.interactions().pairs) == 3
    assert "all 2^3 masks" in e.estimand


def test_rankings_are_among_the_others():
    """A stop rule about the order is not held up by features that are all zero."""
    rows = np.insert(background(), 1, 3.0, axis=1)
    with pytest.warns(UserWarning, match="'column 1', 'column 2'"):
        explainer = eblime.TabularExplainer(lambda some: some @ [9.0, 1, 1, 3, 1], rows)
    e = explainer.explain([3, 3, 7, 3, 3], until=eblime.Ranking(3), max_masks=200)

    assert e.provenance["reached"]
    assert list(e.posterior.order()[:3]) == [0, 3, 4]


def test_unravel_has_them_too():
    """It makes its explanation on its own."""
    explainer, _ = explained(n_masks=30)
    e = UnRAVEL().explain(explainer, background()[0])

    assert list(e.scene.columns) == NAMES
    assert_array_equal(e.posterior.interval()[1], 0)
