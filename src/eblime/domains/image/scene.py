"""Images: superpixels as features, and what hidden ones show instead.

Large images are cut on a smaller copy, so a photo of 12 megapixels takes a second or two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from eblime import _field_checks as checks
from eblime._types import Columns, FloatArray
from eblime.domains import arrays
from eblime.domains.arrays import Channels, Hide, Labels, Segmentation
from eblime.domains.image.photo import Picture, is_photo, open_photo
from eblime.domains.record import Domain

LONGEST = 512  # pixels on the longer side of the copy that is segmented
_PLACES = (
    ("upper left", "top", "upper right"),
    ("left", "centre", "right"),
    ("lower left", "bottom", "lower right"),
)
_NAMES = {"start_row": "top", "start_column": "left", "stop_row": "bottom", "stop_column": "right"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ImageScene(arrays.ArrayScene):
    """An image cut into superpixels, in the layout and dtype that the model gets."""

    scores: Sequence[Mapping[str, Any]] = ()  # the boxes and regions that are targets, in order

    domain: ClassVar[str] = "image"

    @property
    def features(self) -> list[str]:
        """Names of the superpixels, with the part of the image: `superpixel 0, upper left`."""
        step = -(-max(self.labels.shape) // 512)  # a place in words needs no finer look
        labels = self.labels[::step, ::step]
        if step > 1 and not np.bincount(labels.ravel(), minlength=self.n_features).all():
            labels = self.labels
        rows, columns = arrays.centres(labels)
        places = zip(3 * rows // labels.shape[0], 3 * columns // labels.shape[1], strict=True)
        return [f"superpixel {j}, {_PLACES[int(a)][int(b)]}" for j, (a, b) in enumerate(places)]

    def details(self) -> Columns:
        """Centroid, bounding box and area of each superpixel, in pixels.

        As in scikit-image, `bottom` and `right` are one beyond the last row and column. With a
        spacing also in its unit, as distances from the first pixel's centre.
        """
        found = self.positions(("row", "column"), "area", "area").items()
        return {
            _NAMES.get(name, name).replace("centre", "centroid"): values for name, values in found
        }

    def photo(self, longest: int | None = None) -> FloatArray:
        """The image for display: (H, W, 3) floats in [0, 1], rescaled if the range is larger.

        With `longest`, blocks of pixels are averaged until no side has more pixels than that.
        """
        axis = self.channel_axis
        pixels = self.shown[..., None] if axis is None else np.moveaxis(self.shown, axis, -1)
        pixels = pixels[..., [0, 1, 2] if pixels.shape[-1] >= 3 else [0, 0, 0]]
        low, high = 0.0, 255.0
        if self.shown.dtype != np.uint8:
            low, high = float(self.shown.min()), float(self.shown.max())
            low, high = (low, high) if low < 0 or high > 1 else (0.0, 1.0)
        factor = 1 if longest is None else -(-max(pixels.shape[:2]) // longest)
        return (arrays.block_means(pixels, factor) - low) / max(high - low, 1e-300)


def quickshift(image: FloatArray, **params: object) -> Labels:
    """Modes of colour and position, with lime's parameters; scikit-image's `quickshift`."""
    settings = {"kernel_size": 4, "max_dist": 200, "ratio": 0.2, **params}
    return arrays.by_skimage("quickshift", arrays.three_channels(image), **settings)


def felzenszwalb(image: FloatArray, **params: object) -> Labels:
    """Regions of similar colour; scikit-image's `felzenszwalb`."""
    smallest = max(1, image.shape[0] * image.shape[1] // 500)
    settings = {"scale": 300.0, "sigma": 0.8, "min_size": smallest, "channel_axis": -1, **params}
    return arrays.by_skimage("felzenszwalb", image, **settings)


def grid(image: np.ndarray, *, rows: int = 7, columns: int = 7) -> Labels:
    """Equal rectangles, 7 by 7 by default."""
    return arrays.even_blocks(image.shape[:2], (rows, columns))


SEGMENTATIONS: dict[str, Callable[..., Labels]] = {
    "slic": arrays.slic,
    "quickshift": quickshift,
    "felzenszwalb": felzenszwalb,
    "grid": grid,
}

SEGMENTER = arrays.Segmenter(
    kind="image",
    features="superpixels",
    axes=2,
    sides="(H, W)",
    known=SEGMENTATIONS,
    regular="grid",
    factor=lambda sides: -(-max(sides) // LONGEST),
)


def read_image(
    image: object,
    *,
    segmentation: Segmentation,
    hide: Hide,
    channels: Channels = "auto",
    spacing: float | Sequence[float] | None = None,
    unit: str = "mm",
) -> ImageScene:
    """Cut an image into superpixels; input and settings are those of `ImageExplainer`."""
    cut = SEGMENTER.read(as_pixels(image), segmentation, hide, channels)
    return ImageScene(**cut, spacing=arrays.per_axis(spacing, 2), unit=unit)


def as_pixels(image: object) -> np.ndarray:
    """The checked pixels of a path, an open file, a PIL image, a `Picture` or an array."""
    if isinstance(image, Picture):
        image = image.pixels
    elif is_photo(image):
        image = open_photo(image)
    shapes = "(H, W), (H, W, C) or (C, H, W)"
    return arrays.as_numbers("image", image, (2, 3), shapes, "a PIL image or a path")


def _scores_fit(scene: ImageScene) -> bool:
    """Whether every target is a box inside the image, or a region of its size."""
    for score in scene.scores:
        if not isinstance(score, Mapping) or not isinstance(score.get("label"), (str, int)):
            return False
        if score.get("kind") == "box":
            checks.check_fields(score, {"box": checks.list_of(checks.number(0), "corner", most=4)})
            low, high = np.reshape(score["box"], (2, 2))
            if (low >= high).any() or (high > scene.labels.shape[::-1]).any():
                return False
        else:
            mask, words = checks.array_of("u", 2), checks.text(20)
            checks.check_fields(score, {"mask": mask, "activation": words})
            if score["mask"].shape != scene.labels.shape or score["mask"].max() != 1:
                return False
    return True


_FIELDS = {**arrays.field_checks(2), "scores": checks.instance(list, tuple)}
_RULES = {**arrays.RULES, "targets inside the image": _scores_fit}

IMAGE = Domain(
    name="image",
    feature="superpixel",
    scene=ImageScene,
    check_scene=lambda scene: checks.check_object(scene, _FIELDS, _RULES),
    picture="map",
)
