"""Keys of perturbed rows."""

import numpy as np
import pandas as pd
import pytest

from eblime.domains.tabular.keys import row_keys


@pytest.mark.parametrize("p", [1, 4, 5, 30])
def test_rows_have_the_same_key_if_and_only_if_they_are_equal(p):
    """Short rows are their own keys; of long rows all bits count, also where most are zero."""
    rows = np.random.default_rng(0).integers(0, 3, (2_000, p)).astype(float)
    numbers = np.unique(rows, axis=0, return_inverse=True)[1].ravel()
    keys = row_keys(rows)

    assert len(set(keys)) == len(set(numbers))
    assert len(set(zip(keys, numbers, strict=True))) == len(set(keys))
    assert {len(key) for key in keys} == {8 * p if p <= 4 else 16}


def test_the_place_of_a_value_counts():
    """Rows with the same values in other columns differ."""
    assert len(set(row_keys(3.0 * np.eye(200)))) == 200


def test_keys_are_the_same_tomorrow():
    """They are stored in caches."""
    long = np.arange(10.0)[None]

    assert row_keys(long)[0].hex() == "2183538d8ecb68369d299115d4e7bb2a"
    assert row_keys(pd.DataFrame(long)) == row_keys(long)
