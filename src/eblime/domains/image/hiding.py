"""What a hidden superpixel looks like."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from eblime._checks import as_floats, check_choice

__all__ = ["HIDES", "hidden_version"]

HIDES = ("mean", "blur")

Hide = str | float | tuple[float, ...] | NDArray[Any] | Callable[[NDArray[Any]], Any]


def hidden_version(image: NDArray[Any], labels: NDArray[np.intp], hide: Hide) -> NDArray[Any]:
    """The image, (H, W, C), with everything hidden: same shape and dtype.

    `hide` is "mean" (of each superpixel), "blur", a number or a colour (the paper: 0), a background
    of the image's shape, or a function from the image to one. Colours have the image's range: a
    float image in [0, 1] needs 0.5, not 128.
    """
    if isinstance(hide, str):
        check_choice("hide", hide, HIDES)
        return _like(image, _segment_means(image, labels) if hide == "mean" else _blurred(image))
    if callable(hide):
        return _background(image, hide(image.copy()), "the function `hide`")
    values = as_floats("hide", hide)
    if values.ndim <= 1:
        if values.ndim == 1 and len(values) != image.shape[-1]:
            raise ValueError(
                f"`hide` must be one number or one for each of the {image.shape[-1]} channels; "
                f"got {len(values)}."
            )
        return np.broadcast_to(_like(image, values), image.shape)
    return _background(image, hide, "`hide`")


def _segment_means(image: NDArray[Any], labels: NDArray[np.intp]) -> NDArray[Any]:
    """Mean colour of each superpixel, at each of its pixels."""
    flat = labels.ravel()
    counts = np.bincount(flat)
    means = [
        np.bincount(flat, weights=image[..., c].ravel()) / counts for c in range(image.shape[-1])
    ]
    return np.stack(means, axis=-1)[labels]


def _blurred(image: NDArray[Any]) -> NDArray[Any]:
    """A strong blur: three passes of a box a tenth of the image wide."""
    size = max(3, round(max(image.shape[:2]) / 10))
    blurred = image.astype(np.float64)
    for _ in range(3):
        blurred = ndimage.uniform_filter(blurred, size=(size, size, 1), mode="nearest")
    return blurred


def _background(image: NDArray[Any], background: Any, source: str) -> NDArray[Any]:
    """Check a background given by the user."""
    values = as_floats("hide", background)
    if values.ndim == 2 and image.shape[-1] == 1:
        values = values[..., None]
    if values.shape != image.shape:
        raise ValueError(
            f"The background from {source} must have the image's shape {image.shape} "
            f"(height, width, channels); got {values.shape}."
        )
    return _like(image, values)


def _like(image: NDArray[Any], values: NDArray[Any]) -> NDArray[Any]:
    """Values in the image's dtype: rounded for whole numbers, refused where they do not fit."""
    if not np.isfinite(values).all():
        raise ValueError("What hides a superpixel must be finite; `hide` has NaN or infinities.")
    if image.dtype == bool:
        return np.asarray(values >= 0.5)
    if np.issubdtype(image.dtype, np.integer):
        limits = np.iinfo(image.dtype)
        rounded = np.rint(values)
        if rounded.min() < limits.min or rounded.max() > limits.max:
            raise ValueError(
                f"`hide` must lie between {limits.min} and {limits.max} for an image of "
                f"{image.dtype}; got {rounded.min():g} to {rounded.max():g}."
            )
        return np.asarray(rounded, dtype=image.dtype)
    with np.errstate(over="ignore"):
        cast = np.asarray(values, dtype=image.dtype)
    if not np.isfinite(cast).all():
        raise ValueError(f"`hide` must fit an image of {image.dtype}; it has larger numbers.")
    low, high = cast.min(), cast.max()
    if (low < -1 or high > 2) and image.min() >= 0 and image.max() <= 1:
        raise ValueError(
            "`hide` must fit the image, whose numbers lie between 0 and 1; got "
            f"{low:g} to {high:g}. Divide a colour of 0 to 255 by 255."
        )
    return cast
