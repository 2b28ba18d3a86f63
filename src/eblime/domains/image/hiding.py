"""Hidden superpixels: what they show instead of the image."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from eblime._checks import as_floats

__all__ = ["HIDES", "hidden_version"]

HIDES = ("mean", "blur")

Hide = str | float | tuple[float, ...] | NDArray[Any] | Callable[[NDArray[Any]], Any]


def hidden_version(image: NDArray[Any], labels: NDArray[np.intp], hide: Hide) -> NDArray[Any]:
    """The image with everything hidden, in the same shape and dtype.

    Parameters
    ----------
    image
        The image, (H, W, C).
    labels
        The superpixel of each pixel, (H, W).
    hide
        "mean" (of each superpixel), "blur", a number or a colour (0 in the paper), another image of
        the same shape, or a function from the image to one. Numbers are in the image's range: for
        a float image in [0, 1] a medium grey is 0.5, not 128.
    """
    if isinstance(hide, str):
        return _like(image, _segment_means(image, labels) if hide == "mean" else _blur(image))
    if callable(hide):
        return _as_same_image(image, hide(image.copy()), "from the function `hide`")
    if hide is None:
        raise TypeError(
            "`hide` must be 'mean', 'blur', a number, a colour, an image or a function."
        )
    values = as_floats("hide", hide)
    if values.ndim <= 1:
        if values.ndim == 1 and len(values) != image.shape[-1]:
            raise ValueError(
                f"`hide` must be one number, or one for each of the {image.shape[-1]} channels; "
                f"got {len(values)}."
            )
        _refuse_fractions(image, values)
        return np.broadcast_to(_like(image, values), image.shape)
    return _as_same_image(image, hide, "in `hide`")


def _segment_means(image: NDArray[Any], labels: NDArray[np.intp]) -> NDArray[Any]:
    """An image in which every pixel has the mean colour of its superpixel."""
    flat = labels.ravel()
    counts = np.bincount(flat)
    means = [
        np.bincount(flat, weights=image[..., c].ravel()) / counts for c in range(image.shape[-1])
    ]
    return np.stack(means, axis=-1)[labels]


def _blur(image: NDArray[Any]) -> NDArray[Any]:
    """A strong blur: three box filters, each a tenth of the image wide."""
    size = max(3, round(max(image.shape[:2]) / 10))
    blurred = image.astype(np.float64)
    for _ in range(3):
        blurred = ndimage.uniform_filter(blurred, size=(size, size, 1), mode="nearest")
    return blurred


def _as_same_image(image: NDArray[Any], other: Any, source: str) -> NDArray[Any]:
    """Check an image that the user gives to show instead."""
    values = as_floats("hide", other)
    if values.ndim == 2 and image.shape[-1] == 1:
        values = values[..., None]
    if values.shape != image.shape:
        raise ValueError(
            f"The image {source} must have the shape of the explained one, {image.shape} "
            f"(height, width, channels); got {values.shape}."
        )
    _refuse_fractions(image, values)
    return _like(image, values)


def _refuse_fractions(image: NDArray[Any], values: NDArray[Any]) -> None:
    """Refuse colours of 0 to 1 for an image of larger whole numbers: all would be black.

    A whole image is allowed if the explained one is nearly black too, such as its blurred copy.
    """
    bright = image.max() if values.ndim <= 1 else image.mean()
    if image.dtype.kind not in "iu" or bright <= 1:
        return
    if values.min() >= 0 and values.max() <= 1 and (values % 1 != 0).any():
        raise ValueError(
            f"`hide` must be in the range of the image of {image.dtype}, whose numbers go up to "
            f"{image.max()}; got fractions, {values.min():g} to {values.max():g}. Multiply a "
            "colour of 0 to 1 by the largest possible number, such as 255."
        )


def _like(image: NDArray[Any], values: NDArray[Any]) -> NDArray[Any]:
    """Convert values to the image's dtype, rounded for integers; refuse those that do not fit."""
    if not np.isfinite(values).all():
        raise ValueError("`hide` must be finite; it has NaN or infinities.")
    if image.dtype == bool:
        return np.asarray(values >= 0.5)
    if np.issubdtype(image.dtype, np.integer):
        limits = np.iinfo(image.dtype)
        rounded = np.rint(values)
        if rounded.min() < limits.min or rounded.max() > limits.max:
            raise ValueError(
                f"`hide` must be between {limits.min} and {limits.max} for an image of "
                f"{image.dtype}; got {rounded.min():g} to {rounded.max():g}."
            )
        return np.asarray(rounded, dtype=image.dtype)
    with np.errstate(over="ignore"):
        cast = np.asarray(values, dtype=image.dtype)
    if not np.isfinite(cast).all():
        raise ValueError(f"`hide` must fit an image of {image.dtype}; its numbers are too large.")
    low, high = cast.min(), cast.max()
    if (low < -1 or high > 2) and image.min() >= 0 and image.max() <= 1:
        raise ValueError(
            "`hide` must be in the range of the image, whose numbers are between 0 and 1; got "
            f"{low:g} to {high:g}. Divide a colour of 0 to 255 by 255."
        )
    return cast
