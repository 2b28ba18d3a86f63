"""What the fit says about any mask, and what the model answered."""

import numpy as np
import pytest

import eblime

WORDS = "one two three four five six seven eight nine ten eleven twelve"


def score(texts):
    """Some words, a pair, and a wobble that no line can fit."""
    return np.array(
        [
            ("one" in t) - 0.5 * ("three" in t) + 0.3 * ("two" in t and "five" in t)
            + 0.2 * np.sin(sum(map(ord, t)))
            for t in texts
        ]
    )  # fmt: skip


@pytest.fixture(scope="module")
def explanation():
    """A fit to some of the masks."""
    return eblime.TextExplainer(score, n_masks=200).explain(WORDS)


def fresh(explanation, n=2000):
    """Masks that were not asked, and the model's scores for them."""
    rng = np.random.default_rng(3)
    masks = rng.integers(0, 2, size=(n, len(explanation.features)))
    known = {mask.tobytes() for mask in explanation.masks.astype(int)}
    masks = np.array([mask for mask in masks if mask.astype(int).tobytes() not in known])
    words = WORDS.split()
    texts = [" ".join(w for w, shown in zip(words, mask, strict=True) if shown) for mask in masks]
    return masks, score(texts)


def test_the_mean_is_the_line(explanation):
    """The intercept and the importances of the features that are shown."""
    masks = np.eye(12)[:4]
    found = explanation.predict(masks)

    post = explanation.posterior
    assert np.allclose(found.mean, post.intercept + post.mean[:4])
    assert ((found.low < found.mean) & (found.mean < found.high)).all()


def test_intervals_of_single_scores_hold(explanation):
    """Of 2,000 fresh masks, about 95 % and 50 %; their scores have no more scatter than known."""
    masks, scores = fresh(explanation)
    for prob, least, most in ((0.95, 0.92, 0.99), (0.5, 0.4, 0.6)):
        found = explanation.predict(masks, prob)
        inside = ((found.low <= scores) & (scores <= found.high)).mean()

        assert least <= inside <= most


def test_asked_masks_have_the_models_answer(explanation):
    """Others have none; the input itself has its prediction."""
    masks, _ = fresh(explanation, 5)

    assert explanation.asked(explanation.masks[17]) == explanation.scores[17]
    assert explanation.asked(np.ones(12)) == explanation.prediction
    assert explanation.asked(masks[0]) is None


def test_columns_that_change_nothing_may_be_shown_or_hidden():
    """Their importance is zero, and the answer is the same."""
    table = np.column_stack([np.random.default_rng(0).normal(size=(30, 2)), np.full(30, 5.0)])
    with pytest.warns(UserWarning, match="same in all rows"):
        explainer = eblime.TabularExplainer(lambda rows: rows[:, 0], table)
    e = explainer.explain(table[0])

    assert e.asked([1, 0, 0]) == e.asked([1, 0, 1]) == e.prediction == table[0, 0]
    assert e.asked([1, 1, 0]) == e.prediction
    assert e.asked([0, 0, 0]) == pytest.approx(table[:, 0].mean())


def test_a_point_estimate_predicts_without_an_interval(explanation):
    """All three are the same."""
    found = explanation.refit("lime").predict(np.zeros(12))

    assert found.mean == found.low == found.high


def test_the_fit_is_drawn_against_the_answers(explanation):
    """A point for each mask."""
    ax = explanation.plot("fit")

    assert len(ax.lines[0].get_xdata()) == explanation.answers.n_masks


@pytest.mark.parametrize("masks", [[1, 0], np.full(12, 0.5), np.ones((2, 2, 12)), [[2] * 12]])
def test_what_is_no_mask_is_refused(explanation, masks):
    """The message has the shape."""
    with pytest.raises(ValueError, match=r"`masks` must be zeros and ones of shape \(n, 12\)"):
        explanation.predict(masks)
