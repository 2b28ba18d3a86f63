"""Runs with a stop rule: each input stops on its own, and the manifest knows the rule."""

import json

import numpy as np
import pytest

import eblime

WORDS = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen"


def score(texts):
    """A score of two words, and of two words together."""
    both = [0.3 * ("ten" in t and "six" in t) for t in texts]
    return np.array([("two" in t) + 0.5 * ("five" in t) for t in texts]) - both


def explainer():
    """An explainer of texts."""
    return eblime.TextExplainer(score, design="bernoulli")


def test_a_run_stops_each_input_on_its_own(tmp_path):
    """The results are those of explaining each input alone; resuming needs the same rule."""
    texts = [WORDS, f"{WORDS} fifteen sixteen", f"{WORDS} and a few more words"]
    run = eblime.explain_many(
        explainer(), texts, tmp_path / "run", until=eblime.TopK(2), max_masks=800, keep=True
    )
    table = run.frame()
    settings = json.loads((tmp_path / "run" / "manifest.json").read_text())["settings"]

    assert (table["n_masks"] < 800).all()
    assert settings["until"].startswith("TopK(k=2) ")
    assert settings["max_masks"] == 800
    assert "reached" in run.explanation(0).provenance["stopped"]
    again = eblime.explain_many(
        explainer(), texts, tmp_path / "run", until="top2", max_masks=800, keep=True
    )
    assert len(again.frame()) == len(table)
    with pytest.raises(ValueError, match="until"):
        eblime.explain_many(
            explainer(), texts, tmp_path / "run", until="top3", max_masks=800, keep=True
        )
    with pytest.raises(ValueError, match="was created with max_masks=800"):
        eblime.explain_many(explainer(), texts, tmp_path / "run", keep=True)


def test_bad_rules_are_refused_before_anything_is_written(tmp_path):
    """Nothing is asked, and no folder is made."""
    for settings in ({"until": "best"}, {"max_masks": 100}):
        with pytest.raises(ValueError, match="until"):
            eblime.explain_many(explainer(), [WORDS], tmp_path / "run", **settings)
    assert not (tmp_path / "run").exists()
