"""`until`: growing rounds, limits, what the explanation says, and runs of many inputs."""

from zlib import crc32

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from together import explain_together

import eblime
from eblime.answers import Answers, Proposal
from eblime.designs.rounds import in_rounds
from eblime.engine.settings import stop_settings

WORDS = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen"
SHORT = "one two three four five six seven eight"


def score(texts):
    """A score of words, and of one pair of them."""
    return [("two" in t) + 0.5 * ("five" in t) - 0.3 * ("one" in t and "eight" in t) for t in texts]


def asking():
    """A model, and the list of all texts that it was asked about."""
    asked = []

    def model(texts):
        asked.extend(texts)
        return score(texts)

    return model, asked


def test_questions_end_when_the_rule_is_reached():
    """With few masks, and the explanation says what is known, with how many calls."""
    model, asked = asking()
    e = eblime.TextExplainer(model, design="bernoulli").explain(WORDS, until=eblime.TopK(2))
    stopped = e.provenance["stopped"]

    assert len(e.masks) < 1000
    assert e.provenance["model_calls"] == len(asked)
    assert e.provenance["reached"] is True
    assert e.provenance["until"] == "TopK(k=2)"
    assert stopped.startswith(f"TopK(k=2) reached with {len(e.masks)} masks ({len(asked)} ")
    assert "the 2 most important features are known with probability 0.9" in stopped
    assert f"Stopped: {stopped}" in " ".join(str(e).split())
    assert "TopK(k=2) reached with" in e.to_html()
    assert "TopK(k=2) reached with" in e.to_json()


def test_earlier_answers_are_used_again():
    """A rule that needs several rounds asks in growing rounds; its answers are the model's."""
    e = eblime.TextExplainer(score, design="bernoulli").explain(WORDS, until="width0.1")

    assert e.provenance["rounds"] > 1
    assert len(e.masks) in {96, 128, 192, 256, 384, 512, 768, 1024}
    assert_array_equal(e.scores, score(e.scene.inputs(e.masks)))
    again = eblime.TextExplainer(score, design="bernoulli").explain(WORDS, until="width0.1")
    assert_array_equal(again.posterior.mean, e.posterior.mean)


def test_a_rule_that_is_not_reached_says_so():
    """The sentence has the limit and how far it got."""
    noise = lambda texts: [crc32(t.encode()) % 1000 / 1000 for t in texts]  # noqa: E731
    e = eblime.TextExplainer(noise, design="bernoulli").explain(
        WORDS, until=eblime.Ranking(5), max_masks=200
    )

    assert len(e.masks) == 200
    assert e.provenance["reached"] is False
    assert "Ranking(k=5) not reached within 200 masks" in e.provenance["stopped"]
    assert "are known in their order with probability below 0.001" in e.provenance["stopped"]


def test_all_masks_end_the_questions_with_certainty():
    """A rule that no sample can decide is decided by all 2^p masks, each asked once."""
    tied = lambda texts: [0.0 + len(set(t.split()) & {"one", "two"}) ** 2 for t in texts]  # noqa: E731
    e = eblime.TextExplainer(tied, design="sizes").explain(SHORT, until=eblime.TopK(1))

    assert e.exhaustive
    assert len(e.masks) == 2**8
    assert e.provenance["reached"] is True
    assert "all possible masks" in e.provenance["stopped"]


@pytest.mark.parametrize("p", [1, 3, 5, 8])
def test_all_masks_come_in_pairs(p):
    """The plan of all masks has each once, complements beside each other, the input first."""
    rng = np.random.default_rng(0)
    design = in_rounds(rng, "bernoulli", 5000, p, exact=True)
    masks = design.plan

    assert len(np.unique(masks, axis=0)) == len(masks) == 2**p
    assert_array_equal(masks[::2] + masks[1::2], 1)
    assert masks[0].all()


def test_pairs_stay_together_and_proposals_keep_their_weights():
    """Masks of a one-shot design are shuffled two at a time; so are their weights."""

    def pairs(rng, n_masks, p):
        half = rng.integers(0, 2, (n_masks // 2, p)).astype(float)
        masks = np.stack([half, 1 - half], axis=1).reshape(-1, p)
        return Proposal(masks=masks, sampling_weights=masks @ np.arange(p))

    rng = np.random.default_rng(0)
    design = in_rounds(rng, pairs, 1000, 12, exact=True)
    known = Answers.none([str(j) for j in range(12)])
    sizes = []
    while (wanted := design.next(rng, known)) is not None:
        sizes.append(len(wanted.masks))
        assert_array_equal(wanted.masks[::2] + wanted.masks[1::2], 1)
        assert_array_equal(wanted.sampling_weights, wanted.masks @ np.arange(12))
        known = known.append(wanted.masks, np.zeros(sizes[-1]), np.ones(sizes[-1]))

    assert sizes == [64, 32, 32, 64, 64, 128, 128, 256, 232]


def test_rows_of_tables_can_end_early():
    """As other inputs."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(50, 12))
    model = lambda r: r[:, 0] - 2 * r[:, 2]  # noqa: E731
    e = eblime.TabularExplainer(model, rows).explain(rows[0], until=eblime.TopK(1))

    assert e.provenance["reached"]
    assert len(e.masks) < 2**12
    assert np.argmax(np.abs(e.posterior.mean)) == 2


def test_every_target_must_be_sure():
    """With several targets, the rule is reached for each of them."""
    model = lambda texts: np.column_stack([score(texts), [0.01 * len(t) for t in texts]])  # noqa: E731
    found = eblime.TextExplainer(model, design="bernoulli").explain_targets(
        WORDS, [0, 1], until=eblime.Sign(top=1)
    )
    rule = eblime.Sign(top=1)

    assert all(rule(e.posterior, e.answers) for e in found.values())


@pytest.mark.parametrize("design", ["bernoulli", "adaptive"])
@pytest.mark.parametrize(
    ("until", "sentence"), [("ranking5", "not reached within"), (None, "stop")]
)
def test_no_round_begins_that_would_not_fit(monkeypatch, design, until, sentence):
    """A round takes as long as the last one; the first is asked however long it takes."""
    now, sizes = [0.0], []
    monkeypatch.setattr("time.perf_counter", lambda: now[0])

    def slow(texts):
        now[0] += 1.0
        sizes.append(len(texts))
        return [crc32(t.encode()) % 1000 / 1000 for t in texts]

    method = "quadrature" if design == "adaptive" else "eblime"
    explainer = eblime.TextExplainer(
        slow, design=design, method=method, calls=eblime.Calls(batch_size=1000)
    )
    for seconds, calls in ((3.5, 3), (3.0, 3), (0.5, 1)):  # the third round ends after 3 s
        now[0] = 0.0
        sizes.clear()
        e = explainer.explain(WORDS, until=until, max_seconds=seconds)
        assert len(sizes) == calls
        assert sentence in e.provenance["stopped"]
        assert f"{seconds:g} seconds, {len(e.masks)} masks" in e.provenance["stopped"]


def test_time_that_ends_with_the_last_mask_stops_nothing(monkeypatch):
    """All masks that were wanted have an answer."""
    now = [0.0]
    monkeypatch.setattr("time.perf_counter", lambda: now[0])

    def slow(texts):
        now[0] += 0.01 * len(texts)
        return score(texts)

    explainer = eblime.TextExplainer(
        slow, design="bernoulli", n_masks=100, calls=eblime.Calls(batch_size=16)
    )
    e = explainer.explain(WORDS, max_seconds=1.3)

    assert len(e.masks) == 100
    assert now[0] + 0.36 > 1.3  # no time is left for another round
    assert "stopped" not in e.provenance


def test_progress_has_an_estimate():
    """The total is at first the limit, then an estimate, and never below what was asked."""
    seen = []
    e = eblime.TextExplainer(score, design="bernoulli").explain(
        WORDS, until="width0.1", max_masks=4000, progress=lambda *pair: seen.append(pair)
    )

    assert seen[0][1] == 4000
    done, total = next(pair for pair in seen if pair[1] < 4000)
    assert total > 2 * done  # the width is far from 0.1 when the rule is first asked
    assert all(done <= total for done, total in seen)
    assert seen[-1][0] == len(e.masks)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_masks": 100}, "`max_masks` needs a stop rule"),
        ({"until": "top3", "max_masks": 10}, "`max_masks` must be at least 64, the first round"),
        ({"until": "top3", "max_masks": 0}, "`max_masks` must be >= 1"),
        ({"until": "best"}, "`until` must be like"),
        ({"until": "top100"}, "`until` must be about at most 14 features"),
        ({"until": "sign3~0.1"}, "`until` must be like"),
        ({"until": "top3", "max_seconds": -1.0}, "`max_seconds` must be"),
    ],
)
def test_bad_limits_are_refused_before_any_call(settings, message):
    """Nothing is asked."""
    model, asked = asking()

    with pytest.raises(ValueError, match=message):
        eblime.TextExplainer(model, design="bernoulli").explain(WORDS, **settings)
    assert not asked


def test_too_many_masks_for_a_method_are_refused_before_any_call():
    """The limit of the method is known before the model is asked."""
    model, asked = asking()
    explainer = eblime.TextExplainer(model, method="quadrature", n_masks=4_000)

    with pytest.raises(ValueError, match=r"at most 3,000 for Quadrature.*2\^14.*got 4,000"):
        explainer.explain(WORDS)
    assert not asked


def test_a_point_estimate_cannot_be_sure():
    """LIME states no uncertainty; refused before any call."""
    model, asked = asking()

    with pytest.raises(ValueError, match="states its uncertainty"):
        eblime.TextExplainer(model, method="lime").explain(WORDS, until="top3")
    assert not asked


@pytest.mark.parametrize("returned", [False, True, np.bool_(False), 0.5])
def test_a_function_must_return_a_reason_or_none(returned):
    """False is no reason to go on, and True none to stop."""
    explainer = eblime.TextExplainer(score, design="bernoulli")

    with pytest.raises(TypeError, match="`until` must return a reason to stop, a string, or None"):
        explainer.explain(WORDS, until=lambda posterior, answers: returned)


def test_the_reason_is_saved(tmp_path):
    """A saved explanation still says why it stopped."""
    e = eblime.TextExplainer(score, design="bernoulli").explain(WORDS, until="top2")
    loaded = eblime.load(e.save(tmp_path / "e.eblime"))

    assert loaded.provenance["stopped"] == e.provenance["stopped"]
    assert_array_equal(loaded.posterior.mean, e.posterior.mean)
    assert str(loaded) == str(e)


def test_inputs_stop_on_their_own_and_share_calls():
    """Calls hold questions of several inputs, of different rounds, and the numbers are the same."""
    texts = [WORDS, f"{WORDS} fifteen", "film " + WORDS, f"{WORDS} {SHORT.upper()}"]
    calls = []

    def model(batch):
        calls.append(len(batch))
        return [
            s + 0.2 * ("film" in t) * ("six" in t) for s, t in zip(score(batch), batch, strict=True)
        ]

    explainer = eblime.TextExplainer(model, design="bernoulli", calls=eblime.Calls(batch_size=400))
    loop = stop_settings(explainer.loop, "width0.05", 2000)
    subjects = [explainer.subject(text) for text in texts]
    rngs = [np.random.default_rng(k) for k in range(len(texts))]
    together = explain_together(loop, subjects, 1, rngs)
    shared = len(calls)
    alone = [
        explainer.explain(text, rng=np.random.default_rng(k), until="width0.05", max_masks=2000)
        for k, text in enumerate(texts)
    ]

    for found, one in zip(together, alone, strict=True):
        assert_array_equal(found[0].posterior.mean, one.posterior.mean)
        assert found[0].provenance["stopped"] == one.provenance["stopped"]
    assert len({len(one.masks) for one in alone}) > 1
    assert shared < sum(one.provenance.get("rounds", 1) for one in alone) / 2
    assert max(calls[:shared]) <= 400
