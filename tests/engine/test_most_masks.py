"""Methods that take a limited number of masks."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import pytest

import eblime

CALLS: list[int] = []
LONG = " ".join(f"word{k}" for k in range(20))


def model(texts: list[str]) -> np.ndarray:
    """Length, with a count of the calls."""
    CALLS.append(len(texts))
    return np.array([len(text) for text in texts], dtype=float)


def test_too_many_masks_are_refused_before_the_model_is_called() -> None:
    """Too many masks are refused before the model is called."""
    explainer = eblime.TextExplainer(model, method="quadrature", n_masks=5_000)
    CALLS.clear()

    with pytest.raises(ValueError, match=r"at most 3,000 for Quadrature.*2\^20.*got 5,000"):
        explainer.explain(LONG)
    assert not CALLS


@pytest.mark.parametrize("n_masks", [4_096, 5_000])
def test_all_masks_are_allowed(n_masks) -> None:
    """All masks of twelve words are more than 3,000, and need no fit."""
    text = " ".join(LONG.split()[:12])
    found = eblime.TextExplainer(model, method="quadrature", n_masks=n_masks).explain(text)

    assert found.exhaustive
    np.testing.assert_array_equal(found.posterior.sd, 0)


def test_a_budget_that_has_no_room_for_all_masks_is_refused() -> None:
    """All masks cannot be asked with fewer calls."""
    text = " ".join(LONG.split()[:12])
    explainer = eblime.TextExplainer(
        model, method="quadrature", n_masks=5_000, calls=eblime.Calls(max_calls=3_500)
    )

    with pytest.raises(ValueError, match="at most 3,000"):
        explainer.explain(text)


def test_a_stop_rule_has_a_smaller_budget() -> None:
    """The largest number of masks is that of the method, without an error."""
    asked = []

    def never(posterior, answers):
        asked.append(answers.n_masks)
        return "enough" if answers.n_masks > 200 else None

    explainer = eblime.TextExplainer(model, method="quadrature")
    found = explainer.explain(LONG, until=never, max_masks=100_000)

    assert found.provenance["stopped"] == "enough"
    assert max(asked) <= 3_000


@dataclass(frozen=True)
class Small:
    """A method that takes few masks."""

    name = "small"
    most_masks = 100

    def fit(self, rng, answers):
        """As EBLIME does."""
        return eblime.EBLIME().fit(rng, answers)


@pytest.mark.parametrize(("max_masks", "asked"), [(127, 100), (128, 128)])
def test_a_stop_rule_asks_all_masks_where_there_is_room_for_them(max_masks, asked) -> None:
    """Of seven words there are 128 masks: more than the method takes, unless they are all."""
    text = " ".join(LONG.split()[:7])
    explainer = eblime.TextExplainer(model, method=Small(), design="bernoulli")
    found = explainer.explain(text, until=lambda *_: None, max_masks=max_masks)

    assert len(found.masks) == asked
    assert found.exhaustive == (asked == 128)


def test_a_stop_rule_asks_no_more_than_the_method_takes_by_a_function() -> None:
    """A function that draws masks may leave some out, and the others must be few enough."""
    seen = []

    def draw(rng, n, p):
        seen.append(n)
        return rng.integers(0, 2, size=(n, p))

    explainer = eblime.TextExplainer(model, method="quadrature", design=draw)
    explainer.explain(" ".join(LONG.split()[:12]), until=lambda posterior, answers: "enough")

    assert seen == [3_000]


def test_more_masks_than_the_method_takes_cannot_be_added() -> None:
    """Nothing is asked before the refusal."""
    found = eblime.TextExplainer(model, method="quadrature", n_masks=100).explain(LONG)
    CALLS.clear()

    with pytest.raises(ValueError, match="at most 3,000"):
        found.more(2_950)
    assert not CALLS


def test_tables_with_few_features_ask_about_every_mask_once() -> None:
    """The 2^4 masks are few, however many are allowed."""
    rows = np.random.default_rng(0).normal(size=(200, 4))
    explainer = eblime.TabularExplainer(lambda x: x[:, 0], rows, n_masks=3_500, method="quadrature")
    found = explainer.explain(rows[0])

    assert found.exhaustive
    assert len(found.masks) == 16


class Forties:
    """A design of one's own that asks for 40 masks at a time."""

    def next(self, rng, answers):
        """Forty fair masks."""
        return rng.integers(0, 2, size=(40, answers.n_features)).astype(float)


@pytest.mark.parametrize("limit", [100, 120, 121])
def test_the_last_round_of_a_design_is_cut_to_the_limit(limit) -> None:
    """With a rule that is never reached."""
    explainer = eblime.TextExplainer(model, design=Forties())
    found = explainer.explain(LONG, until=lambda posterior, answers: None, max_masks=limit)

    assert len(found.masks) == limit
    assert found.provenance["rounds"] == -(-limit // 40)


def test_ctrl_c_in_a_later_round_keeps_the_earlier_ones() -> None:
    """They are enough for a fit, so the round needs no answer of its own."""
    asked = []

    def interrupted(texts: list[str]) -> list[int]:
        asked.extend(texts)
        if len(asked) > 46:
            raise KeyboardInterrupt
        return [len(text) for text in texts]

    calls = eblime.Calls(batch_size=5, partial=True)
    explainer = eblime.TextExplainer(interrupted, design=Forties(), calls=calls)
    found = None
    with suppress(KeyboardInterrupt):  # it would end all tests
        found = explainer.explain(LONG, until=lambda posterior, answers: None, max_masks=200)

    assert found is not None
    assert 40 <= len(found.masks) <= 46
    assert "interrupted" in found.provenance["stopped"]
