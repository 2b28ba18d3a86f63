"""Several explanations as one object of shap, and what people do with it."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import eblime

ROWS = np.random.default_rng(0).normal(size=(80, 3))


def classes(x):
    """Probabilities of two classes."""
    high = 1 / (1 + np.exp(-2 * x[:, 0] + x[:, 2]))
    return np.stack([1 - high, high], axis=1)


def explainer(method="eblime", n_masks=60):
    """An explainer of rows."""
    return eblime.TabularExplainer(
        classes, ROWS, names=["a", "b", "c"], n_masks=n_masks, method=method, labels=["no", "yes"]
    )


@pytest.mark.parametrize("method", ["eblime", "lime"])
def test_rows_of_one_target(method):
    """A row of the object is the explanation of that input."""
    pytest.importorskip("shap")
    found = [explainer(method).explain(row, target=1, rng=0) for row in ROWS[:5]]
    sv = eblime.results.to_shap(iter(found))

    assert sv.shape == (5, 3)
    for k, e in enumerate(found):
        one = e.to_shap()
        assert_array_equal(sv[k].values, one.values)
        assert sv[k].base_values == one.base_values
        assert_array_equal(sv[k].data, one.data)
    assert sv.feature_names == ["a", "b", "c"]
    assert (sv.lower_bounds is None) == (method == "lime")


def test_rows_of_several_targets():
    """`sv[:, :, 1]` is the second target, by number or by name."""
    pytest.importorskip("shap")
    found = [explainer().explain_targets(row, [1, 0], rng=0) for row in ROWS[:4]]
    sv = eblime.results.to_shap(found)

    assert sv.shape == (4, 3, 2)
    assert sv.output_names == ["yes", "no"]
    assert_allclose(sv[:, :, 1].values, [entry[0].to_shap().values for entry in found])
    assert_allclose(sv[:, :, 1].base_values, [entry[0].posterior.intercept for entry in found])
    assert_allclose(sv[:, :, "yes"].upper_bounds, [e[1].to_shap().upper_bounds for e in found])
    assert sv[0, :, 1].values.shape == (3,)


def test_intervals_of_another_level_are_narrower():
    """`prob` is that of the bounds."""
    pytest.importorskip("shap")
    found = [explainer(n_masks=6).explain(row, target=1, rng=0) for row in ROWS[:2]]
    wide, narrow = eblime.results.to_shap(found), eblime.results.to_shap(found, prob=0.5)

    assert (narrow.upper_bounds < wide.upper_bounds).all()


def test_plots_of_many_rows():
    """Beeswarm, bars of means and of cohorts, heat map, scatter, violin, waterfall of one row."""
    shap = pytest.importorskip("shap")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    sv = eblime.results.to_shap(
        explainer().explain_targets(row, [0, 1], rng=0) for row in ROWS[:12]
    )
    one = sv[:, :, 1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of shap
        shap.plots.beeswarm(one, show=False)
        shap.plots.bar(one.abs.mean(0), show=False)
        shap.plots.bar(one.cohorts(["x", "y"] * 6).abs.mean(0), show=False)
        shap.plots.heatmap(one, show=False)
        shap.plots.scatter(one[:, "a"], color=one, show=False)
        shap.plots.violin(one, show=False)
        shap.plots.waterfall(one[0], show=False)
        shap.summary_plot(one.values, one.data, feature_names=one.feature_names, show=False)
    pyplot.close("all")

    assert int(one.abs.mean(0).values.argmax()) == 0
    assert one.abs.mean(0).shape == (3,)


def test_the_rows_of_a_stored_run(tmp_path):
    """`Run.explanation` of each input; the whole run is one object."""
    pytest.importorskip("shap")
    pytest.importorskip("pyarrow")
    run = eblime.explain_many(
        explainer(), ROWS[:3], tmp_path / "run", targets=[1], keep=True, progress=False
    )
    sv = eblime.results.to_shap(run.explanation(k) for k in range(3))

    assert_allclose(sv.values, run.frame()["mean"].to_numpy().reshape(3, 3))


def test_bad_input_is_refused():
    """The message says what must hold."""
    pytest.importorskip("shap")
    e = explainer().explain(ROWS[0], target=1, rng=0)
    words = eblime.TextExplainer(lambda texts: [0.5] * len(texts)).explain("a good day", rng=0)
    for entry in (e, {1: e}, [], [e, 3]):
        with pytest.raises(TypeError, match=r"list .* use `explanation.to_shap\(\)`"):
            eblime.results.to_shap(entry)
    with pytest.raises(ValueError, match="same features; input 1 differs"):
        eblime.results.to_shap([e, words])
    with pytest.raises(ValueError, match=r"the first has \[1\], input 1 has \[0\]"):
        eblime.results.to_shap([{1: e}, {0: e}])
