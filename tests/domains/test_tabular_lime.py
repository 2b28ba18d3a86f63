"""Comparison with lime 0.2.0.1 for tables and texts: coefficients."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

import eblime
import eblime.designs.masks
from eblime.domains.text import read_text

lime_tabular = pytest.importorskip("lime.lime_tabular", reason="lime is not installed")
discretize = pytest.importorskip("lime.discretize")

DATA, CLASSES = load_breast_cancer(return_X_y=True)
NAMES = [f"x{j}" for j in range(DATA.shape[1])]


def test_the_same_masks_give_the_same_coefficients():
    """Lime's own binary data and distances through our LIME: 1e-8, and the same R^2."""
    model = RandomForestClassifier(30, random_state=0).fit(DATA, CLASSES)
    reference = lime_tabular.LimeTabularExplainer(DATA, feature_names=NAMES, random_state=3)
    data, inverse = reference._LimeTabularExplainer__data_inverse(DATA[7], 500)
    reference.random_state = np.random.RandomState(3)
    reference.discretizer.random_state = reference.random_state
    reference_explainer = lime_tabular.LimeTabularExplainer(
        DATA, feature_names=NAMES, random_state=3
    )
    found = reference_explainer.explain_instance(
        DATA[7], model.predict_proba, labels=(1,), num_features=30, num_samples=500
    )
    wanted = dict(found.local_exp[1])
    kernel = eblime.kernels.ExponentialKernel(width=0.75 * np.sqrt(DATA.shape[1]))
    scores = model.predict_proba(inverse)[:, 1]
    post = eblime.fit(data, scores, kernel(data), method="lime")

    assert_allclose(post.mean, [wanted[j] for j in range(30)], atol=1e-8)
    assert post.r2 == pytest.approx(found.score, abs=1e-8)
    assert post.intercept == pytest.approx(found.intercept[1], abs=1e-8)


def test_texts_are_hidden_as_lime_hides_them():
    """The same masks give the same texts, for a text whose words both find."""
    lime_text = pytest.importorskip("lime.lime_text")
    text = "The good, the bad\r\nand the ugly: a good film; never bad."
    reference = lime_text.IndexedString(text, bow=True)
    scene = read_text(text)
    words = [reference.word(j) for j in range(reference.num_words())]
    masks = np.random.default_rng(0).integers(0, 2, (30, len(words))).astype(float)
    ours = scene.inputs(masks)
    theirs = [reference.inverse_removing(np.flatnonzero(row == 0)) for row in masks]

    assert [f"word '{word}'" for word in words] == [name.split(" x")[0] for name in scene.features]
    assert ours == theirs


def test_the_text_design_equals_that_of_lime():
    """The number of hidden words is uniform on 1 to p; all words are hidden equally often."""
    masks = eblime.designs.masks.sizes(np.random.default_rng(0), 60_001, 6)[1:]
    hidden = 6 - masks.sum(axis=1).astype(int)
    counts = np.bincount(hidden, minlength=7)

    assert counts[0] == 0
    assert_allclose(counts[1:] / 60_000, 1 / 6, atol=5 * np.sqrt(5 / 36 / 60_000))
    assert_allclose(masks.mean(axis=0), 1 - 3.5 / 6, atol=5 * np.sqrt(0.25 / 60_000))


def test_coefficients_of_a_text_equal_those_of_lime():
    """Lime's kernel, distance and ridge on our masks and scores give our coefficients: 1e-8."""
    from lime import lime_base
    from sklearn.metrics import pairwise_distances

    text = "a witty and gorgeous film that is never dull but far too long"
    score = {"witty": 0.3, "gorgeous": 0.2, "dull": -0.4, "long": -0.2}

    def model(texts):
        return np.array([sum(score.get(w, 0) for w in t.split()) ** 3 for t in texts])

    explainer = eblime.TextExplainer(
        model, n_masks=300, method="lime", design="sizes", kernel="cosine"
    )
    e = explainer.explain(text)
    distances = pairwise_distances(e.masks, e.masks[:1], metric="cosine").ravel() * 100
    reference = lime_base.LimeBase(lambda d: np.sqrt(np.exp(-(d**2) / 25**2)), random_state=0)
    _, wanted, r2, _ = reference.explain_instance_with_data(
        e.masks, e.scores[:, None], distances, 0, 13, feature_selection="none"
    )
    wanted = dict(wanted)

    assert_allclose(e.posterior.mean, [wanted[j] for j in range(len(wanted))], atol=1e-8)
    assert e.posterior.r2 == pytest.approx(r2, abs=1e-8)
