"""Frames need pandas, which is optional."""

import sys

import numpy as np
import pytest

import eblime
from eblime import _pandas


def word_explanation():
    """An explanation of a text of two words."""
    return eblime.TextExplainer(lambda texts: [len(text) for text in texts]).explain("one two")


@pytest.mark.parametrize(
    "frame",
    [
        lambda: word_explanation().to_frame(),
        lambda: word_explanation().interactions().to_frame(),
        lambda: eblime.family.AveragedExplanation(
            features=("a",), importances=np.ones((1, 1, 2, 1))
        ).to_frame(),
        _pandas.check_pandas,
    ],
)
def test_a_missing_pandas_names_the_extra(monkeypatch, frame):
    """Whatever makes the frame."""
    monkeypatch.setitem(sys.modules, "pandas", None)

    with pytest.raises(ImportError, match=r"needs pandas: pip install 'eblime\[frame\]'"):
        frame()


def test_the_module_has_no_other_lazy_name():
    """An unknown name is refused as by any module."""
    with pytest.raises(AttributeError, match="has no attribute 'DataFrame'"):
        _ = _pandas.DataFrame
