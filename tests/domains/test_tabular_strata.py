"""Features that seldom vary: forced draws, and weights that leave the estimand unchanged."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import eblime
from eblime.domains.tabular import neighbourhood
from eblime.kernels import as_kernel
from eblime.results.notes import notes as all_notes


def table(n=60, rare=2, seed=0):
    """Two columns of numbers and a column with a rare value."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, 2)), columns=["a", "b"])
    frame["rare"] = np.where(np.arange(n) < rare, "yes", "no")
    return frame


def model(rows):
    """The rare value interacts with a number."""
    return rows["a"].to_numpy() + (rows["rare"] == "yes").to_numpy() * (
        2 + 4 * rows["b"].to_numpy()
    )


def explained(data, row, *, n=2000, rng=0, score=model, **settings):
    """Explain a row by lime's ridge."""
    explainer = eblime.TabularExplainer(score, data, n_masks=n, method="lime", **settings)
    return explainer.explain(data.iloc[row], target=0, rng=rng)


def slopes(masks, scores, weights):
    """Weighted least squares with an intercept."""
    columns = np.column_stack([np.ones(len(masks)), masks])
    gram = columns.T @ (columns * weights[:, None])
    return np.linalg.solve(gram, columns.T @ (weights * scores))[1:]


def population(data, row, perturb):
    """Slopes over all combinations of background values (or all rows), each counted once."""
    n = len(data)
    picks = np.stack(np.meshgrid(*[np.arange(n)] * 3, indexing="ij"), -1).reshape(-1, 3)
    if perturb == "rows":
        picks = np.repeat(np.arange(n)[:, None], 3, axis=1)
    rows = pd.DataFrame({name: data[name].to_numpy()[picks[:, c]] for c, name in enumerate(data)})
    masks = np.empty((len(rows), 3))
    for c, name in enumerate(["a", "b"]):
        edges = np.percentile(data[name], [25, 50, 75])
        masks[:, c] = np.searchsorted(edges, rows[name]) == np.searchsorted(
            edges, data[name].iloc[row]
        )
    masks[:, 2] = rows["rare"] == data["rare"].iloc[row]
    return slopes(masks, model(rows), as_kernel(None)(masks))


def test_frequent_states_draw_the_same_rows_as_before(monkeypatch):
    """Without a rare state, nothing is forced and the weights are the kernel's."""
    data = table(rare=20)
    now = explained(data, 0)
    monkeypatch.setattr(neighbourhood, "_RARE", 0.0)
    before = explained(data, 0)

    assert_array_equal(now.masks, before.masks)
    assert_array_equal(now.scores, before.scores)
    assert_array_equal(now.weights, as_kernel(None)(now.masks))


@pytest.mark.parametrize("row", [0, 30])  # the rare value itself, and the frequent one
@pytest.mark.parametrize("perturb", ["bins", "normal", "rows"])
def test_a_rare_state_gets_the_least_share(perturb, row):
    """A tenth of the rows show it, instead of a thirtieth."""
    found = explained(table(), row, n=4000, perturb=perturb)
    rare = found.masks[:, 2] == (row == 0)

    assert abs(rare.mean() - neighbourhood._RARE) < 4 * np.sqrt(0.1 * 0.9 / 4000)
    assert_allclose(rare[:200].mean(), rare.mean(), atol=0.08)  # early rows have their share too


@pytest.mark.parametrize("perturb", ["bins", "rows"])
@pytest.mark.parametrize("row", [0, 30])
def test_the_estimand_is_unchanged(perturb, row):
    """Means of ten large draws meet the fit over the whole population, in standard errors."""
    data = table(n=40)
    draws = [explained(data, row, n=8000, rng=seed, perturb=perturb) for seed in range(10)]
    found = np.array([slopes(e.masks[1:], e.scores[1:], e.weights[1:]) for e in draws])
    error = found.std(axis=0, ddof=1) / np.sqrt(len(found))
    truth = population(data, row, perturb)
    unweighted = [slopes(e.masks, e.scores, as_kernel(None)(e.masks)) for e in draws]

    assert_array_equal(np.abs(found.mean(axis=0) - truth) < 5 * error, True)
    if perturb == "bins":  # there the slope of b depends on how frequent the rare value is
        assert np.any(np.abs(np.mean(unweighted, axis=0) - truth) > 5 * error)


def test_weights_are_bounded_and_average_to_one():
    """Ten rare features force at most half of the rows; no weight is above 2."""
    rng = np.random.default_rng(0)
    data = pd.DataFrame(np.where(rng.random((500, 10)) < 0.02, "yes", "no"))
    data.columns = [f"c{j}" for j in range(10)]
    found = explained(data, 0, n=20_000, score=lambda rows: (rows == "yes").sum(axis=1).to_numpy())
    sampling = found.weights / as_kernel(None)(found.masks)
    shares = (found.masks != found.masks[0]).mean(axis=0)

    assert sampling.max() <= 1 / (1 - neighbourhood._FORCED) + 1e-12
    assert abs(sampling.mean() - 1) < 5 * sampling.std() / np.sqrt(len(sampling))
    assert shares.min() > 0.05  # 0.02 without forcing


def test_the_importance_of_a_rare_value_is_more_precise(monkeypatch):
    """Three times as many masks decide it."""
    data = table(n=200, rare=4)

    def error():
        truth = slopes(*_parts(explained(data, 50, n=200_000, rng=1)))[2]
        found = [slopes(*_parts(explained(data, 50, n=500, rng=seed)))[2] for seed in range(40)]
        return np.sqrt(np.mean((np.array(found) - truth) ** 2))

    forced = error()
    monkeypatch.setattr(neighbourhood, "_RARE", 0.0)

    assert forced < 0.75 * error()


def test_rounds_and_designs():
    """Rows in two rounds are those of one; a design that chooses masks is not reweighted."""
    data = table()
    explainer = eblime.TabularExplainer(model, data)
    empty = explainer.subject(data.iloc[0]).neighbourhood(np.random.default_rng(0))
    rng = np.random.default_rng(1)
    once, twice = empty.extend(rng, 1500), empty.extend(rng, 700).extend(rng, 800)
    masks = np.random.default_rng(2).integers(0, 2, size=(50, 3)).astype(float)

    assert_array_equal(once.masks, twice.masks)
    assert_array_equal(once.sampling_weights, twice.sampling_weights)
    assert once.sampling_weights.std() > 0
    assert_array_equal(empty.extend(rng, masks).sampling_weights, 1.0)


def test_numbers_that_are_standardised_are_not_forced():
    """With continuous features only the categories have a rare state."""
    found = explained(table(), 30, n=4000, representation="continuous")

    assert abs((found.masks[:, 2] == 0).mean() - 0.1) < 0.02
    assert len(np.unique(found.masks[:, 0])) > 3000


def notes(score, data, row, *, n, method="eblime"):
    """The notes about few masks in an explanation."""
    explainer = eblime.TabularExplainer(score, data, n_masks=n, method=method)
    found = all_notes(explainer.explain(data.iloc[row], target=0, rng=0))
    return [note for note in found if "Few masks decide" in note]


def test_a_note_names_features_that_rest_on_few_masks():
    """Ten masks of a rare state are too few, a hundred are enough."""
    data = table(n=200, rare=4)
    few, many = (notes(model, data, 50, n=n) for n in (40, 1000))

    assert "rare = no (about" in few[0]
    assert 'EBLIME(noise="unequal")' not in few[0]  # it is the default
    assert not many


def test_a_note_names_heavy_tails():
    """A hundred masks of a rare state are few if two or three scores are far above the others."""
    data = table(n=1000, rare=30)

    def heavy(rows):
        rare = (rows["rare"] == "yes").to_numpy()
        return rows["a"].to_numpy() + rare * np.exp(3 * rows["b"].to_numpy())

    equal = eblime.EBLIME(noise="equal")

    assert "rare = no (about" in notes(heavy, data, 50, n=1000)[0]
    assert 'EBLIME(noise="unequal")' in notes(heavy, data, 50, n=1000, method=equal)[0]
    assert not notes(heavy, data, 50, n=1000, method="lime")  # it has no intervals


def _parts(explanation):
    return explanation.masks, explanation.scores, explanation.weights
