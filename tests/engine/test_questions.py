"""Perturbed inputs that repeat are asked once."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from together import explain_together

import eblime
from eblime.designs.masks import bernoulli
from eblime.engine.drive import group_size
from eblime.engine.questions import BatchTuner
from eblime.engine.settings import stop_settings
from eblime.stopping.rule import FIRST

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


def test_two_batches_of_each_size_are_timed():
    """The next size follows if it was the fastest so far; else the fastest is kept."""
    tuner = BatchTuner((4, 8, 16))
    sizes = []
    for n, seconds in ((4, 9.0), (3, 0.1), (4, 2.0), (8, 3.0), (8, 5.0), (16, 8.0), (16, 7.0)):
        sizes.append((tuner.size, tuner.settled))
        tuner.learn(n, seconds, left=1000)

    assert sizes == [(size, False) for size in (4, 4, 4, 8, 8, 16, 16)]
    assert (tuner.size, tuner.settled) == (8, True)
    tuner.learn(8, 99.0, left=1000)
    assert tuner.size == 8


def test_a_larger_batch_needs_many_masks_that_are_left():
    """Eight batches of its size."""
    for left, size in ((63, 4), (64, 8)):
        tuner = BatchTuner((4, 8))
        for _ in range(2):
            tuner.learn(4, 1.0, left)

        assert (tuner.size, tuner.settled) == (size, size == 4)


def test_a_size_that_memory_does_not_hold_is_never_used_again():
    """The fastest smaller one follows, or half of it, down to one."""
    tuner = BatchTuner((4, 8))
    for _ in range(2):
        tuner.learn(4, 1.0, 1000)

    found = []
    while tuner.shrink():
        found.append(tuner.size)
    assert found == [4, 2, 1]
    assert tuner.settled
    assert BatchTuner((4,)).settled


@pytest.mark.parametrize(("batch_size", "first"), [(18, 16), (17, 8)])
def test_sessions_share_a_call_as_long_as_they_fit(batch_size, first):
    """A later session that fits goes first; one that is too large for any call is asked alone."""
    sizes = []

    def model(texts):
        sizes.append(len(texts))
        return [len(text) for text in texts]

    calls = eblime.Calls(batch_size=batch_size)
    explainer = eblime.TextExplainer(model, design="bernoulli", n_masks=64, calls=calls)
    subjects = [explainer.subject(text) for text in ("one two three", "a b c d e", "x y z")]
    explain_together(explainer.loop, subjects, 1, [np.random.default_rng(k) for k in range(3)])

    assert sizes[0] == first
    assert sum(sizes) == 2**3 + 2**5 + 2**3


@pytest.mark.parametrize(
    ("settings", "size"),
    [
        ({"n_masks": 24, "batch_size": 100}, 4),
        ({"n_masks": 24, "batch_size": 49}, 1),
        ({"n_masks": 24, "batch_size": 10}, 1),
        ({"n_masks": 24, "batch_size": 100, "concurrency": 2}, 1),
        ({"n_masks": 2}, 256),
        ({"n_masks": 999}, 32),
    ],
)
def test_as_many_sessions_are_open_as_one_call_has_room_for(settings, size):
    """With their inputs; none shares a call that is split among several under way."""
    calls = eblime.Calls(**{k: v for k, v in settings.items() if k != "n_masks"})
    explainer = eblime.TextExplainer(len, n_masks=settings["n_masks"], calls=calls)

    assert group_size(explainer.loop) == size


def test_sessions_with_a_rule_take_turns():
    """Eight times as many, by the masks of their first look instead of all."""
    calls = eblime.Calls(batch_size=10 * (FIRST + 1))
    explainer = eblime.TextExplainer(len, n_masks=24, calls=calls)

    assert group_size(stop_settings(explainer.loop, "top3", None)) == 80


def test_batches_grow_as_long_as_that_is_faster(monkeypatch):
    """A call that takes a second, however many inputs it has."""
    now, sizes = [0.0], []
    monkeypatch.setattr("time.perf_counter", lambda: now[0])

    def model(images):
        now[0] += 1.0
        sizes.append(len(images))
        return images.mean(axis=(1, 2))

    grid = ("grid", {"rows": 3, "columns": 4})
    explainer = eblime.ImageExplainer(model, segmentation=grid, hide=0, n_masks=400)
    explainer.explain(np.ones((12, 16)))

    assert sizes[:5] == [4, 4, 4, 8, 8]  # the first has the input itself, and is not timed
    assert max(sizes) == 32
