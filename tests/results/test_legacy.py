"""Files of the first layout still load: one of each kind, written before the layout changed."""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import eblime

FOLDER = Path(__file__).parents[1] / "data" / "schema-1"
NUMBERS = json.loads((FOLDER / "numbers.json").read_text())


@pytest.mark.parametrize("name", sorted(NUMBERS))
def test_an_old_file_gives_its_numbers(name):
    """Means, intervals, fit, names and label are those of the day it was written.

    A fit to all masks is now exact, so that it is only nearly the same.
    """
    known = NUMBERS[name]
    e = eblime.load(FOLDER / f"{name}.eblime")
    near = 2e-4 if e.exhaustive else 0.0

    assert list(e.features) == known["features"]
    assert e.label == known["label"]
    assert e.prediction == known["prediction"]
    assert_allclose(e.posterior.mean, known["mean"], rtol=1e-9, atol=near + 1e-12)
    assert_allclose(e.posterior.r2, known["r2"], rtol=near + 1e-9)
    assert_allclose(e.posterior.intercept, known["intercept"], rtol=1e-9, atol=near + 1e-12)
    if known["interval"] is None:
        assert not e.posterior.has_spread
    else:
        assert_allclose(e.posterior.interval(), known["interval"], rtol=1e-7, atol=near + 1e-9)


@pytest.mark.parametrize("name", sorted(NUMBERS))
def test_an_old_file_is_whole(name, tmp_path):
    """It prints, exports and refits, and can be saved in the present layout."""
    e = eblime.load(FOLDER / f"{name}.eblime")
    again = eblime.load(e.save(tmp_path / "again.eblime"))

    assert str(again) == str(e)
    assert json.loads(e.to_json())["label"] == e.label
    assert e.to_html().startswith("<!DOCTYPE html>")
    assert np.isfinite(e.refit("bayeslime").posterior.sd).all()
