import json

import numpy as np
import pytest
from numpy.testing import assert_allclose
from test_storage import explained

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
