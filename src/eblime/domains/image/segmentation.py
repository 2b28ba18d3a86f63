"""Segmentation: cutting an image into superpixels, labelled 0 .. p - 1.

Large images are segmented on a smaller copy, so a photo of 12 megapixels takes a second or two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eblime._types import FloatArray
from eblime.domains.composite import Labels, Segmenter, even_blocks

__all__ = ["SEGMENTATIONS", "SEGMENTER", "segment", "three_channels"]

LONGEST = 512  # pixels on the longer side of the copy that is segmented


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
    return even_blocks(image.shape[:2], (rows, columns))


SEGMENTATIONS: dict[str, Callable[..., Labels]] = {
    "slic": slic,
    "quickshift": quickshift,
    "felzenszwalb": felzenszwalb,
    "grid": grid,
}

SEGMENTER = Segmenter(
    kind="image",
    features="superpixels",
    sides="(H, W)",
    sides_in_words="height and width",
    element="pixel",
    known=SEGMENTATIONS,
    regular="grid",
    factor=lambda sides: -(-max(sides) // LONGEST),
)
segment = SEGMENTER.segment


def three_channels(image: NDArray[Any]) -> NDArray[Any]:
    """Grey becomes RGB, as in lime; of more than three channels the first three are used."""
    return image[..., [0, 0, 0]] if image.shape[-1] < 3 else image[..., :3]
