"""Frames need pandas, which is optional."""

import sys

import numpy as np
import pandas as pd
import pytest

import eblime
from eblime import _pandas
from eblime.batch.inputs import as_inputs, read_table


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
        lambda: _pandas.read_csv("x.csv", ".csv"),
    ],
)
def test_a_missing_pandas_names_the_extra(monkeypatch, frame):
    """Whatever makes the frame."""
    monkeypatch.setitem(sys.modules, "pandas", None)

    with pytest.raises(
        ImportError, match=r"pandas is not installed: pip install 'eblime\[frame\]'"
    ):
        frame()


def test_the_module_has_no_other_lazy_name():
    """An unknown name is refused as by any module."""
    with pytest.raises(AttributeError, match="has no attribute 'DataFrame'"):
        _ = _pandas.DataFrame


@pytest.mark.parametrize("ending", [".csv", ".tsv"])
def test_explain_and_batch_read_every_digit_of_a_file(monkeypatch, tmp_path, ending):
    """The last digits are rounded by pandas 2, unless it is asked not to."""
    path, asked = tmp_path / f"table{ending}", []
    path.write_text("a\n0.1\n")

    def read(source, *, sep, float_precision="fast", **settings):
        if settings.get("nrows") != 1:  # not the names alone
            asked.append((sep, float_precision))
        return real(source, sep=sep, **settings)

    real = pd.read_csv
    monkeypatch.setattr(pd, "read_csv", read)
    monkeypatch.setattr(pd, "__version__", "2.2.3")
    read_table(path)
    as_inputs(path)

    assert len(asked) == 2
    assert set(asked) == {("\t" if ending == ".tsv" else ",", "round_trip")}
