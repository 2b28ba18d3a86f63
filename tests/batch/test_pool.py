"""`Run.pool`: a second pass over a run, in which its inputs share a prior."""

import json

import numpy as np
import pytest
from many import OTHERS, ROWS
from numpy.testing import assert_array_equal

import eblime
from eblime.batch.overview import overview

pytest.importorskip("pyarrow", reason="pyarrow is not installed")


def score(rows):
    """Mostly positive effects, and one interaction."""
    if (rows == ROWS[3]).all(axis=1).any():
        raise ZeroDivisionError("none")
    return rows @ [2.0, 1.0, 0.5, 0.2, 0.0] + rows[:, 0] * rows[:, 1]


def explain(folder, **settings):
    """A run over 24 rows with few masks; one row fails."""
    explainer = eblime.TabularExplainer(score, OTHERS, n_masks=20, method=eblime.EBLIME())
    return eblime.explain_many(explainer, ROWS, folder, progress=False, part_size=10, **settings)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run in a folder that no test changes, except that all pool it."""
    return explain(tmp_path_factory.mktemp("pool") / "run")


def test_a_pooled_run_is_a_run(run):
    """It has the same inputs, failures and quantity, and other intervals; it can be opened."""
    pooled = run.pool()
    before, after = run.frame(), pooled.frame()
    again = eblime.open_run(run.folder / "pooled")

    same = ["input", "name", "target", "label", "feature", "value", "prediction", "estimate", "se"]
    assert before[same].equals(after[same])
    assert (after["mean"] != before["mean"]).mean() > 0.9
    assert pooled.failures().equals(run.failures())
    assert len(run.failures()) == 1
    assert again.frame().equals(after)
    assert again.settings == run.settings | {"pooled": 23}
    assert pooled.summary()["feature"].tolist()[0] == run.summary()["feature"].tolist()[0]
    assert "Run “pooled”" in overview(pooled)


def test_its_explanations_say_so(run):
    """Provenance and method have the number of inputs; another fit does not."""
    alone, found = run.explanation(7), run.pool().explanation(7)

    assert found.provenance["pooled"] == "pooled over 23 inputs"
    assert found.posterior.method == "EBLIME (pooled over 23 inputs)"
    assert found.estimand == alone.estimand
    assert_array_equal(found.scores, alone.scores)
    assert json.loads(found.to_json())["provenance"]["pooled"] == found.provenance["pooled"]
    assert "pooled" not in found.refit("eblime").provenance
    assert_array_equal(found.refit("eblime").posterior.mean, alone.posterior.mean)


@pytest.mark.slow
def test_workers_and_repeats_change_no_number(run, tmp_path):
    """Two workers, and a second call, give the same numbers to the last bit."""
    two = explain(tmp_path / "two", workers=2, pool=True)

    assert two.folder == tmp_path / "two" / "pooled"
    assert two.frame().equals(run.pool().frame())
    assert run.pool().frame().equals(run.pool().frame())


def test_a_prior_is_learnt_for_every_column(run, tmp_path):
    """Columns have their own law in every row, and words of texts share one."""
    texts = [f"good day number {k}" for k in range(4)]
    words = eblime.TextExplainer(lambda texts: [len(t) for t in texts], n_masks=10)
    said = eblime.explain_many(words, texts, tmp_path / "said", pool=True, progress=False)
    columns, alike = (found.explanation(1).method.pooled.weights for found in (run.pool(), said))

    assert np.ptp(columns, axis=0).max() > 0.01
    assert np.ptp(alike, axis=0).max() == 0


def test_a_run_that_was_resumed_is_pooled_again(tmp_path):
    """Finished parts first, then all; the older results are replaced."""
    part = explain(tmp_path / "run")
    for file in (tmp_path / "run").glob("part-000001-*"):
        file.unlink()
    with pytest.warns(UserWarning, match="14 of 24 inputs"):
        few = eblime.open_run(part.folder).pool()
    assert few.settings["pooled"] == few.frame()["input"].nunique() == 13
    assert explain(tmp_path / "run").pool().settings["pooled"] == 23


def test_what_cannot_be_pooled(run, tmp_path):
    """Explanations that are not saved, other methods, and a folder with another run."""
    with pytest.raises(ValueError, match="23 of 23 are not saved"):
        explain(tmp_path / "few", keep=False).pool()
    lime = eblime.TabularExplainer(lambda rows: rows[:, 0], OTHERS, n_masks=20, method="lime")
    other = eblime.explain_many(lime, ROWS[:3], tmp_path / "lime", progress=False)
    with pytest.raises(ValueError, match=r"needs a run of EBLIME\(\)"):
        other.pool()
    mine = explain(tmp_path / "mine")
    explain(tmp_path / "mine" / "pooled", rng=1)
    with pytest.raises(ValueError, match="seed=1"):
        mine.pool()
