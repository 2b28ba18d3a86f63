"""Agreement of repeated runs: indices worked out by hand, and the study."""

import numpy as np
import pytest

from eblime.cli.app import main
from eblime.core.agreement import coefficient_stability, variable_stability
from eblime.evaluation.answers import AnswerTable
from eblime.evaluation.games import Game, game_explainer
from eblime.evaluation.stability import stability


def tables(tmp_path, p=5):
    """A folder of stored answers: two photos that are linear in the mask, and two games."""
    masks = ((np.arange(2**p)[:, None] >> np.arange(p)) & 1).astype(float)
    scores = masks @ np.array([0.5, -0.3, 0.2, 0.05, 0.01])
    np.savez(tmp_path / "imagenet-p13.npz", names=["a", "b"], scores_0=scores, scores_1=-scores)
    np.savez(tmp_path / "games-dev.npz", **{"x/flat": np.ones(2**p), "x/one": scores})
    return tmp_path


def test_variable_stability_by_hand():
    """Three runs of two features each: pairs share 1, 2 and 1 of them."""
    chosen = np.array([[1, 1, 0], [1, 0, 1], [1, 1, 0]], dtype=bool)

    assert variable_stability(chosen) == pytest.approx((1 + 2 + 1) / (3 * 2))
    assert variable_stability(chosen[[0, 0]]) == 1


def test_coefficient_stability_by_hand():
    """Of feature 0 two of three pairs overlap, of feature 1 none; feature 2 is chosen once."""
    ends = np.array(
        [
            [[0, 2], [0, 1], [0, 1]],
            [[1, 3], [9, 9], [9, 9]],
            [[2, 4], [2, 3], [5, 6]],
        ],
        dtype=float,
    )
    ends[2, 0] = [2.5, 4]
    chosen = np.array([[1, 1, 0], [1, 0, 1], [1, 1, 0]], dtype=bool)

    assert coefficient_stability(ends, chosen) == pytest.approx((2 / 3 + 0) / 2)
    assert np.isnan(coefficient_stability(ends[:1], chosen[:1]))


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
    from eblime.datasets.stored import stored_game_names

    monkeypatch.setenv("EBLIME_TABLES", str(tables(tmp_path)))

    assert stored_game_names() == ["x/one"]


def test_missing_tables_say_where_to_look(tmp_path, monkeypatch):
    """The message names the file and the variable."""
    monkeypatch.setenv("EBLIME_TABLES", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"imagenet-p13.npz was not found in .*EBLIME_TAB"):
        stability("stored-photos")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"methods": ["magic"]}, "`methods` must be one of"),
        ({"runs": 1}, "`runs` must be >= 2"),
        ({"top": 0}, "`top` must be >= 1"),
        ({"n": [0]}, "`n` must be >= 1"),
        ({"items": 0}, "`items` must be >= 1"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    """Before any data are loaded."""
    with pytest.raises(ValueError, match=message):
        stability("german", **settings)


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
    folder = tables(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EBLIME_TABLES", "")
    words = ["bench", "stability", "--dataset", "stored-games", "--tables", str(folder), "--n"]
    words += ["20", "--runs", "2", "--jobs", "1", "--method", "lime", "quadrature+adaptive"]
    with pytest.raises(SystemExit) as ended:
        main(words)
    out = capsys.readouterr().out

    assert ended.value.code == 0
    assert "quadrature+adaptive" in out
    assert "vsi" in out
    assert "Every row is in" in out
