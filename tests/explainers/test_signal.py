"""`SignalExplainer` with the rest of the library: files, rules, methods, games, exports, runs."""

import importlib.util
import json

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import eblime

SIGNAL = np.random.default_rng(0).normal(size=(2, 120))
CUT = ("windows", {"n": 12})


def power(batch):
    """The third window decides."""
    return (batch[:, :, 20:30] ** 2).mean(axis=(1, 2))


@pytest.fixture(scope="module")
def explainer():
    """With few masks."""
    return eblime.SignalExplainer(power, CUT, n_masks=200, rate=10)


@pytest.mark.parametrize("segmentation", [CUT, "cells", "channels", ("bands", {"n": 5})])
@pytest.mark.parametrize("hide", ["bridge", "mean", "zero", "noise", 0.5])
def test_files_keep_explanations(tmp_path, segmentation, hide):
    """All kinds of features, all ways to hide."""
    if segmentation == "channels" and hide == "bridge":
        hide = lambda signal: np.stack([0 * signal, signal[:, ::-1]])  # noqa: E731
    e = eblime.SignalExplainer(power, segmentation, hide, n_masks=60).explain(SIGNAL)
    loaded = eblime.load(e.save(tmp_path / "e.eblime"))

    assert loaded.features == e.features
    assert_array_equal(loaded.scene.hidden, e.scene.hidden)
    assert loaded.to_json() == e.to_json()


def test_rules_methods_and_more(explainer):
    """A stop rule, `Quadrature`, `more`, several methods, a game and its values."""
    e = explainer.explain(SIGNAL, until=eblime.TopK(1), max_masks=1000)
    assert e.provenance["reached"]
    assert e.as_list(top=1)[0][0] == "2.0-3.0 s"
    assert len(e.more(20).masks) == len(e.masks) + 20
    quad = eblime.SignalExplainer(power, CUT, n_masks=100, method="quadrature").explain(SIGNAL)
    assert np.argmax(abs(quad.posterior.mean)) == 2
    both = eblime.compare(None, SIGNAL, ["eblime", "lime"], explainer=explainer)
    assert both["lime"].features == both["eblime"].features
    found = eblime.game(power, SIGNAL, explainer=explainer)
    shown = np.ones((1, 12))
    assert_allclose(found(shown), power(SIGNAL[None]))


def test_bands_keep_the_ends_of_their_intervals():
    """The edges of a band have other names than the ends of an interval."""
    e = eblime.SignalExplainer(power, ("bands", {"n": 4}), rate=100).explain(SIGNAL)
    entry = json.loads(e.to_json())["features"][0]
    j = e.features.index(entry["name"])
    low, high = e.posterior.interval()[j]

    assert_allclose([entry["low"], entry["high"]], [low, high])
    assert (entry["low_frequency"], entry["high_frequency"]) == tuple(e.scene.bands[j])


def test_exports(explainer):
    """ArviZ and shapiq get the names of the windows."""
    e = explainer.explain(SIGNAL)
    assert e.details()["start"][:3] == [0.0, 1.0, 2.0]
    assert len(e.to_frame()) == 12
    if importlib.util.find_spec("arviz"):
        assert e.to_arviz() is not None
    if importlib.util.find_spec("shapiq"):
        assert e.to_shapiq() is not None


def test_runs_share_calls(tmp_path):
    """The numbers of a run are those of single explanations, also with a background set."""
    pytest.importorskip("pyarrow")
    signals = [SIGNAL[0], SIGNAL[1], SIGNAL[0] + 1]
    score = lambda batch: batch[:, 20:30].std(axis=1)  # noqa: E731
    for hide in ("zero", SIGNAL):
        explainer = eblime.SignalExplainer(score, CUT, hide, n_masks=60)
        folder = tmp_path / str(type(hide).__name__)
        run = eblime.explain_many(explainer, signals, folder, workers=1, progress=False)
        assert not len(run.failures())
        means = run.frame().set_index(["input", "feature"])["mean"]
        for k, signal in enumerate(signals):
            rng = np.random.default_rng(np.random.SeedSequence(0, spawn_key=(k,)))
            alone = explainer.explain(signal, rng=rng)
            assert_allclose(means[k][alone.features], alone.posterior.mean, atol=1e-6)
