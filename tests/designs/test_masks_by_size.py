"""Designs by size: the law of the kernel, and uniform sizes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import comb

import eblime
from eblime.designs.masks import exhaustive
from eblime.family import KernelLaw, stratified_lime
from eblime.kernels import as_kernel


def chi2(counts, chances):
    """Pearson's statistic over its degrees of freedom, in standard errors from 1."""
    expected = counts.sum() * chances / chances.sum()
    df = len(counts) - 1
    return (np.sum((counts - expected) ** 2 / expected) - df) / np.sqrt(2 * df)


@pytest.mark.parametrize("kernel", [None, "cosine", "hamming", "uniform"])
def test_masks_have_the_law_of_the_kernel(rng, kernel):
    """Every mask is drawn in proportion to its weight."""
    p, every = 4, exhaustive(rng, 0, 4)
    drawn = KernelLaw(kernel=kernel)(rng, 20_001, p)
    counts = np.bincount((drawn.masks[1:] @ 2 ** np.arange(p)).astype(int), minlength=2**p)

    assert abs(chi2(counts, as_kernel(kernel)(every))) < 5
    assert (drawn.masks[0] == 1).all()
    assert_allclose(drawn.sampling_weights * as_kernel(kernel)(drawn.masks), 1)


def test_the_exponential_kernel_is_a_product_law(rng):
    """Features are hidden independently, with odds exp(-1 / (2 width^2))."""
    kernel = eblime.kernels.ExponentialKernel(width=0.8)
    masks = KernelLaw(kernel=kernel)(rng, 40_001, 6).masks[1:]
    odds = np.exp(-1 / (2 * 0.8**2))

    assert_allclose(1 - masks.mean(axis=0), odds / (1 + odds), atol=5 * 0.5 / 200)
    assert_allclose(np.corrcoef(masks.T), np.eye(6), atol=5 / 200)


def test_sizes_are_uniform_with_their_weights(rng):
    """The weights of Rashid et al.: C(p, s) (p + 1) / 2^p, and 1 for the input itself."""
    drawn = stratified_lime(rng, 7001, 6)
    shown = drawn.masks.sum(axis=1).astype(int)

    assert abs(chi2(np.bincount(shown[1:]), np.ones(7))) < 5
    assert drawn.sampling_weights[0] == 1
    assert_allclose(drawn.sampling_weights[1:], comb(6, shown[1:]) * 7 / 2**6)


def test_an_explainer_gives_its_kernel(rng):
    """All answers have weight one; the kernel's weights are known all the same."""
    text = " ".join("abcdefghijklmno")
    kernel = eblime.kernels.ExponentialKernel(width=0.9)
    explainer = eblime.TextExplainer(
        lambda texts: [("c" in t) - 0.2 * ("f" in t) for t in texts],
        design="glime",
        kernel=kernel,
        n_masks=150,
    )
    e = explainer.explain(text)

    assert_allclose(e.answers.weights, 1)
    assert_allclose(e.answers.weights / e.answers.sampling, kernel(e.masks))
    assert e.features[np.argmax(e.posterior.mean)] == "word 'c'"
    more = explainer.explain(text, until=eblime.TopK(1), max_masks=150)
    assert_allclose(more.answers.weights, 1)


def test_narrow_kernels_leave_the_ridge_alone(rng):
    """Evenly drawn, a narrow kernel lets the ridge shrink all to zero; by its own law not."""
    text = " ".join("abcdefghijkl")
    kernel = eblime.kernels.ExponentialKernel(width=0.35)
    settings = {"kernel": kernel, "n_masks": 1000, "method": "lime"}
    score = lambda texts: [("c" in t) + 0.0 for t in texts]  # noqa: E731
    with pytest.warns(UserWarning, match="more features"):
        even = eblime.TextExplainer(score, design="bernoulli", **settings).explain(text).posterior
    drawn = eblime.TextExplainer(score, design="glime", **settings).explain(text).posterior

    assert even.mean.max() < 0.5
    assert drawn.mean.max() > 0.8


def test_a_kernel_of_which_features_is_refused():
    """The law needs a kernel that depends on the number of shown features."""
    with pytest.raises(ValueError, match="must depend on the number of features shown only"):
        KernelLaw(kernel=lambda masks: 1 + masks[:, 0])(np.random.default_rng(0), 5, 3)
