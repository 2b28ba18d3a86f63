"""Keys of perturbed rows."""

import numpy as np
import pandas as pd
import pytest

from eblime.domains.tabular.frames import row_keys


@pytest.mark.parametrize("p", [1, 4, 5, 30])
def test_rows_have_the_same_key_if_and_only_if_they_are_equal(p):
    """All bits count."""
    rows = np.random.default_rng(0).integers(0, 3, (2_000, p)).astype(float)
    numbers = np.unique(rows, axis=0, return_inverse=True)[1].ravel()
    keys = row_keys(rows)

    assert len(set(keys)) == len(set(numbers))
    assert len(set(zip(keys, numbers, strict=True))) == len(set(keys))
    assert {len(key) for key in keys} == {8 * p}


def test_the_place_of_a_value_counts():
    """Rows with the same values in other columns differ."""
    assert len(set(row_keys(3.0 * np.eye(200)))) == 200


def test_keys_are_the_same_tomorrow():
    """They are stored in caches."""
    long = np.arange(10.0)[None]

    assert row_keys(long)[0] == long.tobytes()
    assert row_keys(pd.DataFrame(long)) == row_keys(long)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_key_depends_on_no_other_row(library):
    """Also where other rows have missing values, or numbers that floats cannot tell apart."""
    package = pytest.importorskip(library)
    columns = {
        "whole": [2**60, 2**60 + 1, None, 3],
        "flag": [True, False, True, None],
        "kind": ["a", None, "b", "a"],
        "x": [0.5, None, 2.0, 0.5],
    }
    if library == "pandas":
        frame = pd.DataFrame(columns).astype({"whole": "Int64", "flag": "boolean"})
        pieces = [frame.iloc[k : k + 1] for k in range(4)]
    else:
        frame = package.table(columns) if library == "pyarrow" else package.DataFrame(columns)
        pieces = [frame.slice(k, 1) for k in range(4)]
    keys = row_keys(frame)

    assert keys == [key for piece in pieces for key in row_keys(piece)]
    assert len(set(keys)) == 4
