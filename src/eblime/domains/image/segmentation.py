"""Segmentation: cutting an image into superpixels, labelled 0 .. p - 1.

Large images are segmented on a smaller copy, so a photo of 12 megapixels takes a second or two.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eblime._checks import check_choice, check_count
from eblime._types import FloatArray

__all__ = ["SEGMENTATIONS", "check_segmentation", "segment", "three_channels"]

LONGEST = 512  # pixels on the longer side of the copy that is segmented

Labels = NDArray[np.intp]
Segmentation = str | tuple[str, Mapping[str, Any]] | NDArray[Any] | Callable[..., Any]


def slic(image: FloatArray, **params: Any) -> Labels:
    """About 50 clusters by colour and position; scikit-image's `slic`.

    Compactness is relative to differences of colour in CIELAB, whose lightness is 0 to 100.
    Scikit-image converts only three channels to it: grey becomes RGB, and for other numbers of
    channels, which stay between 0 and 1, the compactness is scaled.
    """
    from skimage import segmentation

    settings = {"n_segments": 50, "compactness": 10.0, "sigma": 1.0, **params}
    if image.shape[-1] == 1:
        image = three_channels(image)
    elif image.shape[-1] != 3:
        settings["compactness"] *= np.sqrt(image.shape[-1]) / 100
    return np.asarray(segmentation.slic(image, start_label=0, channel_axis=-1, **settings))


def quickshift(image: FloatArray, **params: Any) -> Labels:
    """Modes of colour and position, with lime's parameters; scikit-image's `quickshift`."""
    from skimage import segmentation

    settings = {"kernel_size": 4, "max_dist": 200, "ratio": 0.2, **params}
    return np.asarray(segmentation.quickshift(three_channels(image), **settings))


def felzenszwalb(image: FloatArray, **params: Any) -> Labels:
    """Regions of similar colour; scikit-image's `felzenszwalb`."""
    from skimage import segmentation

    smallest = max(1, image.shape[0] * image.shape[1] // 500)
    settings = {"scale": 300.0, "sigma": 0.8, "min_size": smallest, **params}
    return np.asarray(segmentation.felzenszwalb(image, channel_axis=-1, **settings))


def grid(image: NDArray[Any], *, rows: int = 7, columns: int = 7) -> Labels:
    """Equal rectangles, 7 by 7 by default."""
    height, width = image.shape[:2]
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
    """Refuse an unknown name, an unknown parameter, or an object of another type."""
    if isinstance(segmentation, str):
        check_choice("segmentation", segmentation, tuple(SEGMENTATIONS))
    elif isinstance(segmentation, tuple):
        _check_options(segmentation)
    elif not callable(segmentation) and np.ndim(segmentation) != 2:
        raise TypeError(
            "`segmentation` must be a name, (name, {parameter: value}), an array of labels (H, W) "
            f"or a function; got {_describe(segmentation)}."
        )


def _describe(segmentation: Any) -> str:
    """An object of the wrong type in a message: the shape of an array, else its repr."""
    if isinstance(segmentation, np.ndarray):
        return f"an array of shape {segmentation.shape}"
    return f"{segmentation!r:.80}"


def segment(image: NDArray[Any], segmentation: Segmentation) -> Labels:
    """Cut an image into superpixels.

    Parameters
    ----------
    image
        The image, (H, W, C).
    segmentation
        Checked by `check_segmentation`: a name, a name with a dictionary of parameters, an array of
        labels, or a function from the image, as (H, W, C) floats in [0, 1] without alpha, to
        labels.

    Returns
    -------
    labels
        The superpixel of each pixel, 0 .. p - 1, (H, W).
    """
    if isinstance(segmentation, str):
        labels = _cut_image(image, segmentation, {})
    elif isinstance(segmentation, tuple):
        labels = _cut_image(image, *segmentation)
    elif callable(segmentation):
        labels = np.asarray(segmentation(_as_colours(image)))
    else:
        labels = np.asarray(segmentation)
    return _relabel(labels, image.shape[:2])


def _check_options(segmentation: tuple[str, Mapping[str, Any]]) -> None:
    """Check a name, and its parameters against the signature of the algorithm."""
    if len(segmentation) != 2 or not isinstance(segmentation[1], Mapping):
        raise TypeError(
            "`segmentation` must be a name, (name, {parameter: value}), an array of labels or a "
            f"function; got {segmentation!r}."
        )
    name, params = segmentation
    check_choice("segmentation", name, tuple(SEGMENTATIONS))
    if name == "grid":
        known = [p for p in inspect.signature(grid).parameters if p != "image"]
    else:
        from skimage import segmentation as algorithms

        ours = {"image", "start_label", "channel_axis"}
        signature = inspect.signature(getattr(algorithms, name))
        known = [p for p in signature.parameters if p not in ours]
    for key, value in params.items():
        _check_parameter(name, key, known)
        if name == "grid":
            check_count(key, value)


def _check_parameter(name: str, key: str, known: Sequence[str]) -> None:
    """Refuse a parameter that the segmentation does not have."""
    if key not in known:
        listed = ", ".join(repr(word) for word in known)
        raise ValueError(
            f"The parameters in `segmentation` must be those of {name!r}, {listed}; got {key!r}."
        )


def _cut_image(image: NDArray[Any], name: str, params: Mapping[str, Any]) -> Labels:
    """Cut by name; a large image is reduced first, and the labels are enlarged again."""
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
            f"The image must have more than one colour for segmentation={name!r}; every pixel is "
            f"{_describe_colour(image[0, 0])}. Use segmentation='grid' or pass your own labels."
        )
    try:
        labels = SEGMENTATIONS[name](_as_colours(image), **params)
    except Exception as error:  # scikit-image does not check its parameters
        raise ValueError(
            f"The segmentation {name!r} failed with the parameters {dict(params)!r}: "
            f"{type(error).__name__}: {error}."
        ) from error
    return np.asarray(labels.repeat(factor, axis=0).repeat(factor, axis=1)[:height, :width])


def _describe_colour(values: NDArray[Any]) -> str:
    """A pixel in a message: one number if its channels are equal, at most four of them."""
    if (values == values[0]).all():
        return str(values[0].item())
    shown = ", ".join(str(value) for value in values[:4].tolist())
    return f"[{shown}, ...]" if len(values) > 4 else f"[{shown}]"


def _as_colours(image: NDArray[Any]) -> FloatArray:
    """The image as segmentations expect it: (H, W, C) floats in [0, 1], without alpha."""
    colours = image[..., :-1] if image.shape[-1] in (2, 4) else image
    values = colours.astype(np.float64)
    if image.dtype == np.uint8:
        return np.asarray(values / 255)
    low, high = values.min(), values.max()
    if image.dtype.kind == "f" and low >= 0 and high <= 1:
        return values
    return np.asarray((values - low) / (high - low) if high > low else values * 0)


def _relabel(labels: NDArray[Any], shape: tuple[int, ...]) -> Labels:
    """Check labels and number them 0 .. p - 1."""
    if labels.shape != shape:
        raise ValueError(
            f"The labels must have the image's height and width {shape}; got {labels.shape}."
        )
    if not (np.issubdtype(labels.dtype, np.integer) or labels.dtype == bool):
        raise TypeError(f"The labels must be whole numbers; got dtype {labels.dtype}.")
    low, high = int(labels.min()), int(labels.max())
    far_apart = high - low > labels.size or high > np.iinfo(np.intp).max
    if far_apart:  # too far for a look-up table
        shifted = np.unique(labels, return_inverse=True)[1].reshape(shape)
    else:
        shifted = labels.astype(np.intp) - low
    present = np.bincount(shifted.ravel()) > 0
    numbered = (np.cumsum(present) - 1)[shifted]
    if present.sum() < 2:
        raise ValueError(
            "The segmentation must find at least 2 superpixels; got 1. Change its parameters, such "
            "as segmentation=('slic', {'compactness': 1.0}), or use 'grid'."
        )
    return np.asarray(numbered.reshape(shape), dtype=np.intp)


def three_channels(image: NDArray[Any]) -> NDArray[Any]:
    """Grey becomes RGB, as in lime; of more than three channels the first three are used."""
    return image[..., [0, 0, 0]] if image.shape[-1] < 3 else image[..., :3]
