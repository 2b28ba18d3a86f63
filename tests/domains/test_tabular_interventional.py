"""The interventional game of a row, as shap defines it."""

from itertools import combinations
from math import factorial

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import eblime
from eblime.protocols import ALL_HIDDEN, INPUT_ITSELF

P = 6
TABLE = np.random.default_rng(0).normal(size=(40, P))
ROW = np.array([2.0, -1.0, 0.5, 3.0, 0.0, 1.0])
SHAPLEY = eblime.Quadrature(index="shapley")


def model(rows: np.ndarray) -> np.ndarray:
    """Not additive, and a step."""
    return rows[:, 0] * rows[:, 1] + (rows[:, 2] > 0) * rows[:, 3] - 0.5 * rows[:, 4]


def value(shown: tuple[int, ...], table: np.ndarray = TABLE) -> float:
    """The mean score over the background with some columns of the row."""
    mixed = table.copy()
    mixed[:, list(shown)] = ROW[list(shown)]
    return float(model(mixed).mean())


def shapley_by_hand(p: int = P) -> np.ndarray:
    """Shapley values by their definition."""
    found = np.zeros(p)
    for j in range(p):
        others = [k for k in range(p) if k != j]
        for size in range(p):
            weight = factorial(size) * factorial(p - 1 - size) / factorial(p)
            for shown in combinations(others, size):
                found[j] += weight * (value((*shown, j)) - value(shown))
    return found


def explainer(**settings) -> eblime.TabularExplainer:
    """An explainer of the game, for Shapley values by default."""
    settings = {"method": SHAPLEY} | settings
    return eblime.TabularExplainer(model, TABLE, **settings)


def test_all_masks_give_the_shapley_values_of_the_definition():
    """Every coalition is the mean over all rows of the background: nothing is left to chance."""
    e = explainer().explain(ROW)

    assert e.exhaustive
    assert_allclose(e.posterior.mean, shapley_by_hand(), atol=1e-9)
    assert_allclose(e.posterior.intercept, value(()), atol=1e-9)
    assert e.features[0] == "column 0 = 2"


@pytest.mark.parametrize("rows", [100, 40, 7, 1])
def test_both_ends_are_exact(rows):
    """The row itself, and the mean score of the rows of the background that are kept."""
    made = explainer(rows_per_mask=rows, n_masks=40)
    e = made.explain(ROW)
    kept = made.subject(ROW).scene.table.native[:-1]

    assert len(kept) == min(rows, 40)
    assert e.answers.hidden == pytest.approx(model(kept).mean(), abs=1e-12)
    assert e.prediction == pytest.approx(model(ROW[None])[0], abs=1e-12)
    total = e.prediction - e.answers.hidden
    assert e.posterior.mean.sum() == pytest.approx(total, abs=1e-3 * abs(total))


def test_batches_and_rounds_do_not_change_the_numbers():
    """All masks have the same rows."""
    settings = {"rows_per_mask": 3, "n_masks": 50, "design": "leverage"}
    whole = explainer(**settings).explain(ROW, rng=4)
    split = explainer(**settings, calls=eblime.Calls(batch_size=7)).explain(ROW, rng=4)
    grown = explainer(**settings | {"n_masks": 30}).explain(ROW, rng=4)

    assert_array_equal(whole.scores, split.scores)
    assert_allclose(grown.more(10).scores[:30], grown.scores)


def test_the_seed_alone_decides_and_a_cache_is_used(tmp_path):
    """The second explanation asks the model about one stored answer only."""
    calls = []

    def counted(rows):
        calls.append(len(rows))
        return model(rows)

    cache = eblime.AnswerCache(tmp_path / "answers.db", model_id="one")
    settings = {"method": SHAPLEY, "rows_per_mask": 4, "n_masks": 30}
    asked = eblime.TabularExplainer(counted, TABLE, **settings, cache=cache)
    first = asked.explain(ROW)
    before = sum(calls)
    second = asked.explain(ROW)

    assert before == first.provenance["model_calls"] == 1 + 29 * 4
    assert_array_equal(first.scores, second.scores)
    assert sum(calls) - before <= 40
    other = eblime.TabularExplainer(counted, TABLE + 1, **settings, cache=cache).explain(ROW)
    assert other.answers.hidden != first.answers.hidden


def test_max_calls_counts_rows():
    """As many masks as the rows allow."""
    e = explainer(n_masks=60, rows_per_mask=5, design="leverage").explain(
        ROW, calls=eblime.Calls(max_calls=1 + 20 * 5)
    )

    assert e.provenance["model_calls"] <= 101
    assert 15 <= len(e.masks) <= 22


def test_categories_groups_and_missing_values():
    """Frames keep their dtypes; a group is one player; equal columns are zero."""
    frame = pd.DataFrame(
        {
            "job": ["cook", "smith", "cook", "clerk"],
            "age": [30, 40, 50, 60],
            "one": [1.0, 0.0, 0.0, np.nan],
            "two": [0.0, 1.0, 0.0, 1.0],
            "same": [7, 7, 7, 7],
        }
    )

    def score(rows):
        assert list(rows.dtypes) == list(frame.dtypes)
        return (rows["job"] == "cook") * 1.0 + rows["age"] / 10 + rows["two"] + rows["same"]

    settings = {"groups": {"dummy": ["one", "two"]}, "method": SHAPLEY}
    with pytest.warns(UserWarning, match="'same'"):
        explainer = eblime.TabularExplainer(score, frame, **settings)
    e = explainer.explain(frame.iloc[1])

    assert e.details()["column"] == ["job", "age", "dummy", "same"]
    assert_allclose(e.posterior.mean, [-0.5, -0.5, 0.5, 0.0], atol=1e-9)
    assert list(e.features[:2]) == ["job = smith", "age = 40"]


def test_runs_give_the_same_numbers(tmp_path):
    """Rows of a run are explained as one by one."""
    run = eblime.explain_many(explainer(n_masks=30), TABLE[:3], out=tmp_path / "run", workers=1)
    alone = [
        explainer(n_masks=30).explain(
            row, rng=np.random.default_rng(np.random.SeedSequence(0, spawn_key=(k,)))
        )
        for k, row in enumerate(TABLE[:3])
    ]

    for k, e in enumerate(alone):
        assert_allclose(run.explanation(k).posterior.mean, e.posterior.mean)


@pytest.mark.parametrize("method", ["eblime", "lime", "bayesshap", "quadrature"])
def test_other_methods_take_the_game(method):
    """Every design and method for masks works."""
    e = explainer(method=method, n_masks=50).explain(ROW)

    assert not e.exhaustive
    assert e.posterior.mean[3] == pytest.approx(shapley_by_hand()[3], abs=1.0)


def test_a_model_with_too_few_scores_is_refused():
    """Scores are checked before they are averaged."""
    bad = eblime.TabularExplainer(lambda rows: model(rows)[:-1], TABLE, method=SHAPLEY)
    with pytest.raises(eblime.ModelError, match="must return scores of shape"):
        bad.explain(ROW)


def test_the_ends_have_numbers_of_their_own():
    """The row itself is one input, everything hidden is the whole background."""
    rng = np.random.default_rng(0)
    near = explainer(rows_per_mask=4).subject(ROW).neighbourhood(rng)
    batch = near.inputs(np.array([INPUT_ITSELF, ALL_HIDDEN]))

    assert_array_equal(batch.sizes, [1, 4])
    assert_array_equal(batch.inputs[0], ROW)
    assert (batch.inputs[1:, None] == TABLE).all(axis=2).any(axis=1).all()


@pytest.mark.slow  # importing shap takes up to 20 seconds
@pytest.mark.parametrize("kind", ["linear", "tree"])
def test_shap_agrees(kind):
    """KernelExplainer with all coalitions, and the exact explainer, have the same values."""
    shap = pytest.importorskip("shap")
    rng = np.random.default_rng(5)
    if kind == "tree":
        tree = pytest.importorskip("sklearn.tree")
        fitted = tree.DecisionTreeRegressor(max_depth=5, random_state=0)
        score = fitted.fit(TABLE, model(TABLE)).predict
    else:
        slopes = rng.normal(size=P)
        score = lambda rows: rows @ slopes  # noqa: E731
    e = eblime.TabularExplainer(score, TABLE, method=SHAPLEY).explain(ROW)
    masker = shap.maskers.Independent(TABLE, max_samples=len(TABLE))
    exact = shap.explainers.Exact(score, masker)(ROW[None])
    kernel = shap.KernelExplainer(score, TABLE).shap_values(ROW, nsamples=2**P, silent=True)

    assert_allclose(e.posterior.mean, exact.values[0], atol=1e-8)
    assert_allclose(e.posterior.mean, kernel, atol=1e-6)
    assert_allclose(e.to_shap().base_values, exact.base_values[0], atol=1e-9)


def test_log_odds_are_those_of_the_mean_probability():
    """The link comes after the mean over the background, as in shap."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(30, 3))
    chance = lambda table: 1 / (1 + np.exp(-table[:, 0] - table[:, 1] * table[:, 2]))  # noqa: E731
    e = eblime.TabularExplainer(chance, rows, link="logit").explain(rows[0])
    literal = []
    for mask in e.masks > 0.5:
        mean = chance(np.where(mask, rows[0], rows)).mean()
        literal.append(np.log(mean / (1 - mean)))

    assert_allclose(e.scores, literal, rtol=1e-10)
    assert e.headline.startswith(f"output: predicted {e.prediction:.4g} (log-odds; probability")
    assert "the log-odds of the mean over 30 rows" in e.estimand


def test_log_odds_of_certain_predictions_are_finite():
    """Probabilities of 0 and 1 are taken as a millionth away."""
    rows = np.random.default_rng(0).normal(size=(30, 2))
    certain = lambda table: (table[:, 0] > 0).astype(float)  # noqa: E731
    e = eblime.TabularExplainer(certain, rows, link="logit").explain([5.0, 0.0])

    assert e.prediction == pytest.approx(np.log(1e6), rel=1e-4)


def test_log_odds_need_probabilities():
    """The message names the link and a score; another link is refused when it is given."""
    rows = np.random.default_rng(0).normal(size=(30, 2))
    explainer = eblime.TabularExplainer(lambda table: table[:, 0], rows, link="logit")
    with pytest.raises(eblime.ModelError, match="`link` must be 'identity' for scores that are no"):
        explainer.explain(rows[0])
    with pytest.raises(ValueError, match="`link` must be one of 'identity', 'logit'"):
        eblime.TabularExplainer(lambda table: table[:, 0], rows, link="probit")
