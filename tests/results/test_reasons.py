"""Reasons: the features that raise or lower a score the most."""

from dataclasses import replace

import numpy as np
import pytest

import eblime

EFFECTS = {"good": 2.0, "fine": 0.5, "slow": -1.0, "dull": -3.0, "long": -0.2}


def explanation(noise=0.0, **settings):
    """A text whose words have known effects."""

    def score(texts):
        found = [sum(effect for word, effect in EFFECTS.items() if word in text) for text in texts]
        wobble = [noise * np.sin(sum(map(ord, text))) for text in texts]
        return np.array(found) + wobble

    return eblime.TextExplainer(score, **settings).explain("good fine slow dull long and the rest")


@pytest.mark.parametrize(
    ("direction", "words"),
    [("against", ["dull", "slow", "long"]), ("for", ["good", "fine"])],
)
def test_reasons_are_in_order_and_have_one_direction(direction, words):
    """Features with the other sign are no reasons, also if fewer than k are left."""
    found = explanation().reasons(3, direction)
    known = [reason.feature for reason in found if abs(reason.mean) > 1e-6]

    assert known == [f"word '{word}'" for word in words]
    assert all((reason.mean > 0) == (direction == "for") for reason in found)


def test_a_reason_has_the_numbers_of_the_posterior():
    """The probability is about the signed importances, as literal draws have it."""
    e = explanation(noise=2.0, n_masks=40)
    post, reasons = e.posterior, e.reasons(2)
    draws = post.sample(20_000, rng=1)
    places = np.argsort(np.argsort(draws, axis=1), axis=1)

    assert 0.02 < reasons[-1].prob < 0.98
    for reason in reasons:
        j = list(e.features).index(reason.feature)
        assert (reason.low, reason.high) == tuple(post.interval()[j])
        assert reason.prob == pytest.approx((places[:, j] < 2).mean(), abs=0.02)


def test_a_reason_is_a_sentence():
    """With its size, its interval and its rank; sizes are positive."""
    exact, *_ = explanation().reasons(1)
    vague = explanation(noise=2.0, n_masks=40).reasons(2)[0]

    assert str(exact) == "word 'dull' lowers the score by 3 (exactly); P(strongest) > .99"
    assert exact.certain
    narrow = replace(exact, low=-3.0004, high=-2.9996)
    assert "by 3 (2.9996 to 3.0004)" in str(narrow)
    low, high = str(vague).split("(")[1].split(")")[0].split(" to ")
    assert float(low) == pytest.approx(-vague.high, rel=0.01)
    assert float(high) == pytest.approx(-vague.low, rel=0.01)


def test_a_point_estimate_has_reasons():
    """Without an interval nothing is certain but the order."""
    first, *_ = explanation(method="lime").reasons(2)

    assert (first.low, first.high) == (first.mean, first.mean)


def test_other_directions_are_refused():
    """The message lists both."""
    with pytest.raises(ValueError, match="`direction` must be one of 'for', 'against'"):
        explanation().reasons(1, "up")
    with pytest.raises(ValueError, match="`k` must be"):
        explanation().reasons(99)


def test_a_waterfall_ends_at_the_fit_of_the_input():
    """Bars lead from the intercept to the sum; features beyond the top are one bar."""
    e = explanation(noise=0.5, n_masks=100)
    ax = e.plot("waterfall", top=3)
    bars = sorted(ax.patches, key=lambda bar: bar.get_y())
    names = [label.get_text() for label in ax.get_yticklabels()]

    assert names[:2] == ["fit, all hidden", "5 others"]
    assert len(bars) == 4
    assert bars[0].get_x() == pytest.approx(e.posterior.intercept)
    ends = [bar.get_x() + bar.get_width() for bar in bars]
    assert ends[-1] == pytest.approx(e.posterior.intercept + e.posterior.mean.sum())
    for before, bar in zip(ends, bars[1:], strict=False):
        assert bar.get_x() == pytest.approx(before)
