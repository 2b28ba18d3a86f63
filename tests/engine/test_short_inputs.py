"""Inputs with few features: all masks are asked, and what is known exactly is not shrunk."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import eblime
from eblime import LIME
from eblime.kernels import as_kernel


def count_good(texts):
    """How often a text has the word."""
    return [float(text.count("good")) for text in texts]


@pytest.mark.parametrize("n_masks", [8, 1000])
@pytest.mark.parametrize("method", ["eblime", "eblime-paper", "bayeslime", "lime"])
@pytest.mark.parametrize("text", ["good", "good film", "a good film"])
def test_short_texts_are_answered_exactly(text, method, n_masks):
    """A linear score of one to three words: importances 1 and 0, however few masks were allowed."""
    e = eblime.TextExplainer(count_good, method=method, n_masks=n_masks).explain(text)
    expected = [float("good" in name) for name in e.features]

    assert e.exhaustive
    assert_allclose(e.posterior.mean, expected, atol=2e-3)
    if e.posterior.has_spread:
        assert np.diff(e.posterior.interval()).max() < 0.005


@pytest.mark.parametrize("name", ["bernoulli", "orthogonal", "leverage", "glime"])
def test_named_designs_ask_all_masks_of_small_images(name):
    """Every design by name asks each mask once where there are no more than wanted."""
    image = np.random.default_rng(0).random((6, 6))
    grid = ("grid", {"rows": 2, "columns": 3})
    model = lambda batch: batch[:, :3].prod(axis=1).sum(axis=1) + batch[:, 5, 5]  # noqa: E731
    e = eblime.ImageExplainer(model, segmentation=grid, design=name, n_masks=64).explain(image)

    assert e.exhaustive
    assert len(e.masks) == 64


@pytest.mark.parametrize("kernel", [None, "cosine", "uniform"])
def test_all_masks_close_on_the_weighted_fit(kernel):
    """With interactions, EBLIME and lime on all masks give the weighted linear fit."""
    score = lambda texts: [("a" in t) * ("b" in t) + ("c" in t) - 0.5 * ("d" in t) for t in texts]  # noqa: E731
    e = eblime.TextExplainer(score, kernel=kernel, tokens="char").explain("abcd")
    rows = np.column_stack([np.ones(16), e.masks])
    weights = as_kernel(kernel)(e.masks)
    exact = np.linalg.solve((rows.T * weights) @ rows, (rows.T * weights) @ e.scores)[1:]

    assert_allclose(e.posterior.mean, exact, atol=1e-12)
    assert_allclose(e.refit("lime").posterior.mean, exact, atol=1e-12)
    assert_allclose(e.posterior.interval().T, [exact, exact], atol=1e-12)


@pytest.mark.parametrize("kernel", ["uniform", "cosine"])
def test_all_masks_of_a_design_with_its_own_law_count_by_that_law(kernel):
    """The design "sizes" hides one to four words equally often, so small masks count more."""
    score = lambda texts: [("a" in t) * ("b" in t) + ("c" in t) - 0.5 * ("d" in t) for t in texts]  # noqa: E731
    explainer = eblime.TextExplainer(
        score, kernel=kernel, tokens="char", design="sizes", n_masks=201, method=LIME(alpha=1e-9)
    )
    e = explainer.explain("abcd")
    number = np.array([1, 4, 6, 4, 1])  # of masks that show 0 to 4 words
    drawn = 200 / 4 / number[e.masks.sum(axis=1).astype(int)]
    drawn[e.masks.all(axis=1)] = 1.0  # the input itself is asked once
    rows = np.column_stack([np.ones(16), e.masks])
    weights = as_kernel(kernel)(e.masks) * drawn
    exact = np.linalg.solve((rows.T * weights) @ rows, (rows.T * weights) @ e.scores)[1:]

    assert e.exhaustive
    assert_allclose(e.posterior.mean, exact, rtol=1e-6)
