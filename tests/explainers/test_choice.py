"""The front door: the explainer is chosen by the input."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import eblime
from eblime.explainers.choice import explainer_class

RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(RNG.normal(size=(40, 3)), columns=list("abc"))


@pytest.mark.parametrize(
    ("x", "settings", "kind"),
    [
        ("good but slow", {}, "TextExplainer"),
        ("which one?", {"sources": ["a", "b"]}, "PromptExplainer"),
        (TABLE.iloc[0], {"background": TABLE}, "TabularExplainer"),
        ([1.0, 2.0, 3.0], {"background": TABLE}, "TabularExplainer"),
        (np.ones((8, 8)), {}, "ImageExplainer"),
        (np.ones((8, 8, 3)), {}, "ImageExplainer"),
        (np.ones((3, 8, 8)), {}, "ImageExplainer"),
        (Image.new("RGB", (8, 8)), {}, "ImageExplainer"),
        (Path("photo.jpg"), {}, "ImageExplainer"),
        (np.ones(100), {"rate": 10}, "SignalExplainer"),
        (np.ones((2, 100)), {"rate": 10}, "SignalExplainer"),
        (Path("pump.WAV"), {}, "SignalExplainer"),
        (np.ones((9, 8, 7)), {}, "VolumeExplainer"),
        (np.ones((4, 8, 7)), {"spacing": (1, 1, 1)}, "VolumeExplainer"),
        (np.ones((8, 8)), {"spacing": (1, 1)}, "ImageExplainer"),
        (Path("head.nii.gz"), {}, "VolumeExplainer"),
    ],
)
def test_the_input_and_the_settings_choose_the_explainer(x, settings, kind):
    """As the table in the docstring says."""
    assert explainer_class(len, x, None, settings).__name__ == kind


@pytest.mark.parametrize("x", [np.ones(3), [1.0, 2.0], {"a": 1.0}, TABLE.iloc[0], TABLE.iloc[:1]])
def test_a_row_needs_a_background(x):
    """The message says so, and what a signal needs."""
    with pytest.raises(ValueError, match=r"`background` must be given for a row.*sampling rate"):
        eblime.explain(len, x)


def test_it_explains_as_the_explainer_does():
    """Settings of the explainer and of the question are taken apart."""
    score = lambda rows: rows["a"] - 0.5 * rows["b"] * rows["c"]  # noqa: E731
    row, rule = TABLE.iloc[3], eblime.TopK(1)
    found = eblime.explain(score, row, TABLE, rng=7, method="bayeslime", until=rule, max_masks=8)
    expected = eblime.TabularExplainer(score, TABLE, method="bayeslime").explain(
        row, rng=7, until=rule, max_masks=8
    )

    assert list(found.features) == list(expected.features)
    assert np.array_equal(found.posterior.mean, expected.posterior.mean)
    assert found.provenance["until"] == expected.provenance["until"]


def test_an_explainer_in_place_of_a_model_is_refused():
    """It has an `explain` of its own."""
    explainer = eblime.TextExplainer(len)
    with pytest.raises(TypeError, match="`model` must be a model; got an explainer"):
        eblime.explain(explainer, "a text")
