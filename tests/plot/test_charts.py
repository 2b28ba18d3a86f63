"""Importances against the kernel width, and the map of interactions."""

from __future__ import annotations

import numpy as np
import pytest

import eblime

TEXT = "red green blue black white grey pink"


def score(texts: list[str]) -> np.ndarray:
    """A word that matters, and a pair."""
    return np.array([0.5 * ("red" in t) + ("green" in t and "blue" in t) for t in texts], float)


@pytest.fixture(scope="module")
def explanation() -> eblime.Explanation:
    """Forty masks of seven words."""
    settings = {"method": "quadrature", "kernel": "cosine"}
    return eblime.TextExplainer(score, n_masks=40, **settings).explain(TEXT)


def test_a_line_and_a_band_for_each_feature_and_the_width_used(explanation) -> None:
    """The curve passes through the importance at the width used."""
    ax = explanation.plot("width", top=3, widths=[0.5, 0.25, 0.1])

    assert ax.get_xscale() == "log"
    assert len(ax.collections) == 3
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels[-1] == "0.25, used"
    largest = int(np.argmax(np.abs(explanation.posterior.mean)))
    line = next(line for line in ax.lines if line.get_label() == explanation.features[largest])
    assert list(line.get_xdata()) == [0.1, 0.25, 0.5]
    assert line.get_ydata()[1] == pytest.approx(explanation.posterior.mean[largest])


def test_widths_of_a_regression(explanation) -> None:
    """The answers of any method serve."""
    ax = explanation.refit("eblime").plot("width", top=2)

    assert len(ax.lines[0].get_xdata()) == 21
    assert "EBLIME" in ax.get_title(loc="left")


def test_a_kernel_without_width_is_refused() -> None:
    """A kernel without width is refused."""
    found = eblime.TextExplainer(score, n_masks=40, kernel="uniform").explain(TEXT)

    with pytest.raises(ValueError, match="needs an explanation with an ExponentialKernel"):
        found.plot("width")


def test_the_ridge_parameter_of_quadrature_is_refused(explanation) -> None:
    """Quadrature has none."""
    with pytest.raises(ValueError, match="Quadrature has no ridge parameter"):
        explanation.plot("lambda")


def test_the_map_of_interactions_fades_what_is_uncertain(explanation) -> None:
    """Symmetric, grey on the diagonal, and the pair is the strongest colour."""
    found = explanation.interactions()
    image = found.plot().images[0].get_array()

    np.testing.assert_allclose(image, image.transpose(1, 0, 2))
    diagonal = image[np.arange(7), np.arange(7)]
    assert (diagonal == diagonal[0]).all()
    strength = 1 - np.asarray(image)[..., :3].min(axis=2)
    strength[np.arange(7), np.arange(7)] = 0
    assert strength[1, 2] == strength.max()
    assert np.sort(strength.ravel())[-3] < 0.5 * strength.max()


def test_the_map_shows_the_features_that_interact_most(explanation) -> None:
    """The map shows the features that interact most."""
    ax = explanation.interactions().plot(top=2)

    assert [t.get_text() for t in ax.get_yticklabels()] == ["word 'green'", "word 'blue'"]
