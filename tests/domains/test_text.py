"""Texts: tokens, hiding, and explanations."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import eblime
from eblime.domains.text import find_spans, read_text

REVIEWS = [
    ("good fun and a good cast", "pos"),
    ("a dull and tired story", "neg"),
    ("good story, good music", "pos"),
    ("tired jokes, dull music", "neg"),
    ("fun music", "pos"),
    ("dull cast", "neg"),
]


def model():
    """A small sentiment pipeline."""
    texts, labels = zip(*REVIEWS, strict=True)
    return make_pipeline(TfidfVectorizer(), LogisticRegression(C=100)).fit(texts, labels)


def names(text, **settings):
    """Names of the features, without the kind."""
    return [name.split(" ", 1)[1] for name in read_text(text, **settings).features]


def test_words_in_many_scripts():
    """Apostrophes, accents, right-to-left scripts, scripts without spaces, emoji."""
    assert names("Don't stop, don't!") == ["'Don't'", "'stop'", "'don't'"]
    assert names("cafe\u0301 na\u00efve") == ["'cafe\u0301'", "'na\u00efve'"]
    assert names("שלום עולם مرحبا") == ["'שלום'", "'עולם'", "'مرحبا'"]
    assert names("नमस्ते दुनिया।") == ["'नमस्ते'", "'दुनिया'"]
    assert names("🇮🇹 🇫🇷") == ["'🇮🇹'", "'🇫🇷'"]
    assert names("日本 ok") == ["'日'", "'本'", "'ok'"]
    assert names("so 👩\u200d👩\u200d👧 👍🏽!") == ["'so'", "'👩\u200d👩\u200d👧'", "'👍🏽'"]


def test_sentences_and_characters():
    """A full stop ends a sentence, also in quotation marks; combined characters are one."""
    text = 'One. "Two?" Three!\n\nFour 日本。五'
    assert names(text, tokens="sentence") == [
        "'One.'",
        "'\"Two?\"'",
        "'Three!'",
        "'Four 日本。'",
        "'五'",
    ]
    assert names("ae\u0301 a", tokens="char", bag=False) == ["'a' #1", "'e\u0301'", "'a' #2"]


def test_patterns_and_functions():
    """A regular expression matches tokens; a function returns strings or (start, end)."""
    assert names("a-b c", tokens=r"[a-z]-[a-z]|\w") == ["'a-b'", "'c'"]
    assert names("a-b c", tokens=re.compile("b")) == ["'b'"]
    assert names("one two", tokens=str.split) == ["'one'", "'two'"]
    assert names("one two", tokens=lambda text: [(0, 3)]) == ["'one'"]
    with pytest.raises(ValueError, match="in order"):
        read_text("one two", tokens=lambda text: ["two", "one"])
    with pytest.raises(ValueError, match="in order and without overlap"):
        read_text("one two", tokens=lambda text: [(0, 3), (2, 4)])
    with pytest.raises(ValueError, match="a regular expression or a function; got"):
        read_text("one", tokens="(")


@given(text=st.text(min_size=1), tokens=st.sampled_from(["word", "char", "sentence", r"\w"]))
def test_showing_everything_gives_the_text_itself(text, tokens):
    """For any text; with all tokens hidden only the separators are left."""
    try:
        scene = read_text(text, tokens=tokens, bag=False)
    except ValueError:
        return
    shown, hidden = scene.inputs(np.array([np.ones(scene.n_features), np.zeros(scene.n_features)]))
    left = "".join(p for p, owner in zip(scene.pieces, scene.owners, strict=True) if owner < 0)

    assert shown == text == scene.text
    assert hidden == left


def test_hiding_changes_nothing_else():
    """Line ends, spaces and marks around a hidden word stay."""
    text = "A\u200f b,\r\n\tb  c"
    scene = read_text(text)
    assert scene.inputs(np.array([[1.0, 0, 1]])) == ["A\u200f ,\r\n\t  c"]

    masked = read_text(text, hide="[MASK]")
    assert masked.inputs(np.array([[1.0, 0, 1]])) == ["A\u200f [MASK],\r\n\t[MASK]  c"]


def test_bags_and_positions():
    """All occurrences together, with their number, or each one separately."""
    assert names("a b a a") == ["'a' x3", "'b'"]
    assert names("a b a", bag=False) == ["'a' #1", "'b'", "'a' #2"]


def test_long_documents_are_cut_into_sentences():
    """With a warning; `most=None` keeps the words."""
    text = " ".join(f"w{k}a w{k}b w{k}c." for k in range(400))
    with pytest.warns(UserWarning, match="400 sentences are explained instead"):
        scene = read_text(text)
    assert scene.n_features == 400
    assert read_text(text, most=None).n_features == 1200


def test_the_warning_counts_different_words_only_where_they_are_counted_together():
    """Ten occurrences of two words are 2 different words, or 10 words."""
    text = "one two. " * 5
    with pytest.warns(UserWarning, match="has 2 different words, more than"):
        read_text(text, most=1)
    with pytest.warns(UserWarning, match="has 10 words, more than"):
        read_text(text, most=5, bag=False)


def test_long_texts_without_full_stops_are_cut_into_chunks():
    """5,000 words without a sentence become chunks of about 20, which together are the text."""
    text = " ".join(f"word{k}" for k in range(5000))
    with pytest.warns(UserWarning, match=r"its 250 chunks are explained instead"):
        scene = read_text(text)
    assert scene.n_features == 250
    assert scene.text == text
    assert {len(piece.split()) for piece in scene.pieces if piece.strip()} == {20}

    with pytest.warns(UserWarning, match=r"its 30 chunks are"):
        assert read_text(text, most=30).n_features == 30
    many = " ".join(f"a{k} b{k}." for k in range(1000))
    with pytest.warns(UserWarning, match=r"its 100 chunks"):
        assert read_text(many).n_features == 100


def test_scripts_without_spaces_give_a_warning():
    """For Thai as one word; not for a function that finds the words."""
    thai = "ฉันรักภาพยนตร์เรื่องนี้"
    with pytest.warns(UserWarning, match="script without spaces"):
        assert read_text(thai).n_features == 1
    assert read_text(thai, tokens=lambda text: ["ฉัน", "รัก"]).n_features == 2
    assert read_text("ฉัน รัก เธอ").n_features == 3
    assert read_text(thai, tokens="char").n_features > 5


def test_warnings_about_texts_point_at_the_caller():
    """Not at a line of the library."""
    text = " ".join(f"w{k}a w{k}b." for k in range(300))
    explainer = eblime.TextExplainer(lambda texts: [len(t) for t in texts], n_masks=900)
    with pytest.warns(UserWarning, match="300 sentences are explained instead") as caught:
        explainer.explain(text)

    assert caught[0].filename == __file__


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_texts_in_rows_of_a_table(library):
    """The column "text" of a row of any library; other entries are read as they are."""
    package = pytest.importorskip(library)
    columns = {"text": ["a good day"], "label": [1]}
    table = package.table(columns) if library == "pyarrow" else package.DataFrame(columns)
    explainer = eblime.TextExplainer(lambda texts: [float(len(text)) for text in texts])

    assert explainer.input_of(table) == "a good day"
    assert explainer.input_of("a good day") == "a good day"
    assert explainer.input_of({"text": "a good day"}) == "a good day"
    for entry in (float("nan"), None, ["a", "b"]):
        with pytest.raises(TypeError, match="`text` must be a string"):
            explainer.subject(explainer.input_of(entry))


@pytest.mark.parametrize("settings", [{}, {"bag": False}, {"hide": "[MASK]"}, {"tokens": "char"}])
def test_texts_are_those_of_joining_every_piece(monkeypatch, rng, settings):
    """However many texts are joined at a time."""
    monkeypatch.setattr("eblime.domains.text._BLOCK", 100)
    text = "\u202bOne two,  two\n three -- four \ud800 five; six seven eight nine ten (two)?\r\n"
    scene = read_text(text, **settings)
    masks = rng.integers(0, 2, size=(50, scene.n_features)).astype(float)
    wanted = [
        "".join(
            piece if owner < 0 or row[owner] else scene.mask
            for piece, owner in zip(scene.pieces, scene.owners, strict=True)
        )
        for row in masks
    ]

    assert scene.inputs(masks) == wanted
    assert scene.inputs(np.ones((1, scene.n_features))) == [text]
    assert scene.inputs(masks[:0]) == []


@pytest.mark.parametrize(
    "sentences",
    [
        ["Dr. Smith met Mrs. J. Doe in the U.S. on Monday.", "They left at 5 p.m.", "It rained."],
        ["They saw ships, e.g. in St. Louis, etc. and left.", "See No. 5, Fig. 3 and p. 7."],
        ["No.", "It opened in 1889.", "Then it closed.", "He lives in the U.S.", "He works."],
        ["1. First item.", "2. Second one", "- a bullet", "- another bullet."],
        ["Steps:", "* one", "* two."],
    ],
)
@pytest.mark.parametrize("between", [" ", "\n"])
def test_sentences_end_where_a_reader_ends_them(sentences, between):
    """Not after titles, initials, abbreviations and numbers of lists, and before bullets."""
    listed = any(sentence[:2] in ("1.", "- ", "* ") for sentence in sentences)
    text = ("\n" if listed else between).join(sentences)

    assert [text[a:b] for a, b in find_spans(text, "sentence")] == sentences
