"""`Explanation.estimand`: one sentence per quantity, the same for the same quantity."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

import eblime
from eblime.compat.lime import LimeTextExplainer
from eblime.designs import bernoulli, sizes

TEXT = "a good film with a very slow story and no end at all"
ROWS = np.random.default_rng(0).normal(size=(200, 3))
LINE = "Importances are coefficients of the linear fit with a free intercept"
ALL = f"{LINE} to the scores of all 2^12 masks, "
KERNEL = "weighted by the exponential kernel on the Euclidean distance, width 2.598."


def mood(texts: list[str]) -> list[float]:
    """A word, and a pair."""
    return [("good" in t) - 0.5 * ("very" in t and "slow" in t) for t in texts]


def product(rows: np.ndarray) -> np.ndarray:
    """An interaction and a term."""
    return rows[:, 0] * rows[:, 1] + rows[:, 2]


def of_text(**settings: object) -> str:
    """The sentence about a text."""
    return eblime.TextExplainer(mood, **{"n_masks": 80, **settings}).explain(TEXT).estimand


def of_row(**settings: object) -> str:
    """The sentence about a row."""
    explainer = eblime.TabularExplainer(product, ROWS, n_masks=60, **settings)
    return explainer.explain(ROWS[0]).estimand


def shown_often(rng: np.random.Generator, n_masks: int, p: int) -> np.ndarray:
    """A design of the user."""
    return (rng.random((n_masks, p)) < 0.9).astype(float)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"design": "bernoulli"},
        {"design": bernoulli},
        {"design": "leverage"},
        {"design": "glime"},
        {"design": "stratified-lime"},
        {"method": "lime"},
        {"method": "baylime"},
        {"method": "quadrature"},
        {"method": "quadrature", "design": "sizes"},
        {"n_masks": 2**12},
    ],
)
def test_one_sentence_for_the_fit_to_all_masks(settings) -> None:
    """Designs that draw evenly or correct their weights, and methods with a free intercept."""
    assert of_text(**settings) == f"{ALL}{KERNEL}"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"design": "sizes"}, "masks, each number of hidden features counting the same, weighted"),
        ({"design": sizes}, "each number of hidden features counting the same"),
        ({"design": "sizes", "n_masks": 2**12}, "each number of hidden features counting the same"),
        ({"design": shown_often}, "masks, as shown_often draws them, weighted"),
        ({"kernel": "uniform"}, "masks, all counting the same."),
        ({"kernel": "shapley"}, "weighted by the Shapley kernel."),
        ({"kernel": lambda masks: masks.mean(axis=1)}, "weighted by a function."),
        ({"kernel": "cosine"}, "the cosine distance, width 0.25."),
        ({"method": "bayeslime"}, "with a penalised intercept"),
        ({"method": "eblime-paper"}, "with no intercept"),
        ({"method": "bayesshap"}, "are Shapley values: the mean change of the score"),
        (
            {"method": eblime.Quadrature(index="banzhaf")},
            "over all masks of the others, each count",
        ),
    ],
)
def test_other_quantities_have_other_sentences(settings, words) -> None:
    """The law of the masks, the weights, the intercept and the index."""
    found = of_text(**settings)

    assert words in found
    assert found != f"{ALL}{KERNEL}"


def test_every_way_to_draw_rows_has_its_sentence() -> None:
    """Another law of the masks or other rows are another quantity: the words differ."""
    ways = [
        {},
        {"rows_per_mask": 5},
        {"method": "bayesshap"},
        {"method": eblime.Quadrature(index="shapley")},
    ]
    found = [of_row(**way) for way in ways]

    assert len(set(found)) == 3  # `BayesSHAP` estimates Shapley values
    assert "the mean over 100 of 200 rows of the background, from which all hid" in found[0]
    assert "the mean over 5 of 200 rows of the background" in found[1]


def test_the_sentence_is_printed_and_on_the_page() -> None:
    """Print, page, notebook and JSON."""
    e = eblime.TextExplainer(mood, n_masks=80).explain(TEXT)

    assert e.estimand in " ".join(str(e).splitlines()[-3:])
    for shown in (e.to_html(), e._repr_html_(), e.to_json()):
        assert e.estimand in shown


def test_sentences_are_printed_on_short_lines_below_the_table() -> None:
    """A line of a note that is longer than the table is cut off by a scroll bar."""
    table = np.random.default_rng(0).random((60, 3))
    e = eblime.TabularExplainer(lambda rows: np.sin(40 * rows.sum(axis=1)), table).explain(table[0])
    lines = str(e).splitlines()

    assert max(map(len, lines)) <= 80
    assert lines[1].startswith("EBLIME")
    assert "rows of the background" in " ".join(lines)


def test_the_replacement_of_lime_has_limes_law() -> None:
    """`compat.lime` draws the number of hidden words."""
    model = lambda texts: np.array([[x, 1 - x] for x in mood(texts)])  # noqa: E731
    found = LimeTextExplainer().explain_instance(TEXT, model, num_samples=100).explanations[1]

    assert "each number of hidden features counting the same" in found.estimand


@pytest.mark.parametrize("value", [None, 7, "", "<function", {"a": 1}, "x" * 10**5, "\x1b[2J", [1]])
def test_any_record_has_a_sentence(value) -> None:
    """Provenance may come from any file."""
    for e in (
        eblime.TextExplainer(mood, n_masks=80).explain(TEXT),
        eblime.TabularExplainer(product, ROWS, n_masks=60).explain(ROWS[0]),
    ):
        read = dict.fromkeys(("hide", "background", "link"), value)  # a file has a dictionary here
        stored = {"design": value, "kernel": value, "input": read}
        found = dataclasses.replace(e, provenance=stored, source=SimpleNamespace()).estimand

        assert found.startswith("Importances are ")
        assert len(found) < 600
        assert found.isprintable()
