"""Measures of faithfulness on models whose answer is known by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

import eblime
from eblime.measures import (
    comprehensiveness,
    covered_share,
    deletion,
    infidelity,
    insertion,
    sufficiency,
)

SLOPES = np.array([4.0, 1.0, 3.0, 2.0])


def linear(masks):
    """A line without intercept: the score is the sum of the slopes of the shown features."""
    return np.asarray(masks) @ SLOPES


def test_insertion_and_deletion_by_hand():
    """Shown one by one from the largest: 0, 4, 7, 9, 10. Hidden: 10, 6, 3, 1, 0."""
    assert insertion(SLOPES, linear) == pytest.approx((2 + 5.5 + 8 + 9.5) / 4)
    assert deletion(SLOPES, linear) == pytest.approx((8 + 4.5 + 2 + 0.5) / 4)
    assert insertion(-SLOPES, linear) == pytest.approx((0.5 + 2 + 4.5 + 8) / 4)


def test_order_of_the_slopes_is_best():
    """No other order of a line has a larger insertion or a smaller deletion area."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        other = rng.permutation(SLOPES)
        assert insertion(other, linear) <= insertion(SLOPES, linear)
        assert deletion(other, linear) >= deletion(SLOPES, linear)


def test_infidelity_of_a_line_is_zero_at_any_scale(rng):
    """The slopes predict every drop; zeros predict nothing; a half of the truth is in between."""
    assert infidelity(SLOPES, linear, n=50, rng=rng) == pytest.approx(0, abs=1e-12)
    assert infidelity(7 * SLOPES, linear, n=50, rng=rng) == pytest.approx(0, abs=1e-12)
    assert infidelity(np.zeros(4), linear, n=50, rng=rng) == 1
    assert 0 < infidelity(np.ones(4), linear, n=50, rng=rng) < 1
    assert np.isnan(infidelity(SLOPES, lambda masks: np.ones(len(masks)), n=50, rng=rng))


def test_infidelity_by_hand(rng):
    """All four masks of two features, drops 0, 1, 1 and 1; importances (1, 1)."""

    def both(masks):
        return np.asarray(masks).prod(axis=1)

    # predicted 0, 1, 1, 2; best factor (1 + 1 + 2) / 6; residuals 1/3, 1/3, -1/3
    found = infidelity(np.ones(2), both, n=40_000, rng=rng)
    assert found == pytest.approx(3 * (1 / 3) ** 2 / 3, abs=0.005)  # five standard errors


def test_comprehensiveness_and_sufficiency_by_hand():
    """Of four tokens, 1 to 20 % is one token (the slope 4), 50 % two (4 and 3)."""
    assert comprehensiveness(SLOPES, linear) == pytest.approx((4 * 4 + 7) / 5)
    assert sufficiency(SLOPES, linear) == pytest.approx((4 * 6 + 3) / 5)
    assert comprehensiveness(-SLOPES, linear) == pytest.approx((4 * 1 + 3) / 5)


def test_rationale_is_rounded_up_but_not_beyond_a_whole_number():
    """20 % of ten tokens are two, and 5 % are one."""
    first_two = lambda masks: np.asarray(masks)[:, :2].sum(axis=1)  # noqa: E731
    found = comprehensiveness(np.array([2.0, 1.0] + [0.0] * 8), first_two)

    assert found == pytest.approx((1 + 1 + 1 + 2 + 2) / 5)


def test_covered_counts_superpixels_with_the_largest_positive_means():
    """Superpixels with negative means do not count."""
    defect = np.array([[True, True, False, False]])

    def share(*means, top):
        post = SimpleNamespace(mean=np.array(means))
        e = SimpleNamespace(posterior=post, segments=np.array([[0, 1, 2, 3]]))
        return covered_share(e, defect, top=top)

    assert share(0.1, -0.2, 0.3, 0.2, top=2) == 0
    assert share(0.4, 0.3, 0.1, 0.2, top=2) == 1
    assert share(0.4, -0.3, 0.1, 0.2, top=4) == 0.5


def test_explanations_and_their_importances_give_the_same():
    """Each measure takes an explanation, its posterior, or the numbers alone."""
    text = "one two three four"
    score = lambda texts: [("two" in t) + 0.5 * ("four" in t) for t in texts]  # noqa: E731
    e = eblime.TextExplainer(score, n_masks=16).explain(text)
    game = eblime.game(score, text)

    for measure in (insertion, deletion, infidelity, comprehensiveness, sufficiency):
        values = [measure(each, game) for each in (e, e.posterior, e.posterior.mean)]
        assert values[0] == values[1] == values[2]
    assert insertion(e, game) > deletion(e, game)
    assert infidelity(e, game) < 1e-3


def test_maps_of_an_image_are_its_superpixels():
    """The right half decides, and the region is in it."""
    image = np.zeros((4, 8), dtype=np.uint8)
    image[:, 4:] = 200
    halves = ("grid", {"rows": 1, "columns": 2})
    bright = lambda batch: batch[:, :, 4:].mean(axis=(1, 2))  # noqa: E731
    e = eblime.ImageExplainer(bright, segmentation=halves, hide=0).explain(image)
    region = np.zeros((4, 8), dtype=bool)
    region[:, 2:6] = True

    assert covered_share(e, region, top=1) == 0.5
