"""The study of repeated runs, with tables of all answers."""

import numpy as np
import pytest

from studies.__main__ import main
from studies.games import AnswerTable, Game, game_explainer
from studies.stability import stability


def tables(tmp_path, p=5):
    """A folder of stored answers: two photos that are linear in the mask, and two games."""
    masks = ((np.arange(2**p)[:, None] >> np.arange(p)) & 1).astype(float)
    scores = masks @ np.array([0.5, -0.3, 0.2, 0.05, 0.01])
    np.savez(tmp_path / "imagenet-p13.npz", names=["a", "b"], scores_0=scores, scores_1=-scores)
    np.savez(tmp_path / "games-dev.npz", **{"x/flat": np.ones(2**p), "x/one": scores})
    return tmp_path


def test_linear_answers_are_perfectly_stable(tmp_path, monkeypatch):
    """Any masks give the same line: every run agrees, for every method and design."""
    monkeypatch.setenv("EBLIME_TABLES", str(tables(tmp_path)))
    methods = ["eblime", "quadrature+adaptive", "lime+paired"]
    found = stability("stored-photos", n=(20,), runs=3, methods=methods)

    assert len(found) == 2 * 3
    assert (found[found["method"] == "eblime"]["overlap"] == 1).all()
    assert (found["sign_flips"] == 0).all()
    assert (found[found["method"] == "eblime"]["csi"] == 1).all()
    # the ridge regression of LIME shrinks, and claims no error where all answers are on a line
    assert (found[found["method"] == "lime+paired"]["csi"] == 0).all()
    assert found[found["method"] == "lime+paired"]["claimed"].isna().all()
    assert found[found["method"] == "eblime"]["spread"].max() < 1e-6


def test_constant_games_are_left_out(tmp_path, monkeypatch):
    """A constant game has no importance to agree on."""
    from studies.data.stored import stored_games

    monkeypatch.setenv("EBLIME_TABLES", str(tables(tmp_path)))

    assert list(stored_games()) == ["x/one"]


def test_missing_tables_say_where_to_look(tmp_path, monkeypatch):
    """The message names the file and the variable, and says that the repository has no copy."""
    monkeypatch.setenv("EBLIME_TABLES", str(tmp_path))
    words = r"imagenet-p13.npz was not found in .*EBLIME_TABLES .*part of the repository"
    with pytest.raises(FileNotFoundError, match=words):
        stability("stored-photos")


def test_unknown_methods_and_single_runs_are_refused():
    """Before any data are loaded."""
    with pytest.raises(ValueError, match="`methods` must be one of"):
        stability("german", methods=["magic"])
    with pytest.raises(ValueError, match="`runs` must be >= 2"):
        stability("german", runs=1)


def test_a_study_with_other_tables_has_other_results(tmp_path, monkeypatch):
    """The same call resumes; with other answers in the folder of tables, nothing old is read."""
    monkeypatch.setenv("EBLIME_TABLES", str(tables(tmp_path)))
    how = {"n": [20], "runs": 2, "methods": ["lime"], "items": 1, "out": tmp_path / "out"}
    before = stability("stored-photos", **how)
    stored = dict(np.load(tmp_path / "imagenet-p13.npz"))
    np.savez(tmp_path / "imagenet-p13.npz", **{**stored, "scores_0": stored["scores_0"] ** 2})
    after = stability("stored-photos", **how)

    assert before["spread"][0] != after["spread"][0]
    assert len(list((tmp_path / "out").iterdir())) == 2


def test_game_asks_each_mask_once():
    """Repeats and later calls are answered from what is known."""
    asked = []

    def score(masks):
        asked.append(len(masks))
        return masks.sum(axis=1)

    game = Game(score=score, n_features=3)
    game([[1, 0, 1], [1, 0, 1], [0, 0, 0]])
    game([[0, 0, 0], [1, 1, 1]])

    assert asked == [2, 1]
    assert game.full == 3


def test_table_as_a_question_equals_its_samples(rng):
    """The explainer of a table of answers has the same estimand as a fit to its samples."""
    table = AnswerTable(scores=np.arange(16.0))
    explainer, x, target = table.question(16)
    found = explainer.explain(x, target, 0)

    assert found.exhaustive
    np.testing.assert_allclose(found.posterior.mean, [1, 2, 4, 8], rtol=1e-3)
    assert game_explainer(lambda masks: masks[:, 0]).explain(2).posterior.mean.round(3)[0] == 1


def test_stability_on_the_command_line(tmp_path, monkeypatch, capsys):
    """Several methods with designs, from a folder of stored answers."""
    monkeypatch.setenv("EBLIME_TABLES", str(tables(tmp_path)))
    words = ["stability", "--dataset", "stored-games", "--n", "20", "--runs", "2", "--jobs", "1"]
    main([*words, "--methods", "lime", "quadrature+adaptive", "--out", str(tmp_path / "o")])
    out = capsys.readouterr().out

    assert "| quadrature+adaptive | 20 |" in out
    assert "vsi" in out
    assert "Every row is in" in out
