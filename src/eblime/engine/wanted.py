"""The masks that a design wants to ask about: checked, completed and weighed."""

from __future__ import annotations

from typing import Any

import numpy as np

from eblime._checks import check_masks, check_weights
from eblime._types import FloatArray
from eblime._warn import warn_user
from eblime.answers import Proposal
from eblime.core.spectrum import effective_size
from eblime.kernels import as_kernel
from eblime.protocols import Kernel

__all__ = ["checked_masks", "weights_of", "with_ends"]


def with_ends(wanted: Any, p: int) -> Any:
    """The masks of the first round, and those of both ends that are missing, with weight zero."""
    if isinstance(wanted, (int, np.integer)):
        return wanted
    masks = checked_masks(wanted.masks if isinstance(wanted, Proposal) else wanted, p)
    sampling = wanted.sampling_weights if isinstance(wanted, Proposal) else np.ones(len(masks))
    ends = [np.full(p, end) for end in (1.0, 0.0) if not (masks == end).all(axis=1).any()]
    if not ends:
        return wanted
    return Proposal(
        masks=np.concatenate([masks, ends]),
        sampling_weights=np.concatenate([sampling, np.zeros(len(ends))]),
    )


def checked_masks(masks: Any, p: int) -> FloatArray:
    """Masks of a design, which may be the user's: (n, p) zeros and ones, made read-only."""
    checked = check_masks(masks).copy()
    if checked.shape[1] != p or not np.isin(checked, (0, 1)).all():
        raise ValueError(
            f"`design` must return zeros and ones of shape (N, {p}); got shape {checked.shape} "
            f"with values from {checked.min():g} to {checked.max():g}."
        )
    checked.flags.writeable = False
    return checked


def weights_of(
    kernel: str | Kernel | None, closeness: FloatArray, sampling: FloatArray, *, warn: bool
) -> FloatArray:
    """Weights of perturbed inputs: kernel times sampling weights; warns if too few carry weight."""
    n, p = closeness.shape
    weights = check_weights(as_kernel(kernel)(closeness), n) * sampling
    counting = min(int(np.count_nonzero(weights)), round(effective_size(weights)))
    if warn and counting < p:
        warn_user(
            f"There are more features ({p}) than masks that count ({counting}): expect wide "
            "intervals. Ask for more masks, cut the input into fewer features, or use a wider "
            "kernel."
        )
    return weights
