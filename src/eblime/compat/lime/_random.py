"""Random states as lime takes them: the legacy generators of NumPy, so that draws are the same."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["as_random_state"]


def as_random_state(seed: Any) -> np.random.RandomState:
    """A `RandomState`: the given one, one with that seed, or NumPy's global one for None."""
    if isinstance(seed, np.random.RandomState):
        return seed
    if seed is None or seed is np.random:
        found: np.random.RandomState = np.random.random_sample.__self__  # type: ignore[attr-defined]
        return found
    if isinstance(seed, (int, np.integer)) and not isinstance(seed, bool):
        return np.random.RandomState(seed)
    raise ValueError(
        f"`random_state` must be a whole number, a numpy RandomState or None; got {seed!r:.60}."
    )
