"""Rows that are perturbed within bins, as in the paper: what lime asks about a table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from eblime._types import FloatArray


def binned_rows(
    rng: np.random.Generator, table: pd.DataFrame, row: Any, n: int
) -> tuple[FloatArray, pd.DataFrame]:
    """N rows with the values of each column from random rows of a table, and their masks.

    A mask says which values are in the quartile of the row's own, or equal to it in a column of
    text and of two numbers. The first row is the explained one.
    """
    masks, drawn = np.empty((n, table.shape[1])), {}
    for j, name in enumerate(table):
        values, own = table[name].to_numpy(), row[name]
        taken = values[rng.integers(len(values), size=n)]
        taken[0] = own
        drawn[name] = taken
        if values.dtype.kind in "uif" and len(np.unique(values)) > 2:
            edges = np.unique(np.percentile(values, (25, 50, 75)))
            masks[:, j] = np.searchsorted(edges, taken) == np.searchsorted(edges, own)
        else:
            masks[:, j] = taken == own
    return masks, pd.DataFrame(drawn)
