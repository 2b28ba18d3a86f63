"""Cutting a picture into superpixels, labelled 0 .. p - 1 whatever the algorithm says.

Large pictures are cut on a smaller copy, so that a 12-megapixel photo takes a second or two.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eblime._checks import check_choice, check_count
from eblime._types import FloatArray

__all__ = ["SEGMENTATIONS", "check_segmentation", "segment"]

LONGEST = 512  # pixels of the longer side of the copy that is cut

Labels = NDArray[np.intp]
Segmentation = str | tuple[str, Mapping[str, Any]] | NDArray[Any] | Callable[..., Any]


def slic(picture: FloatArray, **params: Any) -> Labels:
    """Clusters of colour and place, about 50 of them; scikit-image's `slic`."""
    from skimage import segmentation

    settings = {"n_segments": 50, "compactness": 10.0, "sigma": 1.0, **params}
    return np.asarray(segmentation.slic(picture, start_label=0, channel_axis=-1, **settings))


def quickshift(picture: FloatArray, **params: Any) -> Labels:
    """Modes of colour and place, with lime's parameters; scikit-image's `quickshift`."""
    from skimage import segmentation

    settings = {"kernel_size": 4, "max_dist": 200, "ratio": 0.2, **params}
    return np.asarray(segmentation.quickshift(_three_channels(picture), **settings))


def felzenszwalb(picture: FloatArray, **params: Any) -> Labels:
    """Regions of even colour; scikit-image's `felzenszwalb`."""
    from skimage import segmentation

    smallest = max(1, picture.shape[0] * picture.shape[1] // 500)
    settings = {"scale": 300.0, "sigma": 0.8, "min_size": smallest, **params}
    return np.asarray(segmentation.felzenszwalb(picture, channel_axis=-1, **settings))


def grid(picture: NDArray[Any], *, rows: int = 7, columns: int = 7) -> Labels:
    """Equal rectangles, 7 by 7 of them."""
    height, width = picture.shape[:2]
    down = np.arange(height) * min(rows, height) // height
    across = np.arange(width) * min(columns, width) // width
    return np.asarray(down[:, None] * min(columns, width) + across)


SEGMENTATIONS: dict[str, Callable[..., Labels]] = {
    "slic": slic,
    "quickshift": quickshift,
    "felzenszwalb": felzenszwalb,
    "grid": grid,
}


def check_segmentation(segmentation: Segmentation) -> None:
    """Refuse an unknown name or parameter, and what is no segmentation at all."""
    if isinstance(segmentation, str):
        check_choice("segmentation", segmentation, tuple(SEGMENTATIONS))
    elif isinstance(segmentation, tuple):
        _named(segmentation)
    elif not callable(segmentation) and np.ndim(segmentation) != 2:
        raise TypeError(
            "`segmentation` must be a name, (name, {parameter: value}), an array of labels (H, W) "
            f"or a function; got {segmentation!r:.80}."
        )


def segment(image: NDArray[Any], segmentation: Segmentation) -> Labels:
    """Cut an image, (H, W, C), into segments labelled 0 .. p - 1, (H, W).

    `segmentation` is a name, a name with a dictionary of parameters, an array of labels, or a
    function from the picture, (H, W, C) floats in [0, 1] without alpha, to labels.
    """
    if isinstance(segmentation, str):
        segmentation = (segmentation, {})
    if isinstance(segmentation, tuple):
        name, params = _named(segmentation)
        labels = _cut(image, name, params)
    elif callable(segmentation):
        labels = np.asarray(segmentation(_picture(image)))
    else:
        labels = np.asarray(segmentation)
    return _relabelled(labels, image.shape[:2])


def _named(segmentation: tuple[str, Mapping[str, Any]]) -> tuple[str, Mapping[str, Any]]:
    """Check a name and its parameters against what the algorithm takes."""
    if len(segmentation) != 2 or not isinstance(segmentation[1], Mapping):
        raise TypeError(
            "`segmentation` must be a name, (name, {parameter: value}), an array of labels or a "
            f"function; got {segmentation!r}."
        )
    name, params = segmentation
    check_choice("segmentation", name, tuple(SEGMENTATIONS))
    if name == "grid":
        taken = [p for p in inspect.signature(grid).parameters if p != "picture"]
    else:
        from skimage import segmentation as algorithms

        ours = {"image", "start_label", "channel_axis"}
        signature = inspect.signature(getattr(algorithms, name))
        taken = [p for p in signature.parameters if p not in ours]
    for key, value in params.items():
        check_choice(f"segmentation parameter of {name!r}", key, taken)
        if name == "grid":
            check_count(key, value)
    return name, params


def _cut(image: NDArray[Any], name: str, params: Mapping[str, Any]) -> Labels:
    """Cut by name: a smaller copy where the image is large, the labels enlarged again."""
    if name == "grid":
        return grid(image, **params)
    height, width = image.shape[:2]
    factor = -(-max(height, width) // LONGEST)
    rows, columns = -(-height // factor), -(-width // factor)
    if factor > 1:
        padding = ((0, rows * factor - height), (0, columns * factor - width), (0, 0))
        blocks = np.pad(image, padding, mode="edge").reshape(rows, factor, columns, factor, -1)
        image = blocks.mean(axis=(1, 3)) / (255 if image.dtype == np.uint8 else 1)
    if (image == image[0, 0]).all():
        raise ValueError(
            f"The image must not be of one colour to be cut by segmentation={name!r}; every pixel "
            f"is {image[0, 0].tolist()}. Take segmentation='grid' or give your own labels."
        )
    labels = SEGMENTATIONS[name](_picture(image), **params)
    return np.asarray(labels.repeat(factor, axis=0).repeat(factor, axis=1)[:height, :width])


def _picture(image: NDArray[Any]) -> FloatArray:
    """The image as segmentations want it: (H, W, C) floats in [0, 1], alpha left out."""
    colours = image[..., :-1] if image.shape[-1] in (2, 4) else image
    values = colours.astype(np.float64)
    if image.dtype == np.uint8:
        return np.asarray(values / 255)
    low, high = values.min(), values.max()
    if image.dtype.kind == "f" and low >= 0 and high <= 1:
        return values
    return np.asarray((values - low) / (high - low) if high > low else values * 0)


def _relabelled(labels: NDArray[Any], shape: tuple[int, ...]) -> Labels:
    """Check labels and number them 0 .. p - 1."""
    if labels.shape != shape:
        raise ValueError(
            f"The segments must have the image's height and width {shape}; got {labels.shape}."
        )
    if not (np.issubdtype(labels.dtype, np.integer) or labels.dtype == bool):
        raise TypeError(f"The segments must be whole numbers; got dtype {labels.dtype}.")
    low, high = int(labels.min()), int(labels.max())
    if high - low > labels.size or high > np.iinfo(np.intp).max:  # too far apart for a table
        shifted = np.unique(labels, return_inverse=True)[1].reshape(shape)
    else:
        shifted = labels.astype(np.intp) - low
    present = np.bincount(shifted.ravel()) > 0
    numbered = (np.cumsum(present) - 1)[shifted]
    if present.sum() < 2:
        raise ValueError(
            "The segmentation must find at least 2 segments; got 1. Set its parameters, such as "
            "segmentation=('slic', {'n_segments': 50, 'compactness': 1.0}), or take 'grid'."
        )
    return np.asarray(numbered.reshape(shape), dtype=np.intp)


def _three_channels(picture: FloatArray) -> FloatArray:
    """Grey becomes RGB as lime has it; of more channels the first three are taken."""
    return picture[..., [0, 0, 0]] if picture.shape[-1] < 3 else picture[..., :3]
