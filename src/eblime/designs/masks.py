"""Designs that decide all masks at once: coin tosses, complementary pairs, sizes, all masks."""

from __future__ import annotations

import numpy as np

from eblime._types import FloatArray

__all__ = ["MOST_EXHAUSTIVE", "bernoulli", "exhaustive", "is_exhaustive", "paired", "sizes"]

MOST_EXHAUSTIVE = 20  # features that an exhaustive design may have: a million masks


def bernoulli(rng: np.random.Generator, n_masks: int, p: int) -> FloatArray:
    """Show or hide each feature by a fair coin; the input itself is the first row.

    Examples
    --------
    >>> bernoulli(np.random.default_rng(0), 100, 4)[0]
    array([1., 1., 1., 1.])
    """
    masks = rng.integers(0, 2, size=(n_masks, p)).astype(np.float64)
    masks[0] = 1
    return masks


def paired(rng: np.random.Generator, n_masks: int, p: int) -> FloatArray:
    """Coin tosses and their complements in turn: all features are shown equally often.

    What is even in the complement, such as interactions of two features, cancels out of the
    importances, which halves their error for models that have many.
    """
    half = bernoulli(rng, (n_masks + 1) // 2, p)
    return np.stack([half, 1 - half], axis=1).reshape(-1, p)[:n_masks]


def exhaustive(rng: np.random.Generator, n_masks: int, p: int) -> FloatArray:
    """All 2^p masks, whatever `n_masks` is: no sampling error is left. The input is the last row.

    Row k shows feature j where bit j of k is set.
    """
    if p > MOST_EXHAUSTIVE:
        raise ValueError(
            f"An exhaustive design must have at most {MOST_EXHAUSTIVE} features; got {p}, which is "
            f"2^{p} masks. Take design='bernoulli' or fewer segments."
        )
    return ((np.arange(2**p)[:, None] >> np.arange(p)) & 1).astype(np.float64)


def sizes(rng: np.random.Generator, n_masks: int, p: int) -> FloatArray:
    """Hide a number of features that is uniform on 1 .. p, chosen at random: lime's for texts.

    The input itself is the first row.
    """
    keys = rng.random((n_masks, p))
    hidden = rng.integers(1, p + 1, size=n_masks)
    limit = np.take_along_axis(np.sort(keys, axis=1), hidden[:, None] - 1, axis=1)
    masks = (keys > limit).astype(np.float64)
    masks[0] = 1
    return masks


def is_exhaustive(masks: FloatArray) -> bool:
    """Whether the masks are all 2^p masks, each once."""
    n, p = masks.shape
    if p > MOST_EXHAUSTIVE or n != 2**p or not np.isin(masks, (0, 1)).all():
        return False
    return bool(len(np.unique(masks @ 2.0 ** np.arange(p))) == n)
