"""The generator that an explanation was fitted with, in the state before the fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["generator_in", "plain_state"]

_KINDS = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")  # the bit generators of NumPy


def generator_in(state: Mapping[str, Any] | None) -> np.random.Generator:
    """A generator in the given state; that of seed 0 if None.

    Examples
    --------
    >>> rng = np.random.Generator(np.random.Philox(3))
    >>> generator_in(rng.bit_generator.state).random() == rng.random()
    True
    """
    if state is None:
        return np.random.default_rng(0)
    kind = state.get("bit_generator") if isinstance(state, Mapping) else None
    if kind not in _KINDS:
        raise ValueError(
            f"`generator` must be the state of one of {', '.join(_KINDS)}; got {kind!r:.40}."
        )
    bits = getattr(np.random, kind)(0)
    bits.state = state
    return np.random.Generator(bits)


def plain_state(state: Any) -> Any:
    """The state of a generator with lists in place of arrays, as files have it."""
    if isinstance(state, Mapping):
        return {name: plain_state(part) for name, part in state.items()}
    return state.tolist() if isinstance(state, np.ndarray) else state
