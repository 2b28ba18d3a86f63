import json
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from test_storage import explained

import eblime
from eblime.results.export import JSON_SCHEMA


def test_json_has_every_feature_and_its_numbers():
    """The documented layout, finite numbers only."""
    e = explained()
    found = json.loads(e.to_json(prob=0.9))

    assert found["schema"] == JSON_SCHEMA
    assert [row["name"] for row in found["features"]] == list(e.features)
    assert_allclose([row["mean"] for row in found["features"]], e.posterior.mean)
    assert_allclose([row["low"] for row in found["features"]], e.posterior.interval(0.9)[:, 0])
    assert found["provenance"]["model_calls"] <= 60
    assert found["prob"] == 0.9


def test_json_of_a_point_estimate_has_nulls():
    """LIME has no spread to write down."""
    row = json.loads(explained("lime").to_json())["features"][0]

    assert row["mean"] is not None
    assert row["sd"] is row["low"] is row["prob_positive"] is None


@pytest.mark.parametrize("method", ["eblime", "lime"])
@pytest.mark.parametrize("settings", [{"k": 0}, {"k": "five"}, {"k": 2.5}, {"prob": 1.5}])
def test_wrong_levels_and_counts_are_refused(method, settings):
    """By name, also for a point estimate, which uses neither."""
    e = explained(method)
    for write in (e.to_frame, e.to_json):
        with pytest.raises((TypeError, ValueError), match=f"`{next(iter(settings))}` must be"):
            write(**settings)


def test_features_are_ordered_by_the_size_of_their_means():
    """The order of tables, lists and plots."""
    post = explained().posterior
    sizes = np.abs(post.mean)[post.order()]

    assert (np.diff(sizes) <= 0).all()
    assert sorted(post.order()) == list(range(post.n_features))


def test_arviz_gets_draws_by_feature():
    """One chain of i.i.d. draws whose mean is the posterior's."""
    pytest.importorskip("arviz")
    e = explained()
    found = e.to_arviz(n_draws=2000)
    beta = found["posterior"]["beta"]

    assert beta.shape == (1, 2000, 9)
    assert list(beta.coords["feature"].values) == list(e.features)
    assert_allclose(
        beta.values.mean(axis=(0, 1)), e.posterior.mean, atol=5 * e.posterior.sd.max() / 44
    )


def test_shap_gets_bounds():
    """Values, base value and bounds where shap's plots look for them."""
    pytest.importorskip("shap")
    e = explained()
    found = e.to_shap()

    assert_allclose(found.values, e.posterior.mean)
    assert_allclose(np.stack([found.lower_bounds, found.upper_bounds], 1), e.posterior.interval())
    assert found.base_values == e.posterior.intercept


@pytest.mark.parametrize("method", ["eblime", "lime"])
def test_shap_adds_up_to_the_linear_fit(rng, method):
    """The base value and all values are what the linear fit predicts; data are those of the row."""
    pytest.importorskip("shap")
    table = rng.normal(10, 3, size=(80, 3))
    e = eblime.TabularExplainer(
        lambda rows: rows[:, 0] * rows[:, 1], table, names=["a", "b", "c"], method=method
    ).explain(table[0])
    found = e.to_shap()
    fitted = e.posterior.intercept + e.posterior.mean.sum()

    assert found.base_values + found.values.sum() == pytest.approx(fitted)
    assert found.feature_names == ["a", "b", "c"]
    assert_allclose(found.data, table[0], rtol=1e-3)
    if method == "eblime":
        inside = (found.lower_bounds <= found.values) & (found.values <= found.upper_bounds)
        assert inside.all()


@pytest.mark.parametrize("index", ["lime", "banzhaf", "shapley"])
def test_shap_adds_up_for_every_index(index):
    """From the score without any word to that of the text, for a score that is a line."""
    pytest.importorskip("shap")
    words = "a good film with a bad end and a nice song"
    e = eblime.TextExplainer(
        lambda texts: [2 + 0.5 * ("good" in t) - 0.2 * ("bad" in t) for t in texts],
        n_masks=60,
        method=eblime.Quadrature(index=index),
    ).explain(words)
    found = e.to_shap()

    assert found.base_values == pytest.approx(2.0, abs=1e-6)
    assert found.base_values + found.values.sum() == pytest.approx(2.3, abs=1e-6)


def test_shapley_values_add_up_to_the_prediction():
    """Also for a score that is not a line, if both ends were asked."""
    pytest.importorskip("shap")
    e = eblime.TextExplainer(
        lambda texts: [2 + 0.5 * ("good" in t and "end" in t) for t in texts],
        n_masks=60,
        method=eblime.Quadrature(index="shapley"),
    ).explain("a good film with a bad end and a nice song")
    found = e.to_shap()

    assert found.base_values == pytest.approx(2.0)
    assert found.base_values + found.values.sum() == pytest.approx(e.prediction)


def test_shap_draws_rows_and_texts():
    """Waterfall, bars and beeswarm of rows with words among the values; the text plot."""
    shap = pytest.importorskip("shap")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"age": [20, 30, 40, 50] * 10, "sex": ["f", "m"] * 20})
    explainer = eblime.TabularExplainer(
        lambda rows: rows["age"] + 9 * (rows["sex"] == "f"), frame, n_masks=60
    )
    one, two = (explainer.explain(frame.iloc[k]).to_shap() for k in range(2))
    text = eblime.TextExplainer(lambda texts: [len(t) for t in texts]).explain("so good, so far!")
    words = text.to_shap()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of shap
        shap.plots.waterfall(one, show=False)
        shap.plots.bar(one, show=False)
        both = shap.Explanation(
            values=np.stack([one.values, two.values]),
            base_values=np.array([one.base_values, two.base_values]),
            data=np.stack([one.data, two.data]),
            feature_names=one.feature_names,
        )
        shap.plots.beeswarm(both, show=False)
        page = shap.plots.text(words, display=False)
    pyplot.close("all")

    assert list(one.data) == [20.0, "f"]
    assert list(words.data) == ["so ", "good, ", "far!"]
    assert "good" in page


def test_lists_of_features():
    """By importance, with or without intervals, all or the first few."""
    e = explained()
    order = np.argsort(-np.abs(e.posterior.mean), kind="stable")
    rows = e.as_list(prob=0.9)

    assert e.as_list() == [(e.features[j], pytest.approx(e.posterior.mean[j])) for j in order]
    assert [row[:2] for row in rows] == e.as_list()
    assert_allclose([row[2:] for row in rows], e.posterior.interval(0.9)[order])
    assert e.as_list(top=2) == e.as_list()[:2]
    assert len(e.as_list(top=1000)) == len(order)
    assert explained("lime").as_list()
    with pytest.raises(eblime.core.NoSpreadError):
        explained("lime").as_list(prob=0.9)
    with pytest.raises(ValueError, match="`top` must be >= 1"):
        e.as_list(top=0)


def test_masks_of_superpixels():
    """True in the most important superpixels, of those that raise the score or of all."""
    e = explained()
    mean = e.posterior.mean
    best, largest = np.argmax(mean), np.argsort(-np.abs(mean))[:3]

    assert e.mask().dtype == bool
    assert_array_equal(e.mask(top=1), e.segments == best)
    assert_array_equal(e.mask(top=3, positive_only=False), np.isin(e.segments, largest))
    assert_array_equal(e.mask(top=1000), (mean > 0)[e.segments])
    text = eblime.TextExplainer(lambda texts: [len(t) for t in texts]).explain("one two six")
    with pytest.raises(AttributeError, match="needs an explanation of an image"):
        text.mask()


def test_superpixels_can_be_found(tmp_path):
    """Label map, heat maps, and centroid, box and area in frames and JSON."""
    skimage = pytest.importorskip("skimage.measure")
    e = explained()
    image = eblime.load(e.save(tmp_path / "e.eblime"))
    frame, rows = image.to_frame(), json.loads(image.to_json())["features"]

    assert_allclose(image.heatmap(), e.posterior.mean[image.segments])
    assert_allclose(image.heatmap("sd"), e.posterior.sd[image.segments])
    assert not image.segments.flags.writeable
    for j, region in enumerate(skimage.regionprops(image.segments + 1)):
        found = frame.iloc[j]
        assert_allclose(found[["centroid_row", "centroid_column"]].astype(float), region.centroid)
        assert tuple(found[["top", "left", "bottom", "right"]]) == region.bbox
        assert found["area"] == region.area == rows[j]["area"]
    assert {"centroid_row", "area"} <= set(e.refit("lime").to_frame().columns)
    with pytest.raises(ValueError, match="`of` must be one of 'mean', 'sd'"):
        e.heatmap("median")


def test_rows_have_their_values_and_bins(rng):
    """Column, value and bin in frames and JSON; other inputs have no superpixels."""
    table = rng.integers(0, 100, size=(50, 2)).astype(float)
    e = eblime.TabularExplainer(lambda rows: rows[:, 0], table, names=["age", "luck"]).explain(
        [3.5, 50]
    )
    frame, rows = e.to_frame(), json.loads(e.to_json())["features"]

    assert list(frame["column"]) == ["age", "luck"]
    assert list(frame["value"]) == [row["value"] for row in rows] == ["3.5", "50"]
    assert list(frame["bin"]) == list(e.features)
    for ask in (lambda: e.segments, e.heatmap):
        with pytest.raises(AttributeError, match="needs an explanation of an image"):
            ask()


def test_texts_have_no_more_columns():
    """Nothing but the numbers of each word."""
    e = eblime.TextExplainer(lambda texts: [len(text) for text in texts]).explain("one two six")

    assert list(e.to_frame().columns)[-1] == "top_k"
    assert e.details() == {}
