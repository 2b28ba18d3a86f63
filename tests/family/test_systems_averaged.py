"""Averaged LIME: the analysis of variance, and what it says about known sources."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import eblime
from eblime.family.systems import AveragedExplanation


def anova(y):
    """Sums of squares of a two-way layout with repetitions, by loops; y is (a, b, r)."""
    a, b, r = y.shape
    total = y.mean()
    ss_a = b * r * sum((y[i].mean() - total) ** 2 for i in range(a)) / (a - 1)
    ss_b = a * r * sum((y[:, j].mean() - total) ** 2 for j in range(b)) / (b - 1)
    ss_ab = ss_e = 0.0
    for i in range(a):
        for j in range(b):
            ss_ab += r * (y[i, j].mean() - y[i].mean() - y[:, j].mean() + total) ** 2
            ss_e += np.sum((y[i, j] - y[i, j].mean()) ** 2)
    ss_ab, ss_e = ss_ab / ((a - 1) * (b - 1)), ss_e / (a * b * (r - 1))
    parts = [ss_e, (ss_a - ss_ab) / (b * r), (ss_b - ss_ab) / (a * r), (ss_ab - ss_e) / r]
    return np.maximum(parts, 0.0)


def made_up(rng, sds, shape=(40, 40, 6)):
    """Importances with known standard deviations by sampling, width, input and both."""
    a, b = shape[:2]
    y = sds[0] * rng.normal(size=shape) + sds[1] * rng.normal(size=(a, 1, 1))
    return 0.7 + y + sds[2] * rng.normal(size=(1, b, 1)) + sds[3] * rng.normal(size=(a, b, 1))


def result(y):
    """The result of importances of one feature, (a, b, r)."""
    return AveragedExplanation(features=("one",), importances=y[..., None])


@pytest.mark.parametrize("shape", [(3, 4, 5), (2, 2, 2)])
def test_sources_equal_the_loops(rng, shape):
    """Every component of variance."""
    y = made_up(rng, (1.0, 2.0, 0.5, 0.7), shape)
    found = result(y)
    parts = np.sqrt(anova(y))

    assert_allclose(found.spread["sampling_sd"][0], parts[0])
    assert_allclose(found.spread["width_sd"][0], parts[1])
    assert_allclose(found.spread["input_sd"][0], parts[2])
    assert_allclose(found.spread["interaction_sd"][0], parts[3])
    assert_allclose(found.spread["sd"][0], np.sqrt(np.sum(parts**2)))
    assert_allclose(found.mean[0], y.mean())


def test_known_sources_come_back(rng):
    """Standard deviations of a large layout, within five standard errors."""
    found = result(made_up(rng, (1.0, 2.0, 0.5, 0.7)))

    assert_allclose(found.spread["sampling_sd"][0], 1.0, atol=5 / np.sqrt(2 * 8000))
    assert_allclose(found.spread["width_sd"][0], 2.0, atol=5 * 2.0 / np.sqrt(2 * 39))
    assert_allclose(found.spread["input_sd"][0], 0.5, atol=5 * 0.5 / np.sqrt(2 * 39))
    assert_allclose(found.spread["interaction_sd"][0], 0.7, atol=0.1)


def test_one_width_and_one_input_is_sampling_alone(rng):
    """The spread is that of the runs."""
    y = rng.normal(size=(1, 1, 8))
    found = result(y)

    assert_allclose(found.spread["sampling_sd"][0], y.std(ddof=1))
    assert (
        found.spread["width_sd"][0]
        == found.spread["input_sd"][0]
        == found.spread["interaction_sd"][0]
        == 0
    )
    assert_allclose(found.error[0], y.std(ddof=1) / np.sqrt(8))


def test_explanations_of_a_text():
    """A linear model has no spread by width beyond noise; a product of words has."""
    text = "one two three four five six seven eight nine ten"

    def score(texts):
        return [
            ("two" in t) + 2.0 * (("five" in t) and ("six" in t) and ("ten" in t)) for t in texts
        ]

    explainer = eblime.TextExplainer(score, n_masks=300, method=eblime.LIME(alpha=1e-6))
    found = eblime.family.averaged(explainer, text, runs=4, widths=(0.5, 2.0))
    frame = found.to_frame()

    assert found.spread["width_sd"][5] > 3 * found.spread["width_sd"][0]
    assert list(frame["feature"]) == list(found.features)
    assert found.importances.shape == (2, 1, 4, 10)


def test_similar_rows_of_a_table(rng):
    """A model with another slope in each half: the importance depends on the row."""
    rows = rng.normal(size=(200, 2))
    model = lambda x: np.where(x[:, 1] > 0, 3.0, -3.0) * x[:, 0]  # noqa: E731
    explainer = eblime.TabularExplainer(model, rows, n_masks=100, method="lime")
    near = [[2.0, -2.0], [2.1, 2.0], [2.0, -2.1]]
    found = eblime.family.averaged(
        explainer, [2.0, 2.0], runs=2, widths=(1.0,), similar=near, rng=1
    )

    assert found.importances.shape == (1, 4, 2, 2)
    assert found.spread["input_sd"][0] > 5 * found.spread["sampling_sd"][0]


def test_refusals():
    """Settings that measure nothing, and inputs with other features."""
    explainer = eblime.TextExplainer(lambda texts: [len(t) for t in texts], n_masks=20)
    with pytest.raises(ValueError, match="`runs` must be >= 2"):
        eblime.family.averaged(explainer, "a b c d", runs=1)
    with pytest.raises(ValueError, match="`widths`"):
        eblime.family.averaged(explainer, "a b c d", widths=(0.0,))
    with pytest.raises(ValueError, match="`similar` must have the 4 features of `x`; got 2"):
        eblime.family.averaged(explainer, "a b c d", runs=2, widths=(1.0,), similar=["a b"])
