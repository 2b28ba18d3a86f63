"""What a page and a terminal say about a posterior over functions of the mask."""

from __future__ import annotations

import numpy as np
import pytest

import eblime
from eblime.reporting.page import page_data, settings
from eblime.results.notes import fit_sentence, notes

TEXT = "red green blue black white grey pink brown"


def pair(texts: list[str]) -> np.ndarray:
    """Two words together, and one alone."""
    return np.array([("red" in t and "blue" in t) + 0.4 * ("pink" in t) for t in texts], float)


def explained(**changes: object) -> eblime.Explanation:
    """A text of eight words by Quadrature."""
    made = {"n_masks": 80, "method": "quadrature"} | changes
    return eblime.TextExplainer(pair, **made).explain(TEXT)


@pytest.mark.parametrize("own", ["lime", "shapley"])
def test_the_page_has_the_numbers_of_every_index(own) -> None:
    """The page has the numbers of every index."""
    e = explained(method=eblime.Quadrature(index=own))
    data = page_data(e, 5)

    assert list(data["indices"]) == ["lime", "banzhaf", "shapley"]
    for name, numbers in data["indices"].items():
        post = e.importances(name)
        assert sorted(numbers["index"]) == sorted(data["index"])
        np.testing.assert_allclose(numbers["mean"], post.mean[numbers["index"]], rtol=1e-4)
        np.testing.assert_allclose(numbers["sd"], post.sd[numbers["index"]], rtol=1e-2, atol=1e-9)
    assert data["indices"][own]["mean"] == data["mean"]


def test_a_kernel_that_is_not_stored_leaves_lime_out() -> None:
    """A kernel that is not stored leaves lime out."""
    e = explained(method=eblime.Quadrature(index="shapley"), kernel=lambda z: z.mean(axis=1) + 1)
    loaded = e.refit(eblime.Quadrature(index="banzhaf"))

    assert list(page_data(loaded, 5)["indices"]) == ["banzhaf", "shapley"]


def test_other_methods_and_many_features_have_one_index() -> None:
    """Other methods and many features have one index."""
    many = eblime.TextExplainer(
        lambda texts: [len(t) for t in texts], n_masks=200, method="quadrature"
    ).explain(" ".join(f"w{k}" for k in range(70)))

    assert "indices" not in page_data(explained(method="eblime"), 5)
    assert "indices" not in page_data(many, 5)


def test_a_page_with_three_indices_stays_small() -> None:
    """Three times the numbers, not three times the page."""
    e = explained()

    assert len(e.to_html()) < len(e.refit("eblime").to_html()) + 40_000


def test_sentences_are_not_about_a_linear_fit() -> None:
    """Sentences are not about a linear fit."""
    e = explained()

    assert fit_sentence(e).startswith("The score of a mask that was not asked is predicted with")
    assert "A straight line explains" in fit_sentence(e)
    assert notes(e) == []
    assert e.estimand in str(e).replace("\n", " ")
    assert e.estimand in str(e.refit("eblime")).replace("\n", " ")
    shapley = e.refit(eblime.Quadrature(index="shapley"))
    assert "Importances are Shapley values" in str(shapley)


def test_all_masks_are_said_to_be_exact() -> None:
    """All masks are said to be exact."""
    e = explained(n_masks=256)

    assert notes(e) == ["The model was asked about all 256 masks: the importances are exact."]
    assert fit_sentence(e).startswith("A straight line explains")


def test_noise_is_hard_to_predict() -> None:
    """A note says why the intervals are wide."""
    rng = np.random.default_rng(0)
    e = eblime.TextExplainer(
        lambda texts: rng.normal(size=len(texts)), n_masks=80, method="quadrature"
    ).explain(TEXT)

    assert "hard to predict" in notes(e)[0]


def test_rounds_are_described() -> None:
    """Rounds are described."""
    made = dict(settings(explained(design="adaptive")))

    assert made["Masks"].endswith("chosen in rounds where they narrow the intervals most")
