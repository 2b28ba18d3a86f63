"""Designs that draw unevenly: their weights reach the fit, the file and the next round."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import eblime
from eblime.answers import Proposal
from eblime.kernels import as_kernel

TEXT = "one two three four five six seven eight nine ten"


def score(texts):
    """A score of words, and of one pair of them."""
    return [("two" in t) + 0.5 * ("seven" in t) - 0.3 * ("one" in t and "ten" in t) for t in texts]


def tilted(rng, n_masks, p):
    """Masks that show more than they hide, and the weights that correct for it."""
    masks = (rng.random((n_masks, p)) < 0.7).astype(float)
    return Proposal(
        masks=masks, sampling_weights=np.where(masks == 1, 0.5 / 0.7, 0.5 / 0.3).prod(axis=1)
    )


def test_weights_are_kernel_times_sampling(tmp_path):
    """In the answers, and in the answers of a loaded file."""
    e = eblime.TextExplainer(score, design=tilted, kernel=None, n_masks=300).explain(TEXT)
    loaded = eblime.load(e.save(tmp_path / "e.eblime"))

    assert e.answers.sampling.std() > 0.1
    assert_allclose(e.weights, as_kernel(None)(e.masks) * e.answers.sampling)
    assert_allclose(e.answers.weights / e.answers.sampling, as_kernel(None)(e.masks))
    assert_array_equal(loaded.answers.sampling, e.answers.sampling)
    assert_allclose(loaded.posterior.interval(), e.posterior.interval(), rtol=1e-9)


@pytest.mark.parametrize("design", ["stratified-lime", "leverage"])
def test_named_designs_explain_texts(design):
    """The whole way through the loop, with intervals that hold the fit to all masks."""
    every = eblime.TextExplainer(score, design="exhaustive", n_masks=2000).explain(TEXT)
    e = eblime.TextExplainer(score, design=design, n_masks=400).explain(TEXT)
    low, high = e.posterior.interval(0.9999).T

    assert len(e.masks) == 400
    assert not e.exhaustive
    assert ((low <= every.posterior.mean) & (every.posterior.mean <= high)).all()


@pytest.mark.parametrize(
    ("weights", "message"),
    [(np.ones(3), "one entry for each"), (-np.ones(20), ">= 0"), (np.full(20, np.nan), "finite")],
)
def test_bad_weights_are_refused(weights, message):
    """Wrong length, negative, not finite: before the model is asked."""

    def never(texts):
        raise AssertionError("the model was asked")

    def bad(rng, n_masks, p):
        return Proposal(masks=rng.integers(0, 2, (20, p)).astype(float), sampling_weights=weights)

    with pytest.raises(ValueError, match=message):
        eblime.TextExplainer(never, design=bad).explain(TEXT)
