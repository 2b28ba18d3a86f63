"""Games: predictions and stored values as functions of coalitions, and shapiq."""

from __future__ import annotations

import sys
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest

import eblime
from eblime.core.indices import shapley
from eblime.core.quadrature import exact_values
from eblime.designs.masks import exhaustive
from eblime.games import PLAYERS, stored_game

WORDS = ["red", "green", "blue", "black", "white"]
ALL = exhaustive(np.random.default_rng(0), 0, len(WORDS))


class Counted:
    """A model of texts that counts its inputs."""

    def __init__(self) -> None:
        self.n, self.batches = 0, 0

    def __call__(self, texts: list[str]) -> np.ndarray:
        """Two outputs."""
        self.n += len(texts)
        self.batches += 1
        both = [("red" in t and "blue" in t) + 0.5 * ("black" in t) for t in texts]
        return np.column_stack([both, 2 - np.array(both)])


def by_hand(masks: np.ndarray) -> np.ndarray:
    """The first output."""
    return masks[:, 0] * masks[:, 2] + 0.5 * masks[:, 3]


def test_a_game_scores_coalitions_and_asks_each_once() -> None:
    """Batches, a count of the calls, and no call for what is known."""
    model = Counted()
    played = eblime.game(model, " ".join(WORDS), target=0)
    found = played(ALL.astype(bool))

    np.testing.assert_allclose(found, by_hand(ALL))
    assert played.n_players == 5
    assert list(played.players) == [f"word {word!r}" for word in WORDS]
    assert played.calls == model.n == 32
    assert model.batches < 10
    np.testing.assert_allclose(played(ALL[::-1]), by_hand(ALL[::-1]))
    assert played.calls == model.n == 32
    assert repr(played) == "Game(n_players=5, calls=32)"


def test_repeats_within_a_call_and_single_coalitions_are_free() -> None:
    """The input itself is asked once, to find the highest output."""
    played = eblime.game(Counted(), " ".join(WORDS))
    first = np.array([True, False, True, False, False])

    np.testing.assert_allclose(played(np.stack([first] * 4)), [1, 1, 1, 1])
    assert played.calls == 2
    np.testing.assert_allclose(played(first), [1])
    np.testing.assert_allclose(played(np.ones(5)), [1.5])
    assert played.calls == 2


def test_a_cache_answers_without_the_model(tmp_path) -> None:
    """A second game with the same cache asks nothing, except for the answer that is verified."""
    cache = eblime.AnswerCache(tmp_path / "answers.db", model_id="words")
    first = eblime.game(Counted(), " ".join(WORDS), cache=cache)(ALL)
    model = Counted()
    second = eblime.game(model, " ".join(WORDS), cache=cache)

    np.testing.assert_array_equal(second(ALL), first)
    assert second.calls == model.n == 1
    for coalition in ALL:
        second(coalition)
    assert model.n == 1


def test_images_and_settings_of_the_explainer() -> None:
    """The class is chosen by the input; an explainer brings its settings."""
    image = np.random.default_rng(0).integers(1, 256, size=(8, 8, 3), dtype=np.uint8)
    grid = ("grid", {"rows": 2, "columns": 2})

    def mean(batch: np.ndarray) -> np.ndarray:
        return batch.reshape(len(batch), -1).mean(axis=1)

    played = eblime.game(mean, image, segmentation=grid, hide=0)
    explainer = eblime.ImageExplainer(lambda batch: 0 * mean(batch), segmentation=grid, hide=0)
    other = eblime.game(mean, image, explainer=explainer)

    assert played(np.zeros(4)) == 0
    np.testing.assert_array_equal(played(np.eye(4)), other(np.eye(4)))
    assert played(np.eye(4)).sum() == pytest.approx(image.mean())


def test_rows_without_a_background_and_wrong_shapes_are_refused() -> None:
    """Rows without a background and wrong shapes are refused."""
    for x in (np.ones(3), [1.0, 2.0, 3.0]):
        with pytest.raises(ValueError, match="`background` must be given for a row"):
            eblime.game(lambda x: x[:, 0], x)
    played = eblime.game(Counted(), " ".join(WORDS))
    for wrong in (np.ones((2, 4)), np.full((1, 5), 0.5), np.ones((1, 1, 5))):
        with pytest.raises(ValueError, match=r"`coalitions` must be True or False"):
            played(wrong)
    with pytest.raises(TypeError, match="`explainer` must be an explainer such as"):
        eblime.game(Counted(), "a b", explainer="text")
    assert played.calls == 0


def test_a_stored_game_is_a_model() -> None:
    """Values in counting order: 1 for the first two together, and 1/4 for each player."""
    masks = exhaustive(np.random.default_rng(0), 0, 3)
    table = np.zeros(8)
    for size in range(4):
        for players in combinations(range(3), size):
            both = float(0 in players and 1 in players)
            table[sum(2**j for j in players)] = both + 0.25 * size
    game = stored_game(table)
    e = eblime.Explainer(game, PLAYERS, method="quadrature").explain(game)

    np.testing.assert_allclose(e.importances("shapley").mean, [0.75, 0.75, 0.25])
    np.testing.assert_array_equal(game(masks), masks[:, 0] * masks[:, 1] + 0.25 * masks.sum(axis=1))
    assert list(game.players) == ["player 0", "player 1", "player 2"]


def test_strange_games_are_refused() -> None:
    """Another number of values, and values that are not finite."""
    for values in (np.zeros(6), np.zeros((2, 2)), [1.0], [0.0, np.nan]):
        with pytest.raises(ValueError, match=r"`values` must be 2\^p finite numbers"):
            stored_game(values)


@pytest.fixture
def shapiq(monkeypatch):
    """A stand-in that keeps what it is given."""
    stand_in = SimpleNamespace(InteractionValues=lambda **given: SimpleNamespace(**given))
    monkeypatch.setitem(sys.modules, "shapiq", stand_in)


def explained() -> eblime.Explanation:
    """All masks of five words."""
    return eblime.TextExplainer(Counted(), n_masks=32).explain(" ".join(WORDS), target=0)


def test_values_for_shapiq(shapiq) -> None:
    """Single players and pairs, with the score of nothing as baseline."""
    one, two = explained().to_shapiq(), explained().to_shapiq("banzhaf", order=2)

    assert (one.index, one.max_order, one.min_order, one.n_players) == ("SV", 1, 0, 5)
    truth = exact_values(ALL, by_hand(ALL), shapley(5))
    np.testing.assert_allclose(one.values, [0.0, *truth], atol=1e-9)
    assert not one.estimated
    assert two.index == "BII"
    assert two.values[two.interaction_lookup[0, 2]] == pytest.approx(1)
    assert len(two.values) == 1 + 5 + 10


@pytest.mark.parametrize("index", ["shapley", "banzhaf"])
def test_the_baseline_of_a_row_for_shapiq_is_the_mean_score_of_the_background(
    shapiq, index
) -> None:
    """It is exact."""
    table = np.random.default_rng(0).normal(size=(60, 3))
    explainer = eblime.TabularExplainer(lambda rows: 50 + rows @ [1, 2, 0], table)
    found = explainer.explain(table[0], rng=0).to_shapiq(index)

    assert found.baseline_value == found.values[0]
    assert found.baseline_value == pytest.approx(50 + (table @ [1, 2, 0]).mean(), abs=1e-12)


def test_a_row_is_a_game_if_hidden_columns_come_from_the_background() -> None:
    """The value of a coalition is the mean over the background."""
    table = np.random.default_rng(0).normal(size=(20, 3))
    model = lambda rows: rows[:, 0] * rows[:, 1] + rows[:, 2]  # noqa: E731
    explainer = eblime.TabularExplainer(model, table)
    found = eblime.game(model, table[3], explainer=explainer)([True, False, False])

    mixed = table.copy()
    mixed[:, 0] = table[3, 0]
    np.testing.assert_allclose(found, model(mixed).mean())


def test_what_shapiq_has_no_name_for_is_refused(shapiq) -> None:
    """What shapiq has no name for is refused."""
    with pytest.raises(ValueError, match="`index` must be one of 'banzhaf', 'shapley'"):
        explained().to_shapiq("lime")
    with pytest.raises(ValueError, match="`order` must be 1 or 2; got 3"):
        explained().to_shapiq(order=3)


def test_players_may_be_a_number_or_names() -> None:
    """A number of NumPy too."""
    explainer = eblime.Explainer(lambda masks: masks.sum(axis=1), PLAYERS, n_masks=8)

    assert list(explainer.explain(np.int64(3)).features) == ["player 0", "player 1", "player 2"]
    assert list(explainer.explain(["ann", "bob"]).features) == ["ann", "bob"]


@pytest.mark.parametrize("x", [True, 0, -1, 2.5, "ann", None, []])
def test_inputs_without_players_are_refused(x: object) -> None:
    """A string is not a list of players, and there must be one at least."""
    explainer = eblime.Explainer(lambda masks: masks.sum(axis=1), PLAYERS, n_masks=8)
    with pytest.raises((TypeError, ValueError), match="`x` must"):
        explainer.explain(x)


def test_a_missing_shapiq_names_the_extra(monkeypatch) -> None:
    """A missing shapiq names the extra."""
    monkeypatch.setitem(sys.modules, "shapiq", None)
    with pytest.raises(ImportError, match=r"pip install 'eblime\[shapiq\]'"):
        explained().to_shapiq()


def test_the_real_shapiq_takes_games_and_gives_the_same_values() -> None:
    """An approximator with room for all coalitions."""
    shapiq = pytest.importorskip("shapiq", exc_type=ImportError)
    played = eblime.game(Counted(), " ".join(WORDS), target=0)
    found = shapiq.KernelSHAP(n=5).approximate(budget=32, game=played)
    truth = exact_values(ALL, by_hand(ALL), shapley(5))
    ours = explained()

    for j in range(5):
        assert found[(j,)] == pytest.approx(truth[j], abs=1e-6)
        assert ours.to_shapiq()[(j,)] == pytest.approx(truth[j], abs=1e-6)
    assert ours.to_shapiq("shapley", order=2)[(0, 2)] == pytest.approx(1)
    whole = shapiq.ExactComputer(n_players=5, game=played)("SII", order=2)
    for pair in combinations(range(5), 2):
        assert ours.to_shapiq(order=2)[pair] == pytest.approx(whole[pair], abs=1e-6)
