"""The league of faithfulness: contestants, subjects and the study, with tiny models."""

import numpy as np
import pandas as pd
import pytest

from studies import contestants, subjects
from studies.__main__ import main
from studies.contestants import CONTESTANTS, available
from studies.faithfulness import faithfulness, paired_gaps, standings
from studies.games import Game
from studies.subjects import LeagueSubject, image_subject, row_subject, text_subject

SLOPES = np.array([0.5, -0.3, 0.2, 0.1, 0.0, -0.05])


def linear(masks):
    """Scores that are a line in the mask."""
    return np.asarray(masks) @ SLOPES


def made_up(number):
    """A subject whose score is a line, with the slopes moved around by the number."""
    return LeagueSubject(
        kind="text",
        game=Game(score=lambda masks: masks @ np.roll(SLOPES, number), n_features=6),
        nearby=lambda rng: Game(score=linear, n_features=6),
    )


def row_of_numbers():
    """A row of ones in a table of zeros and ones, with a word; the score is the same line."""
    columns = [*"abcde", "word"]
    table = pd.DataFrame(np.random.default_rng(1).integers(0, 2, (60, 6)), columns=columns)
    table["word"] = table["word"].map({0: "no", 1: "yes"})
    table.iloc[0] = [1, 1, 1, 1, 1, "yes"]

    def predict(frame):
        return 0.5 + frame.assign(word=frame["word"] == "yes").to_numpy(dtype=float) @ SLOPES

    return row_subject(predict, table, 0, np.random.default_rng(0)).game


@pytest.fixture
def league(monkeypatch):
    """A league with made-up subjects."""
    monkeypatch.setitem(subjects.SUBJECTS, "made-up", made_up)


@pytest.mark.parametrize("name", sorted(CONTESTANTS))
def test_contestants_explain_a_line_within_their_budget(name):
    """All that fit find the largest slopes, and all ask at most n masks and both ends."""
    package = CONTESTANTS[name][1]
    if package is not None:
        pytest.importorskip(package)
    game = row_of_numbers() if name.endswith("-table") else Game(score=linear, n_features=6)
    found = CONTESTANTS[name][0](game, 40, np.random.default_rng(0))
    calls = game.calls
    again = CONTESTANTS[name][0](game.again(), 40, np.random.default_rng(0))

    np.testing.assert_array_equal(found, again)
    assert found.shape == (6,)
    assert calls <= (64 if name.startswith("oracle") else 42)
    if name not in ("random", "rise"):  # which do not fit the line
        assert np.argmax(found) == 0
        assert np.argmin(found) == 1


def test_rise_estimates_half_of_each_slope(rng):
    """The mean score with a feature, less the mean score; five standard errors are 0.02."""
    found = CONTESTANTS["rise"][0](Game(score=linear, n_features=6), 20_000, rng)

    np.testing.assert_allclose(found, SLOPES / 2, atol=0.02)


@pytest.mark.parametrize("name", ["oracle", "oracle-shapley"])
def test_oracles_are_exact(name):
    """Slopes of a line are its Shapley values; for a product, each factor gets one half."""
    game = Game(score=linear, n_features=6)
    product = Game(score=lambda masks: masks[:, 0] * masks[:, 1], n_features=3)
    rng = np.random.default_rng(0)

    np.testing.assert_allclose(CONTESTANTS[name][0](game, 2, rng), SLOPES, atol=2e-3)
    if name == "oracle-shapley":
        np.testing.assert_allclose(CONTESTANTS[name][0](product, 1, rng), [0.5, 0.5, 0], atol=1e-12)


def test_missing_packages_are_left_out_with_a_warning(monkeypatch):
    """The message names the method and the package."""
    monkeypatch.setattr(contestants, "find_spec", lambda name: None)
    with pytest.warns(UserWarning, match=r"'shap' is left out: it needs shap"):
        assert available(["eblime", "shap"]) == ["eblime"]


def test_study_of_a_line(league):
    """Exact methods have no infidelity; the random one does; rows do not depend on the jobs."""
    names = ["eblime", "random", "oracle"]
    found = faithfulness("made-up", n=40, items=4, methods=names, nearby=2)
    table = standings(found).set_index(["method", "measure"])["mean"]

    assert len(found) == 4 * 3
    assert table["eblime", "infidelity"] < 1e-3 < table["random", "infidelity"]
    assert table["oracle", "insertion"] >= table["random", "insertion"]
    assert found[found["method"] == "random"]["calls"].tolist() == [0] * 4
    assert found["sensitivity"].notna().all()
    assert "pgi" not in found
    gaps = paired_gaps(found, "random").set_index(["measure", "other"])["gap"]
    assert gaps["infidelity", "oracle"] > 0
    assert gaps["deletion", "oracle"] > 0


def test_gap_by_hand():
    """Positive where the method is worse, whatever the direction of the measure."""
    rows = [
        {"dataset": "d", "item": k, "method": m, "insertion": i, "deletion": d}
        for m, values in (("a", [(1, 5), (2, 6)]), ("b", [(2, 4), (5, 5)]))
        for k, (i, d) in enumerate(values)
    ]
    gaps = paired_gaps(pd.DataFrame(rows), "a").set_index("measure")

    assert gaps.loc["insertion", "gap"] == 2
    assert gaps.loc["deletion", "gap"] == 1
    # differences 1 and 3: a standard error of 1, and Student's t with one degree of freedom
    assert gaps.loc["insertion", "high"] == pytest.approx(2 + 12.706, abs=1e-3)
    assert gaps.loc["deletion", "low"] == gaps.loc["deletion", "high"] == 1


def test_oracles_are_left_out_of_large_games(monkeypatch):
    """14 features would be 16,384 masks."""
    large = LeagueSubject(kind="image", game=Game(score=lambda masks: masks[:, 0], n_features=14))
    monkeypatch.setitem(subjects.SUBJECTS, "large", lambda number: large)
    found = faithfulness("large", n=20, items=1, methods=["oracle", "rise"], nearby=0)

    assert found["method"].tolist() == ["rise"]


def test_methods_for_tables_are_left_out_of_other_inputs(league):
    """Rows can be drawn only from a table."""
    found = faithfulness("made-up", n=20, items=1, methods=["eblime-table", "rise"], nearby=0)

    assert found["method"].tolist() == ["rise"]
    with pytest.raises(ValueError, match=r"`game` must be about a row of a table"):
        CONTESTANTS["eblime-table"][0](made_up(0).game, 20, np.random.default_rng(0))


def test_lime_explains_rows_with_words(rng):
    """Its tables hold numbers only: words are coded, and the model gets them back."""
    pytest.importorskip("lime")
    jobs = rng.permutation(["cook", "smith", "none"] * 20)
    table = pd.DataFrame({"age": rng.normal(size=60), "job": jobs, "id": np.arange(60)})
    row = int(np.flatnonzero(jobs == "cook")[0])
    subject = row_subject(lambda frame: 1.0 * (frame["job"] == "cook"), table, row, rng)
    found = CONTESTANTS["lime-table"][0](subject.game, 30, rng)

    assert found.argmax() == 1
    assert found[1] > 0.5


def test_rows_count_by_their_share_of_a_mask():
    """Ten rows are asked for one mask, so that 30 rows are three calls."""
    game = row_of_numbers()
    game(np.eye(6)[:2])
    game.row(pd.concat([game.row.own] * 30))

    assert game.calls == 2 + 3
    assert game.again().calls == 0


def test_contestants_share_the_answers_of_the_model():
    """A game that is played again counts its own masks, but asks the model only about new ones."""
    asked = []
    game = Game(score=lambda masks: asked.extend(masks) or masks.sum(axis=1), n_features=3)
    first, second = game.again(), game.again()
    first(np.eye(3))
    second(np.eye(3))

    assert len(asked) == 3
    assert (first.calls, second.calls) == (3, 3)


def test_image_subject_hides_superpixels():
    """The score of a mask is that of the rendered image; a defect can be pointed at."""
    image = np.zeros((16, 16), dtype=np.uint8)
    image[:8] = np.tile([200, 0], 8)

    def model(batch):
        level = batch[:, :8].std(axis=(1, 2)) / 100
        return np.stack([1 - level, level], axis=1)

    subject = image_subject(model, image, superpixels=4, target=1, region=image > 100)
    p = subject.game.n_features
    nearby = subject.nearby(np.random.default_rng(0))

    assert subject.game.full == pytest.approx(1.0)
    assert subject.game(np.zeros((1, p)))[0] < 0.9
    assert nearby.n_features == p
    assert nearby.full != subject.game.full


def test_row_subject_takes_hidden_columns_from_the_table():
    """The score of a mask is the mean over the reference rows; perturbed columns move it."""
    table = pd.DataFrame({"a": [1.0, 3.0] * 30, "b": ["x", "y"] * 30, "c": np.arange(60)})

    def predict(frame):
        return frame["a"].to_numpy() + 10 * (frame["b"] == "x").to_numpy()

    subject = row_subject(predict, table, 0, np.random.default_rng(0))

    assert subject.game.full == 11
    assert subject.game([[1, 1, 0]])[0] == 11  # the column c does not matter
    assert subject.game([[1, 0, 1]])[0] < 11
    assert (subject.predict(np.array([2])) == 11).all()
    assert set(subject.predict(np.array([0]))) == {11, 13}
    assert subject.nearby(np.random.default_rng(1)).full != 11


def test_text_subject_removes_words():
    """The score of a mask is that of the text without the hidden words."""
    subject = text_subject(lambda texts: [len(text.split()) for text in texts], "one two three")

    assert subject.game([[1, 0, 1], [0, 0, 0]]).tolist() == [2, 0]


def test_faithfulness_on_the_command_line(league, tmp_path, capsys):
    """Prints one row per method with standard errors and writes all rows."""
    words = ["faithfulness", "--dataset", "made-up", "--n", "30", "--items", "2", "--nearby", "0"]
    main([*words, "--jobs", "1", "--out", str(tmp_path), "--methods", "eblime", "random"])
    out = capsys.readouterr().out
    (rows,) = tmp_path.glob("*/rows.csv")

    assert "insertion up" in out
    assert "infidelity down" in out
    assert len(rows.read_text().splitlines()) == 5


def test_a_single_input_has_no_standard_error(league, tmp_path, capsys):
    """The table has no brackets then."""
    words = ["faithfulness", "--dataset", "made-up", "--n", "30", "--items", "1", "--nearby", "0"]
    main([*words, "--jobs", "1", "--out", str(tmp_path), "--methods", "random"])
    out = capsys.readouterr().out

    assert "(" not in out.partition("| random |")[2]
    assert "nan" not in out
