"""Perturbed inputs that repeat."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

import eblime
from eblime.domains import repeats
from eblime.domains.repeats import first_equal
from eblime.protocols import INPUT_ITSELF


def first_by_keys(keys):
    """The slow twin."""
    return [keys.index(key) for key in keys]


@pytest.mark.parametrize("k", [1, 3, 40])
def test_the_first_equal_row_is_found(k):
    """Also in pieces, and for floats of small whole numbers, whose low bits are all zero."""
    rows = np.random.default_rng(0).integers(0, 2, (300, k)).astype(float)
    words = rows.view(np.uint64)
    expected = first_by_keys([row.tobytes() for row in rows])

    assert_array_equal(first_equal(300, words.__getitem__), expected)
    assert_array_equal(first_equal(300, words.__getitem__, room=7), expected)


def test_small_whole_numbers_have_different_hashes():
    """With few collisions the exact comparison stays rare."""
    rows = np.array(np.meshgrid(*[np.arange(8.0)] * 4)).reshape(4, -1).T.copy()

    assert len(np.unique(repeats._hashes(rows.view(np.uint64)))) == len(rows)


def test_rows_with_the_same_hash_are_not_merged(monkeypatch):
    """Should all hashes be the same, the rows themselves decide."""
    monkeypatch.setattr(repeats, "_hashes", lambda words: np.zeros(len(words), dtype=np.uint64))
    words = np.array([[1, 2], [2, 1], [1, 2], [2, 1]], dtype=np.uint64)

    assert_array_equal(first_equal(4, words.__getitem__), [0, 1, 0, 1])


def tables(kind):
    """A table whose rows repeat, and a row of it or one with values that are new."""
    rng = np.random.default_rng(2)
    whole, text = rng.integers(-2, 3, (90, 3)), rng.choice(["a", "b"], (90, 2))
    mixed = pd.DataFrame(whole, columns=["i", "j", "k"]).astype({"j": float}).assign(t=text[:, 0])
    mixed["flag"], mixed["kind"] = whole[:, 0] > 0, pd.Categorical(text[:, 1])
    mixed.loc[3, "j"] = np.nan
    objects = np.array([[1, "a"], [True, "a"], [None, "b"], [1, "b"]] * 20, dtype=object)
    return {
        "whole": (whole, whole[0]),
        "fractions": (whole, [0.5, 1, 2]),
        "floats": (whole.astype(float), whole[5]),
        "objects": (objects, objects[1]),
        "frame": (mixed, mixed.iloc[3]),
        "new": (mixed, {**mixed.iloc[0].to_dict(), "t": "c", "kind": "new", "j": 7.0}),
        "frame of floats": (mixed[["j"]].assign(z=0.5 * whole[:, 0]), [1.0, 0.5]),
    }[kind]


@pytest.mark.parametrize("design", [None, "bernoulli"])
@pytest.mark.parametrize("perturb", ["bins", "normal", "rows"])
@pytest.mark.parametrize(
    "kind", ["whole", "fractions", "floats", "objects", "frame", "new", "frame of floats"]
)
def test_rows_repeat_where_their_keys_do(kind, perturb, design):
    """What the model sees decides."""
    background, row = tables(kind)
    explainer = eblime.TabularExplainer(len, background, perturb=perturb, design=design)
    rng = np.random.default_rng(0)
    near = explainer.subject(row).neighbourhood(rng)
    wanted = 1200 if design is None else rng.integers(0, 2, (1200, near.n_features))
    near = near.extend(rng, wanted)
    rows = np.array([INPUT_ITSELF, *range(1200)])
    found, expected = near.repeats(rows), first_by_keys(near.keys(rows))

    if found is None:
        assert kind in ("fractions", "new")  # the words of the background are of other dtypes
    else:
        assert_array_equal(found, expected)
    assert len(set(expected)) < 1200 or perturb == "normal"


@pytest.mark.parametrize("representation", ["continuous", "continuous-mean"])
def test_whole_numbers_from_normal_distributions_repeat(representation):
    """0 and -0 are the same whole number."""
    background, row = tables("whole")
    explainer = eblime.TabularExplainer(len, background, representation=representation)
    rng = np.random.default_rng(0)
    near = explainer.subject(row).neighbourhood(rng).extend(rng, 900)
    rows = np.arange(900)

    assert_array_equal(near.repeats(rows), first_by_keys(near.keys(rows)))


@pytest.mark.parametrize("perturb", ["bins", "normal"])
def test_rows_of_many_fractions_are_not_compared(perturb, monkeypatch):
    """They do not repeat: only the first one is the row itself."""
    data = np.random.default_rng(0).normal(size=(500, 12))
    rng = np.random.default_rng(1)
    near = eblime.TabularExplainer(len, data, perturb=perturb).subject(data[0]).neighbourhood(rng)
    near = near.extend(rng, 2000)
    monkeypatch.setattr(repeats, "_hashes", None)
    found = near.repeats(np.array([INPUT_ITSELF, *range(2000)]))

    assert_array_equal(found, [0, 0, *range(2, 2001)])


@pytest.mark.parametrize("perturb", ["bins", "normal", "rows"])
@pytest.mark.parametrize("kind", ["whole", "frame", "new"])
def test_few_rows_are_the_first_of_many(kind, perturb):
    """A block that is not needed whole is not drawn whole."""
    background, row = tables(kind)
    subject = eblime.TabularExplainer(len, background, perturb=perturb).subject(row)
    few, many = (
        subject.neighbourhood(np.random.default_rng(3)).extend(np.random.default_rng(0), n)
        for n in (70, 1500)
    )
    rows = np.arange(70)

    assert_array_equal(few.masks, many.masks[:70])
    assert few.keys(rows) == many.keys(rows)
    assert few.extend(np.random.default_rng(0), 1430).keys(rows) == many.keys(rows)
