"""Models that scale uint8 images to [0, 1]."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from eblime._warn import warn_user

__all__ = ["ScalesUint8", "warn_unscaled"]


@runtime_checkable
class ScalesUint8(Protocol):
    """A model that may divide uint8 images by 255 and takes all others as they are."""

    @property
    def scales_uint8(self) -> bool:
        """Whether it does."""
        ...


def warn_unscaled(model: Any, pixels: NDArray[Any]) -> None:
    """Warn about an image that looks like 0 to 255 if the model scales only uint8 images."""
    if not isinstance(model, ScalesUint8) or not model.scales_uint8:
        return
    if pixels.dtype == np.uint8 or pixels.dtype == bool:
        return
    low, high = pixels.min(), pixels.max()
    if low >= 0 and high > 2:  # standardised images have negative numbers
        warn_user(
            f"{type(model).__name__} divides uint8 images by 255 and takes others as they are; "
            f"this image of {pixels.dtype} has numbers from {low:g} to {high:g}. If the network "
            "expects 0 to 1, pass the image as uint8, or divide it by the largest possible number."
        )
