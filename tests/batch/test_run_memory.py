"""Runs without a folder, runs that replace another one, and the class that a run explains."""

import copy
import gc
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import eblime
from eblime.batch import Workers
from tests.batch.many import ROWS, make

SETTINGS = {"n_masks": 30, "method": "bayeslime", "progress": False}


def classes(n):
    """A model of n outputs, of which the last is the highest for every row."""
    return lambda rows: rows[:, :1] * np.arange(n)[None] / n


def test_a_run_without_a_folder_has_the_same_results(tmp_path):
    """To the last bit, by the function and by the method of the explainer."""
    explainer = eblime.TabularExplainer(lambda rows: rows[:, 0], ROWS, **SETTINGS)
    stored = eblime.explain_many(explainer, ROWS[:6], tmp_path / "r", part_size=4, rng=3)
    frames = [
        eblime.explain_many(explainer, ROWS[:6], rng=3).frame(),
        explainer.explain_many(ROWS[:6], rng=3, part_size=2).frame(),
        explainer.explain_many(iter(ROWS[:6]), rng=3).frame(),
    ]

    for frame in frames:
        pd.testing.assert_frame_equal(frame, stored.frame(), check_exact=True)


def test_a_run_without_a_folder_leaves_nothing():
    """It stays as long as something reads it; a copy is enough."""
    explainer = eblime.TabularExplainer(lambda rows: rows[:, 0], ROWS, **SETTINGS)
    run = explainer.explain_many(ROWS[:2])
    pieces, folder, other = run.pieces(), Path(run.folder), copy.copy(run)
    del run
    gc.collect()
    assert len(next(pieces)) == 10
    assert other.explanation(1).features
    del pieces, other
    gc.collect()
    assert not folder.exists()


@pytest.mark.slow
def test_the_folder_is_removed_when_python_ends():
    """Also if the run is still there."""
    code = (
        "import eblime, numpy as np\n"
        "if __name__ == '__main__':\n"
        "    e = eblime.TabularExplainer(lambda rows: rows[:, 0], np.eye(3), progress=False)\n"
        "    run = e.explain_many(np.eye(3))\n"
        "    print(run.folder)\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()

    assert "eblime-" in found
    assert not Path(found).exists()


def test_ray_needs_a_folder():
    """Its nodes do not share a temporary one."""
    with pytest.raises(ValueError, match="`out` must be a folder that every node"):
        eblime.explain_many(make, ROWS[:2], workers=Workers(2, engine="ray"))


def test_overwrite_replaces_another_run(tmp_path):
    """Its files go, those of the user stay; without it another run is refused."""
    explainer = eblime.TabularExplainer(lambda rows: rows[:, 0], ROWS, **SETTINGS)
    explainer.explain_many(iter(ROWS[:9]), tmp_path, part_size=4)
    own = [tmp_path / "notes.txt", tmp_path / "explanations" / "notes.txt"]
    for file in own:
        file.write_text("mine", encoding="utf8")
    with pytest.raises(ValueError, match=r"created with count=9.*overwrite=True"):
        explainer.explain_many(ROWS[:2], tmp_path)
    run = explainer.explain_many(ROWS[:2], tmp_path, overwrite=True)

    assert run.frame()["input"].nunique() == 2
    kept = {file.name for file in (tmp_path / "explanations").iterdir()}
    assert kept == {"0-0.eblime", "1-0.eblime", "notes.txt"}
    assert not any((tmp_path / "inputs").iterdir())
    assert all(file.read_text(encoding="utf8") == "mine" for file in own)


@pytest.mark.parametrize(("n", "label"), [(1, "output"), (2, "output 1")])
def test_a_run_explains_the_only_output_or_the_second_class(n, label):
    """Whatever the model predicts."""
    explainer = eblime.TabularExplainer(lambda rows: -classes(n)(rows), ROWS, **SETTINGS)
    run = explainer.explain_many(ROWS[:3])

    assert set(run.frame()["label"]) == {label}
    assert set(run.summary()["output"]) == {label}
    assert f"importance for {label}" in run.plot().get_xlabel()


@pytest.mark.parametrize("labels", [None, ["low", "mid", "high"]])
def test_a_class_of_several_must_be_chosen(labels, tmp_path):
    """Once for the run, before the model is called if the classes are known."""
    called = []

    def model(rows):
        called.append(len(rows))
        return classes(3)(rows)

    explainer = eblime.TabularExplainer(model, ROWS, labels=labels, **SETTINGS)
    with pytest.raises(ValueError, match=r"`targets` must be given for a model with 3 outputs"):
        explainer.explain_many(ROWS, tmp_path / "r")
    assert bool(called) == (labels is None)
    known = labels or ["output 0", "output 1", "output 2"]
    for targets, wanted in (("predicted", [2]), (1, [2]), ([1], [1]), ([0, 2], [0, 2])):
        frame = explainer.explain_many(ROWS[1:3], targets=targets).frame()
        assert set(frame["label"]) == {known[j] for j in wanted}
    if labels:
        assert set(explainer.explain_many(ROWS[:2], targets="mid").frame()["label"]) == {"mid"}


def test_outputs_of_several_questions_are_refused_once():
    """As without a run, but not as a failure of every input."""
    from sklearn.linear_model import LinearRegression

    model = LinearRegression().fit(ROWS, ROWS[:, :2])
    explainer = eblime.TabularExplainer(model, ROWS, **SETTINGS)
    with pytest.raises(ValueError, match="several outputs that are not classes"):
        explainer.explain_many(ROWS[:3])
    run = explainer.explain_many(ROWS[:3], targets=[0])

    assert len(run.failures()) == 0
