"""Perturbed inputs that repeat."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import eblime
from eblime.domains import repeats
from eblime.domains.repeats import first_equal
from eblime.protocols import ALL_HIDDEN, INPUT_ITSELF


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


@pytest.mark.parametrize("words", [5, 64, 150])
def test_masks_repeat_where_their_keys_do(words):
    """The input itself and everything hidden among them."""
    rng = np.random.default_rng(1)
    text = " ".join(f"w{k}" for k in range(words))
    empty = eblime.TextExplainer(lambda texts: [0.0] * len(texts)).subject(text).neighbourhood(rng)
    masks = rng.integers(0, 2, (40, words)).astype(float)
    masks[3], masks[4] = 1.0, 0.0
    near = empty.extend(rng, np.concatenate([masks, masks[::-1]]))
    rows = np.array([INPUT_ITSELF, ALL_HIDDEN, *range(80)])

    assert_array_equal(near.repeats(rows), first_by_keys(near.keys(rows)))
