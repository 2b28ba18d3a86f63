"""Perturbed inputs that repeat, found by one hash of all of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from eblime._types import IntArray

Words = NDArray[np.uint64]
_HALF = np.uint64(32)  # bits


def first_equal(n: int, words_of: Callable[[IntArray], Words], room: int = 1 << 10) -> IntArray:
    """For each of n inputs, the number of the first one that is equal to it.

    Parameters
    ----------
    n
        Number of inputs.
    words_of
        From m numbers of inputs to what decides them, (m, k) words.
    room
        How many inputs have their words in memory at once; few stay in the processor's cache.

    Notes
    -----
    The hash of an input is the sum of its words times random odd numbers, modulo 2^64. Inputs with
    the same hash are compared by their words; should two of them differ, all are compared.

    Examples
    --------
    >>> words = np.array([[1, 2], [3, 4], [1, 2]], dtype=np.uint64)
    >>> first_equal(3, words.__getitem__)
    array([0, 1, 0])
    """
    numbers = np.arange(n)
    hashes = np.concatenate([_hashes(words_of(some)) for some in _pieces(numbers, room)])
    ordered = np.sort(hashes)
    if (ordered[1:] != ordered[:-1]).all():  # the usual case, and faster than sorting numbers
        return numbers
    _, first, group = np.unique(hashes, return_index=True, return_inverse=True)
    found = first[group]
    repeated = np.flatnonzero(found != numbers)
    if all((words_of(k) == words_of(found[k])).all() for k in _pieces(repeated, room)):
        return found
    _, first, group = np.unique(words_of(numbers), axis=0, return_index=True, return_inverse=True)
    return np.asarray(first[group.ravel()])


def _pieces(numbers: IntArray, room: int) -> list[IntArray]:
    """Numbers in pieces that fit into memory; at least one piece."""
    return [numbers[k : k + room] for k in range(0, max(1, len(numbers)), room)]


def _hashes(words: Words) -> Words:
    """One word for each row of words; small whole numbers, as floats, have few bits that differ."""
    return (words ^ (words >> _HALF)) @ _multipliers(words.shape[1])


@lru_cache(maxsize=64)
def _multipliers(k: int) -> Words:
    """Random odd numbers of 64 bits, always the same."""
    return np.random.default_rng(0).integers(0, 2**64, size=k, dtype=np.uint64) | np.uint64(1)
