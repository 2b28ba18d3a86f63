"""Perturbed inputs that repeat are asked once."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from together import explain_together

import eblime
from eblime.designs.masks import bernoulli

TEXT = "one two three four five six seven eight nine ten eleven"


class Counting:
    """A model of texts that remembers what it was asked."""

    def __init__(self):
        self.asked = []

    def __call__(self, texts):
        """A score of words, and of one pair of them."""
        self.asked.extend(texts)
        return [
            ("two" in t) + 0.5 * ("seven" in t) - 0.3 * ("one" in t and "ten" in t) for t in texts
        ]


def test_texts_that_repeat_are_asked_once():
    """The answers are those of asking about all of them."""
    model = Counting()
    e = eblime.TextExplainer(model, design="sizes", n_masks=1000).explain(TEXT)

    assert len(e.masks) == 1000
    assert len(model.asked) == len(set(model.asked)) == len(np.unique(e.masks, axis=0)) < 700
    assert e.provenance["model_calls"] == len(model.asked)
    assert_array_equal(e.scores, Counting()(e.scene.inputs(e.masks)))


def test_masks_of_an_earlier_round_are_not_asked_again():
    """A design may repeat a mask in a later round."""

    class Twice:
        def next(self, rng, answers):
            if answers.n_masks >= 80:
                return None
            return bernoulli(np.random.default_rng(3), 40, answers.n_features)

    model = Counting()
    e = eblime.TextExplainer(model, design=Twice()).explain(TEXT)

    assert len(e.masks) == 80
    assert len(model.asked) == len(set(model.asked)) <= 41
    assert_array_equal(e.scores[:40], e.scores[40:])


def test_inputs_that_share_calls_ask_once_too():
    """With the numbers of explaining each alone."""
    model = Counting()
    explainer = eblime.TextExplainer(model, n_masks=200)
    texts = ["two seven one ten", "one two seven ten red"]
    subjects = [explainer.subject(text) for text in texts]
    found = explain_together(
        explainer.loop, subjects, 1, [np.random.default_rng(k) for k in range(2)]
    )

    assert len(model.asked) == 2**4 + 2**5
    for k, text in enumerate(texts):
        alone = explainer.explain(text, rng=np.random.default_rng(k))
        assert_allclose(found[k][0].posterior.mean, alone.posterior.mean)
        assert found[k][0].provenance["model_calls"] == alone.provenance["model_calls"]
