"""Run folders of earlier versions: one of each layout, written by the version in its name.

The model returned the first column minus half of the third. A change of the layout, or of the
columns of a part, adds a folder.
"""

import shutil
from pathlib import Path

import numpy as np
import pytest

import eblime

pytest.importorskip("pyarrow", reason="runs need pyarrow")

RUNS = Path(__file__).parents[1] / "data" / "runs"
ROWS = np.random.default_rng(0).normal(size=(60, 3)).round(3)[:4]  # the inputs of each run


@pytest.fixture
def run(tmp_path):
    """A copy of the run of version 0.2.0."""
    shutil.copytree(RUNS / "0.2.0", tmp_path / "run")
    return eblime.open_run(tmp_path / "run")


def test_an_old_run_gives_its_numbers(run):
    """Four inputs of three features, with the model's predictions."""
    rows = run.frame()
    predictions = rows.groupby("input")["prediction"].first()

    assert rows["input"].value_counts().to_dict() == dict.fromkeys(range(4), 3)
    np.testing.assert_allclose(predictions, ROWS[:, 0] - 0.5 * ROWS[:, 2])
    assert (rows["low"] <= rows["mean"]).all()
    assert (rows["mean"] <= rows["high"]).all()
    assert run.scan().to_table().num_rows == 12


def test_an_old_run_agrees_with_its_explanations(run):
    """Each kept file has the means that the table has."""
    rows = run.frame()
    for number in range(4):
        kept = eblime.load(Path(run.folder) / "explanations" / f"{number}-0.eblime")

        means = rows[rows["input"] == number].sort_values("place")["mean"]
        np.testing.assert_allclose(kept.posterior.mean, means, rtol=1e-9)


def test_a_run_without_checksums_is_refused_with_advice():
    """Runs of version 0.1.0 have none."""
    with pytest.raises(ValueError, match=r"without checksums. Repeat the run, or read its part-"):
        eblime.open_run(RUNS / "0.1.0")
