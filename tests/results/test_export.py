import json

import numpy as np
import pytest
from numpy.testing import assert_allclose
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
