"""A text with shaded words."""

import re

import numpy as np
import pytest
from matplotlib.figure import Figure
from numpy.testing import assert_allclose

import eblime
from eblime.plot.style import uncertain

TEXT = "A witty film with good music and a good cast, and hardly ever boring."


def explained():
    """An explanation in which some words count."""
    return eblime.TextExplainer(
        lambda texts: [("good" in text) - 0.5 * ("boring" in text) for text in texts], n_masks=200
    ).explain(TEXT)


@pytest.mark.parametrize("inches", [3.0, 6.0, 12.0])
def test_words_are_as_far_apart_as_in_print(inches):
    """In axes of any width: each piece begins where the one before it ends."""
    figure = Figure(figsize=(inches, 3), dpi=100, layout="constrained")
    ax = figure.subplots()
    explained().plot("text", ax=ax)
    figure.draw_without_rendering()
    pieces = [text for text in ax.texts if text.get_text().strip()]
    widths = [piece.get_window_extent().width / len(piece.get_text()) for piece in pieces]
    starts = [piece.get_transform().transform(piece.get_position()) for piece in ax.texts]
    steps = [
        (after[0] - before[0]) / len(piece.get_text())
        for piece, before, after in zip(ax.texts, starts, starts[1:], strict=False)
        if after[1] == before[1]
    ]

    assert_allclose(steps, max(widths), atol=1.0)
    assert max(piece.get_window_extent().x1 for piece in pieces) <= 100 * inches


def test_words_with_an_uncertain_sign_have_no_colour():
    """Neither in the plot, nor in a notebook, nor on the page before its script runs."""
    scores = np.random.default_rng(1)
    e = eblime.TextExplainer(lambda texts: scores.random(len(texts)), n_masks=400).explain(TEXT)
    certain = ~uncertain(e)
    shades = [shade for shade in e.plot("text").collections if shade.get_alpha() > 0]
    rules = re.findall(r'\[data-feature="(\d+)"\]{fill:', e._repr_html_())

    assert not certain.all()
    assert len(shades) == certain[[owner for owner in e.scene.owners if owner >= 0]].sum()
    assert sorted(map(int, rules)) == np.flatnonzero(certain).tolist()


def test_shades_cover_their_words():
    """The box behind a word is as wide as the word."""
    figure = Figure(figsize=(9, 3), dpi=100, layout="constrained")
    ax = figure.subplots()
    explained().plot("text", ax=ax)
    figure.draw_without_rendering()
    word = next(text for text in ax.texts if text.get_text() == "boring").get_window_extent()
    shades = [shade.get_paths()[0].get_extents(shade.get_transform()) for shade in ax.collections]

    assert any(abs(s.x0 - word.x0) < 3 and abs(s.x1 - word.x1) < 3 for s in shades)


@pytest.mark.parametrize("columns", [50, 72])
def test_shades_are_not_cut_at_the_end_of_a_line(columns):
    """Axes are narrower than the text where a word ends at the last column."""
    ax = explained().plot("text", columns=columns)

    assert not any(shade.get_clip_on() for shade in [*ax.collections, *ax.lines])


@pytest.mark.parametrize(("lines", "shown"), [({}, 40), ({"lines": 50}, 50), ({"lines": None}, 60)])
def test_a_long_text_shows_as_many_lines_as_wanted(lines, shown):
    """The title says how many there are, unless all are there."""
    text = "\n".join(f"line {k}" for k in range(60))
    e = eblime.TextExplainer(lambda texts: [len(t) for t in texts], n_masks=130).explain(text)
    ax = e.plot("text", **lines)

    assert [t.get_text() for t in ax.texts if t.get_text().isdecimal()][-1] == str(shown - 1)
    assert (f"first {shown} of 60 lines" in ax.get_title(loc="left") + ax.get_title()) == (
        shown < 60
    )


def test_lines_must_be_a_number():
    """Or None."""
    with pytest.raises(ValueError, match="`lines` must be >= 1"):
        explained().plot("text", lines=0)
