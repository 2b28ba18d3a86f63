"""The study of signals: planted truths, and what its tables say."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import eblime
from eblime.designs.masks import exhaustive
from studies import signals, subjects
from studies.games import Game
from studies.populations import best_fit
from studies.signals import plant, planted, planted_summary, real
from studies.subjects import LeagueSubject


@pytest.mark.parametrize("kind", ["channels", "bands"])
def test_the_known_importances_are_the_fit_to_all_masks(rng, kind):
    """The sum over features equals the weighted regression on scores of the model itself."""
    made = plant(kind, rng)
    truth = made.importances()
    masks = exhaustive(rng, 0, len(truth))
    inputs = made.explainer.subject(made.signal).scene.inputs(masks)
    scores = made.model(inputs.reshape(len(masks), *made.signal.shape))

    assert_allclose(truth, best_fit(masks, scores, eblime.kernels.ExponentialKernel()(masks)))
    assert np.abs(truth).argmax() == made.place


@pytest.mark.slow
def test_planted_windows_come_first(rng):
    """Windows have too many masks to fit here: their scores are those of the linear sizes."""
    rows = planted(items=1)
    table = planted_summary(rows)

    assert rows.loc[rows["kind"] == "windows", "right"].all()
    assert table["asked"].tolist() == [100, 200, 500, 20, 40, 64, 50, 100, 200]
    assert table["coverage"].between(0.5, 1).all()


def test_real_tables_have_both_means_and_their_gap(monkeypatch):
    """An additive score: the order of eblime cannot be beaten."""
    slopes = np.linspace(1, 2, 8)
    game = Game(score=lambda masks: masks @ slopes, n_features=8)
    monkeypatch.setitem(
        subjects.SUBJECTS, "made-up", lambda number: LeagueSubject(kind="signal", game=game)
    )
    monkeypatch.setattr(signals, "SIGNALS", {"made-up": None})
    monkeypatch.setattr(signals, "METHODS", ("eblime", "random"))
    table = real(n=60, items=3)

    assert set(table["measure"]) == {"insertion", "deletion"}
    assert (table["gap"] <= 0).all()
    sign = np.where(table["measure"] == "insertion", 1, -1)
    assert_allclose(table["gap"], sign * (table["theirs"] - table["eblime"]))


def test_times_have_a_line_for_each_package(monkeypatch):
    """Ours is compared with each; volumes are measured in another process."""
    pytest.importorskip("torch")
    monkeypatch.setattr(signals, "find_spec", lambda name: None)
    monkeypatch.setattr(signals, "SAMPLES", 200)
    table = signals.signal_times(1)

    assert isinstance(table, pd.DataFrame)
    assert table["what"].tolist() == ["signal, eblime"]
    assert table["ours_over_theirs"].tolist() == [1.0]
