"""What an explanation says about its fit, by the held-out R^2."""

import dataclasses
import json
import sys
import zlib
from collections import Counter

import numpy as np
import pytest

import eblime
from eblime.answers import Answers
from eblime.cli.show import print_explanation
from eblime.core.laws import PointValue
from eblime.core.student import StudentMixture
from eblime.results.notes import _masks_per_feature, fit_sentence, is_poor_fit, notes

WORDS = " ".join(f"w{number}" for number in range(400))


def explain(score, *, text=WORDS, n_masks=300, method="eblime", **settings):
    """An explanation of a model that scores a list of texts."""
    explainer = eblime.TextExplainer(
        score, n_masks=n_masks, method=method, progress=False, **settings
    )
    return explainer.explain(text, rng=0)


def noise(texts):
    """A model that answers noise, the same for the same text."""
    seeds = [zlib.crc32(text.encode()) for text in texts]
    return np.array([np.random.default_rng(seed).normal(0.5, 0.1) for seed in seeds])


def linear(texts):
    """A model that adds up two words and has a large constant part."""
    return np.array([0.7 + 0.1 * ("w1 " in t) + 0.05 * ("w2 " in t) for t in texts])


@pytest.mark.filterwarnings("ignore:There are more features")
@pytest.mark.parametrize("method", ["eblime", "eblime-ridge", "lime"], ids=str)
def test_noise_gets_a_clear_note(method):
    """400 words and 300 masks: the in-sample R^2 may be high, the note does not believe it."""
    e = explain(noise, method=method)
    found = notes(e)

    assert "does not predict the model" in found[0]
    assert is_poor_fit(e)
    assert "held-out R²" in fit_sentence(e)
    assert "held-out R2" in str(e)


@pytest.mark.filterwarnings("ignore:There are more features")
def test_too_few_masks_are_named_as_the_cause():
    """The fit follows its own masks only: more of them are the remedy, not other features."""
    e = explain(noise, method="lime")

    assert e.posterior.r2 > 0.5
    assert "300 masks" in notes(e)[0]
    assert "are few for 400 features" in notes(e)[0]


def test_a_good_fit_has_no_note_about_it():
    """Nothing about a poor or fair fit."""
    e = explain(linear, text="w1 w2 w3 w4 w5 w6 w7 w8 w9 w10", n_masks=200)

    assert not is_poor_fit(e)
    assert not any("fit" in note for note in notes(e))


@pytest.mark.parametrize("method", ["eblime", "lime", "bayeslime", "eblime-paper"])
def test_constant_scores_are_said_everywhere(method, capsys):
    """In the sentence, the notes, the table, the plot and on the command line."""
    e = explain(lambda texts: np.full(len(texts), 0.25), text="a b c d e f g h", method=method)
    print_explanation(e, prob=0.95, top=3)
    printed = capsys.readouterr().out

    assert "never changed" in fit_sentence(e)
    assert "same score for every mask" in notes(e)[0]
    assert "constant scores" in printed
    assert "R2" not in printed
    assert "constant scores" in e.plot("means").get_title(loc="left")
    assert json.loads(e.to_json())["r2_held_out"] is None


def test_scores_that_barely_move_are_said():
    """Differences of 1e-7 are drawn and printed like any others, so a note is needed."""

    def rounding(texts):
        return np.array([0.9 + 1e-7 * ("a" in t) for t in texts])

    e = explain(rounding, text="a b c d e f g h i j k l", n_masks=100)

    assert "barely move" in notes(e)[0]
    assert "0.900000000 to 0.900000100" in notes(e)[0]
    assert "(scores barely move)" in str(e)


@pytest.mark.parametrize(
    ("method", "intercept"), [("eblime-paper", "no intercept"), ("bayeslime", "penalised")]
)
def test_a_prior_that_spoils_the_fit_is_blamed(method, intercept):
    """A large constant part and few masks: the model is linear, the method's prior does not fit."""
    e = explain(linear, text="w1 w2 w3 w4 w5 w6 w7 w8 w9 w10 w11 w12", n_masks=30, method=method)
    found = notes(e)

    assert e.posterior.r2_held_out < 0
    assert "caused by the prior" in found[0]
    assert intercept in found[0]
    assert not any("Coarser or other features" in note for note in found)


def test_an_in_sample_value_is_called_so():
    """A method that does not provide the held-out value."""
    e = explain(linear, text="w1 w2 w3 w4 w5 w6 w7 w8 w9 w10", n_masks=200)
    post = dataclasses.replace(e.posterior, held_out=None)
    e = dataclasses.replace(e, posterior=post)

    assert "in-sample R²" in fit_sentence(e)
    assert "in-sample R²" in e.plot("intervals").get_title(loc="left")


def test_all_masks_have_one_r2():
    """With all masks asked the table prints R2 alone."""
    e = explain(linear, text="w1 w2 w3 w4")

    assert e.exhaustive
    assert "masks, R2 " in str(e)


def test_printing_computes_each_thing_once():
    """One pass over the marginals of the fit; `explain` has computed the held-out R^2."""
    e = explain(linear, text="w1 w2 w3 w4 w5 w6 w7 w8 w9 w10 w11 w12", n_masks=300)
    calls = Counter()

    def count(frame, event, _):
        calls[frame.f_code.co_qualname] += event == "call"

    sys.setprofile(count)
    try:
        str(e)
    finally:
        sys.setprofile(None)

    assert calls["StudentMixture.quantile"] == 1
    assert not {
        "_marginals",
        "fit_precisions",
        "decompose",
        "half_line_lambda",
        "EBLIME.fit",
    } & set(calls)


@pytest.mark.parametrize("method", [eblime.EBLIME(), eblime.EBLIME(local=False)], ids=str)
def test_printing_fits_nothing_again(monkeypatch, method):
    """EBLIME made the fit: its own prior cannot be what spoils it, however poor it is."""
    text = " ".join(f"w{number}" for number in range(20))
    poor = explain(noise, text=text, method=method)
    assert is_poor_fit(poor)

    def refuse(*_):
        raise AssertionError("printing must not fit")

    monkeypatch.setattr(eblime.EBLIME, "fit_targets", refuse)

    assert "does not predict the model" in str(poor)
    assert poor.as_list(top=2, prob=0.9)
    assert poor._repr_html_()


def test_printing_computes_the_features_it_shows(monkeypatch):
    """Quantiles of five features, not of all 400; the marginals are computed once."""
    poor = explain(noise, n_masks=500)
    widths = []
    original = StudentMixture._quantiles

    def count(self, *arguments):
        widths.append(self.loc.shape[1])
        return original(self, *arguments)

    monkeypatch.setattr(StudentMixture, "_quantiles", count)
    str(poor)

    assert widths == [5]


def test_masks_per_feature_are_the_same_if_shown_and_hidden_change_places(rng):
    """The rarer state of a feature is the one that counts."""
    for _ in range(20):
        masks = (rng.random((41, 6)) < rng.random(6)).astype(float)
        scores, weights = rng.normal(size=41), rng.random(41)
        mean = rng.normal(size=6)
        answers = Answers(masks=masks, scores=scores, weights=weights)
        same = Answers(masks=1 - masks, scores=scores, weights=weights)
        one, other = _masks_per_feature(answers, mean), _masks_per_feature(same, -mean)

        np.testing.assert_allclose(one, other, rtol=1e-9)


def test_rounds_that_were_predicted_badly_get_a_note():
    """The note has the factor of the width; below a variance doubled there is none."""
    method, text = "quadrature", "w1 w2 w3 w4 w5 w6 w7 w8 w9 w10"
    e = explain(linear, text=text, n_masks=100, method=method, design="adaptive")
    for factor, said in ((4.0, True), (1.9, False)):
        extras = {**e.posterior.extras, "widening": PointValue(value=factor)}
        posterior = dataclasses.replace(e.posterior, extras=extras)
        found = notes(dataclasses.replace(e, posterior=posterior))
        assert any("2.0 times as wide" in note for note in found) is said


def test_labels_are_too_abrupt_for_quadrature():
    """Two values of the score: a note for Quadrature alone, unless all masks were asked."""

    def label(texts):
        return (linear(texts) > 0.72).astype(float)

    text = "w1 w2 w3 w4 w5 w6 w7 w8"
    for score, n_masks, method in (
        (label, 64, "quadrature"),
        (label, 256, "quadrature"),
        (linear, 64, "quadrature"),
        (label, 64, "eblime"),
    ):
        found = " ".join(notes(explain(score, text=text, n_masks=n_masks, method=method)))
        warned = "take two values only" in found

        assert warned == (score is label and n_masks == 64 and method == "quadrature")


def test_quadrature_from_few_masks_says_what_is_better():
    """Fewer than two masks for each feature."""
    text = " ".join(f"w{number}" for number in range(20))
    few, enough = (explain(linear, text=text, n_masks=n, method="quadrature") for n in (24, 80))

    assert any("fewer than 40 masks for 20 features" in note for note in notes(few))
    assert not any("fewer than" in note for note in notes(enough))


@pytest.mark.parametrize(("n", "noted"), [(100, True), (400, False)])
def test_fewer_than_three_masks_per_feature_get_a_note(n, noted):
    """The interval of the most important feature is then too narrow too often."""
    found = notes(explain(linear, text=" ".join(WORDS.split()[:40]), n_masks=n))

    assert any("Few masks for 40 features" in note for note in found) == noted
