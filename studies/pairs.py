"""Complementary pairs of masks at random: what studies compare orthogonal masks with."""

from __future__ import annotations

from typing import Any

import numpy as np

from eblime.answers import Proposal
from eblime.designs import exhaustive
from eblime.designs.adaptive import in_pairs
from eblime.designs.masks import distinct_pairs


def paired(rng: np.random.Generator, n_masks: int, p: int) -> Any:
    """The input itself and everything hidden, then pairs that are all equally likely.

    No mask comes twice. Weights correct for the first pair, which is always asked. All 2^p masks
    where `n_masks` allows it.

    Examples
    --------
    >>> paired(np.random.default_rng(0), 4, 3).masks.sum(axis=0)
    array([2., 2., 2.])
    """
    if n_masks >= 2**p:
        return exhaustive(rng, n_masks, p)
    half = distinct_pairs(lambda n: rng.integers(0, 2, size=(n, p)) == 1, n_masks // 2 + 1, p)
    half = rng.permutation(half[half.any(axis=1) & ~half.all(axis=1)])
    flips = rng.integers(0, 2, size=(len(half), 1)) == 1
    masks = np.concatenate([in_pairs(np.ones((1, p))), in_pairs(1.0 * (half ^ flips))])[:n_masks]
    others = (2**p - 2) / max(1, n_masks - 2)  # masks for each that is asked
    weights = np.where(np.arange(len(masks)) < 2, 1.0, others) * n_masks / 2**p
    return Proposal(masks=masks, sampling_weights=weights)


def design_named(name: str) -> Any:
    """The design of a study's option: "paired", or a name that the library knows."""
    return paired if name == "paired" else name


def method_named(name: str) -> Any:
    """A method for `compare`: "lime", or "lime+paired" with a design."""
    method, _, design = name.partition("+")
    return (method, paired) if design == "paired" else name
