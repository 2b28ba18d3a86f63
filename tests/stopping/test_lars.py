"""S-LIME's rule: the steps of the lasso path, and the test statistic as published."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from problems import problem
from scipy import stats

import eblime
from eblime.answers import Answers
from eblime.stopping.lars import LarsStable, _lead, _weight_rows, lars_entries
from eblime.stopping.rules import parse_rule


def answers_of(rng, n, p):
    """Answers with unequal weights and correlated features."""
    masks, scores, weights = problem(rng, n, p)
    return Answers(masks=masks, scores=scores, weights=weights)


def published(x, residual, first, second, z):
    """T of the paper's code for the four cases of signs."""
    n = len(residual)
    u = np.array([x[:, first] @ residual, x[:, second] @ residual]) / n
    c = np.cov(x[:, first] * residual, x[:, second] * residual)
    apart = 2 * (c[0, 0] + c[1, 1] - 2 * c[0, 1]) / n
    together = 2 * (c[0, 0] + c[1, 1] + 2 * c[0, 1]) / n
    if u[0] >= 0 and u[1] >= 0:
        return u[0] - u[1] - z * np.sqrt(apart)
    if u[0] >= 0 and u[1] < 0:
        return u[0] + u[1] - z * np.sqrt(together)
    if u[0] < 0 and u[1] >= 0:
        return -(u[0] + u[1] + z * np.sqrt(together))
    return -(u[0] - u[1] + z * np.sqrt(apart))


@pytest.mark.parametrize(("n", "p"), [(60, 8), (40, 30), (12, 20)])
def test_steps_equal_the_published_test(rng, n, p):
    """Features in scikit-learn's order, and T at every step of its path."""
    linear_model = pytest.importorskip("sklearn.linear_model")
    x, y = _weight_rows(answers_of(rng, n, p))
    _, _, coefs = linear_model.lars_path(x, y, method="lasso", max_iter=6)
    entries = lars_entries(x, y, 5)
    sizes = (coefs != 0).sum(axis=0)

    assert len(entries) == 5
    for size, entry in enumerate(entries):
        step = np.flatnonzero(sizes == size)[-1]
        residual = y - x @ coefs[:, step]
        free = np.where(coefs[:, step] == 0, np.abs(x.T @ residual), -1.0)
        second, first = np.argsort(free)[-2:]
        lead, error = _lead(x, entry)

        assert (entry.entering, entry.runner_up) == (first, second)
        assert_allclose(entry.residual, residual, atol=1e-8 * np.abs(y).max())
        expected = published(x, residual, first, second, stats.norm.ppf(0.95))
        assert_allclose(lead - stats.norm.ppf(0.95) * error, expected, atol=1e-9)


def test_numbers_of_the_original_code():
    """What S-LIME's code returned for these answers: T at each step, and the masks to ask about.

    The number is compared where both correlations have the same sign, at the third step: the
    original takes the wrong variance for opposite signs.
    """
    rng = np.random.default_rng(5)
    masks = rng.integers(0, 2, (50, 6)).astype(float)
    effects = masks @ [1.0, -0.6, 0.5, 0.2, 0.0, 0.1]
    both = 0.3 * masks[:, 0] * masks[:, 3] - 0.2 * masks[:, 4] * masks[:, 1]
    weights = np.round(np.exp(-(6 - masks.sum(axis=1)) / 5), 6)
    answers = Answers(masks=masks, scores=np.round(effects + both, 6), weights=weights)
    x, y = _weight_rows(answers)
    z = stats.norm.ppf(0.95)
    entries = lars_entries(x, y, 6)  # the sixth feature has no runner-up
    found = [_lead(x, entry) for entry in entries]
    published = [-0.006456924581, -0.01333071887, -0.025929892791, -0.014489608165, -0.013402106079]

    assert [entry.entering for entry in entries] == [0, 1, 3, 2, 4]
    assert_allclose([lead - z * error for lead, error in found], published, rtol=1e-9)
    assert_allclose(50 * (z * found[2][1] / found[2][0]) ** 2, 783.9930329756)


def test_a_feature_that_leaves_the_path(rng):
    """Every entry is a knot of scikit-learn's path, also where features leave it again."""
    linear_model = pytest.importorskip("sklearn.linear_model")
    left = 0
    for _ in range(30):
        x = rng.normal(size=(40, 6)) @ rng.normal(size=(6, 6))
        x -= x.mean(axis=0)
        y = x @ rng.normal(size=6) + rng.normal(size=40)
        y -= y.mean()
        alphas, _, coefs = linear_model.lars_path(x, y, method="lasso")
        left += int((coefs[:, :-1] != 0).sum(axis=0).max() < 6 and coefs.shape[1] > 7)
        entries = lars_entries(x, y, 6)
        assert len(entries) == 5
        for size, entry in enumerate(entries):
            level = np.abs(x.T @ entry.residual).max()
            knot = np.argmin(np.abs(40 * alphas - level))
            assert_allclose(entry.residual, y - x @ coefs[:, knot], atol=1e-6)
            assert (coefs[:, knot] != 0).sum() == size
            assert coefs[entry.entering, knot] == 0

    assert left > 3


def test_copies_and_constant_columns_are_passed_over(rng):
    """A copy of an active feature and a constant one never enter."""
    x = rng.normal(size=(30, 3))
    x -= x.mean(axis=0)
    x = np.column_stack([x, x[:, 0], np.zeros(30)])
    entries = lars_entries(x, x[:, :3] @ [3.0, 2.0, 1.0], 5)

    assert len(entries) == 3
    assert len({entry.entering % 3 for entry in entries}) == 3


def test_repeated_runs_choose_the_same_features():
    """Runs that the rule ended share their first features at least as often as it says."""
    effects = np.array([1.0, -0.7, 0.3, 0.2, 0.1, 0.05, 0.0, 0.0, 0.0, 0.0])
    words = [f"w{j}" for j in range(10)]

    def score(texts):
        shown = np.array([[word in text.split() for word in words] for text in texts], float)
        return shown @ effects + 0.1 * shown[:, 1] * shown[:, 2] - 0.3 * shown[:, 3] * shown[:, 4]

    explainer = eblime.TextExplainer(score, method="lime", design="bernoulli")
    order = []
    for seed in range(12):
        e = explainer.explain(" ".join(words), until=LarsStable(2), max_masks=1000, rng=seed)
        order.append([entry.entering for entry in lars_entries(*_weight_rows(e.answers), 2)])
        assert e.provenance["reached"]

    assert sum(found == order[0] for found in order) >= 10


def test_ties_are_not_decided_without_tolerance(rng):
    """Two equal features: the first step never passes, unless the tolerance lets it."""
    masks = rng.integers(0, 2, (400, 4)).astype(float)
    masks = np.concatenate([masks, masks[:, [1, 0, 2, 3]]])
    scores = masks[:, 0] + masks[:, 1]
    answers = Answers(masks=masks, scores=scores, weights=np.ones(800))
    post = eblime.fit(masks, scores)

    verdict = LarsStable(1).judge(post, answers)
    assert not verdict.reached
    assert verdict.factor > 100
    assert LarsStable(1, tol=1.0).judge(post, answers).reached


def test_text_form_and_combinations():
    """`lars2` on the command line; with a rule that needs a spread, so does the combination."""
    rule = eblime.stopping.LarsStable(2, 0.9)

    assert repr(rule) == "LarsStable(k=2, prob=0.9)"
    assert parse_rule("lars2@0.9") == rule
    assert not (rule & eblime.stopping.LarsStable(1)).needs_spread
    assert (rule | eblime.TopK(1)).needs_spread
    with pytest.raises(ValueError, match="`until` needs a method that states its uncertainty"):
        eblime.TextExplainer(len, method="lime").explain("a b c d", until=rule & eblime.TopK(1))
    with pytest.raises(ValueError, match="`k`"):
        eblime.stopping.LarsStable(0)
