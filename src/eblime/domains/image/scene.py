"""Images: superpixels as features, and what hidden ones show instead."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from eblime._checks import as_floats
from eblime._field_checks import MOST_FEATURES, array_of, check_object, one_of
from eblime._types import FloatArray
from eblime.domains.image.photo import is_photo, open_photo
from eblime.domains.image.segmentation import Segmentation, segment
from eblime.domains.record import Domain

__all__ = ["HIDES", "IMAGE", "ImageScene", "as_pixels", "read_image"]


Channels = Literal["auto", "first", "last"]
HIDES = ("mean", "blur")

Hide = str | float | tuple[float, ...] | NDArray[Any] | Callable[[NDArray[Any]], Any]

_PLACES = (
    ("upper left", "top", "upper right"),
    ("left", "centre", "right"),
    ("lower left", "bottom", "lower right"),
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ImageScene:
    """An image cut into superpixels, in the layout and dtype that the model gets."""

    shown: NDArray[Any]  # the image itself
    hidden: NDArray[Any]  # everything hidden, same shape and dtype
    labels: NDArray[np.intp]  # (H, W) superpixel of each pixel, 0 .. p - 1
    channel_axis: int | None  # 0 or 2, None for a grey image of two axes

    domain: ClassVar[str] = "image"

    @property
    def n_features(self) -> int:
        """Number of superpixels, p."""
        return int(self.labels.max()) + 1

    @property
    def features(self) -> list[str]:
        """Names of the superpixels, with the part of the image: `superpixel 0, upper left`."""
        step = -(-max(self.labels.shape) // 512)  # a place in words needs no finer look
        labels = self.labels[::step, ::step]
        if step > 1 and not np.bincount(labels.ravel(), minlength=self.n_features).all():
            labels = self.labels
        rows, columns = _centroids(labels)
        places = zip(3 * rows // labels.shape[0], 3 * columns // labels.shape[1], strict=True)
        return [f"superpixel {j}, {_PLACES[int(a)][int(b)]}" for j, (a, b) in enumerate(places)]

    def details(self) -> dict[str, list[Any]]:
        """Centroid, bounding box and area of each superpixel, in pixels.

        As in scikit-image, `bottom` and `right` are one beyond the last row and column.
        """
        rows, columns = _centroids(self.labels)
        boxes = ndimage.find_objects(self.labels + 1)
        return {
            "centroid_row": rows.tolist(),
            "centroid_column": columns.tolist(),
            "top": [box[0].start for box in boxes],
            "left": [box[1].start for box in boxes],
            "bottom": [box[0].stop for box in boxes],
            "right": [box[1].stop for box in boxes],
            "area": np.bincount(self.labels.ravel()).tolist(),
        }

    def batch(self, n: int) -> NDArray[Any]:
        """An empty batch of n images."""
        return np.empty((n, *self.shown.shape), dtype=self.shown.dtype)

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
        return (_shrink(pixels, longest) - low) / max(high - low, 1e-300)

    def renderer(self) -> WordRenderer:
        """A fast renderer of this image."""
        labels = self.labels
        if self.channel_axis == 2:  # channels are adjacent: every number gets its pixel's label
            labels = np.repeat(labels[..., None], self.shown.shape[2], axis=2)
        return word_renderer(self.shown, self.hidden, labels)


def _centroids(labels: NDArray[np.intp]) -> tuple[FloatArray, FloatArray]:
    """The mean row and column of each superpixel, (p,) each; a million pixels at a time."""
    height, width = labels.shape
    rows, columns, area = np.zeros((3, int(labels.max()) + 1))
    step = max(1, (1 << 20) // width)
    for start in range(0, height, step):
        some = labels[start : start + step]
        flat, down, across = some.ravel(), np.arange(start, start + len(some)), np.arange(width)
        for total, weights in ((rows, down.repeat(width)), (columns, np.tile(across, len(some)))):
            total += np.bincount(flat, weights, len(area))
        area += np.bincount(flat, minlength=len(area))
    return rows / area, columns / area


def _shrink(pixels: NDArray[Any], longest: int | None) -> FloatArray:
    """Average blocks of k x k pixels, for the smallest k; incomplete blocks are dropped."""
    rows, columns = pixels.shape[:2]
    k = 1 if longest is None else -(-max(rows, columns) // longest)
    if k == 1:
        return pixels.astype(np.float64)
    down, across = min(k, rows), min(k, columns)
    whole = pixels[: rows // down * down, : columns // across * across]
    blocks = whole.reshape(rows // down, down, columns // across, across, -1)
    return np.asarray(blocks.mean(axis=(1, 3), dtype=np.float64))


def read_image(
    image: Any, *, segmentation: Segmentation, hide: Hide, channels: Channels = "auto"
) -> ImageScene:
    """Cut an image into superpixels.

    Parameters
    ----------
    image
        A grey (H, W), colour (H, W, C) or channel-first (C, H, W) array of integers or floats, a
        PIL image, or the path of an image file.
    segmentation, hide
        See `segment` and `hidden_version`.
    channels
        "first", "last", or "auto": the axis of length at most 4, or a much shorter one.
    """
    pixels = np.array(as_pixels(image), order="C")  # a copy: the explanation keeps it
    pixels = pixels.astype(pixels.dtype.newbyteorder("="), copy=False)
    axis = _channel_axis(pixels, channels)
    if axis == 0 and getattr(hide, "shape", None) == pixels.shape:
        hide = np.moveaxis(_as_array(hide), 0, -1)
    stacked = pixels[..., None] if axis is None else np.moveaxis(pixels, axis, -1)
    if stacked.shape[:2] == (1, 1):
        raise ValueError(
            "`image` must have at least two pixels, so that it can be cut into superpixels; "
            f"got shape {pixels.shape}."
        )
    labels = segment(stacked, segmentation)
    hidden = hidden_version(stacked, labels, hide)
    if np.array_equal(hidden, stacked):
        raise ValueError(
            "Hiding must change the image; with this `hide` every hidden superpixel looks like the "
            "shown one. Choose another, such as hide=0 or hide='blur'."
        )
    back = hidden[..., 0] if axis is None else np.moveaxis(hidden, -1, axis)
    return ImageScene(
        shown=pixels,
        hidden=np.ascontiguousarray(back),
        labels=labels,
        channel_axis=axis,
    )


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


def _as_array(image: Any) -> NDArray[Any]:
    """An array of any dtype; rows of different lengths are refused."""
    if callable(getattr(image, "detach", None)):  # a torch tensor, perhaps with a gradient
        image = image.detach().cpu()
        image = image.float() if str(image.dtype) == "torch.bfloat16" else image
    try:
        return np.asarray(image)
    except ValueError as error:
        raise ValueError(
            "`image` must be an array whose rows all have the same length; "
            f"got a {type(image).__name__} with rows of different lengths."
        ) from error


def as_pixels(image: Any) -> NDArray[Any]:
    """The checked pixels of a path, an open file, a PIL image or an array."""
    is_array = isinstance(image, np.ndarray) or not is_photo(image)
    pixels = _as_array(image if is_array else open_photo(image))
    if pixels.dtype == object or pixels.dtype.kind not in "buif":
        hint = " Pass the magnitude, `np.abs(image)`." if pixels.dtype.kind == "c" else ""
        raise TypeError(
            "`image` must be an array of whole numbers or floats, a PIL image or a path; got "
            f"{type(image).__name__} of dtype {pixels.dtype}.{hint}"
        )
    if pixels.dtype.itemsize > 8:
        raise TypeError(f"`image` must have at most 8 bytes per number; got dtype {pixels.dtype}.")
    if pixels.ndim not in (2, 3) or 0 in pixels.shape:
        batch = pixels.ndim == 4 and len(pixels) == 1
        raise ValueError(
            "`image` must be one image of shape (H, W), (H, W, C) or (C, H, W); got shape "
            f"{pixels.shape}.{' Pass `image[0]`, without the batch axis.' if batch else ''}"
        )
    if np.ma.is_masked(image):
        raise ValueError(
            "`image` must have no masked pixels; got "
            f"{np.ma.getmaskarray(image).sum()}. Fill them, such as `image.filled(0)`."
        )
    if pixels.dtype.kind == "f" and not np.isfinite(pixels).all():
        bad = tuple(int(i) for i in np.argwhere(~np.isfinite(pixels))[0])
        raise ValueError(f"`image` must be finite; got {pixels[bad]} at {bad}.")
    return pixels


def _channel_axis(pixels: NDArray[Any], channels: Channels) -> int | None:
    """The axis of the channels, None for a grey image of two axes."""
    if pixels.ndim == 2:
        return None
    if channels != "auto":
        return 0 if channels == "first" else 2
    first, _, last = pixels.shape
    if last <= 4 or first <= 4:
        return 2 if last <= 4 else 0
    if 4 * last <= min(first, pixels.shape[1]):
        return 2
    if 4 * first <= min(last, pixels.shape[1]):
        return 0
    raise ValueError(
        f"The channel axis of an image of shape {pixels.shape} is not clear; "
        "set channels='first' or channels='last'. For a volume, pass one section."
    )


def _labels_fit(scene: ImageScene) -> bool:
    """Whether every pixel has a label, every label 0 .. p - 1 has a pixel, and p is allowed."""
    axis, shape = scene.channel_axis, scene.shown.shape
    sides = shape if axis is None else tuple(n for k, n in enumerate(shape) if k != axis)
    if scene.labels.dtype != np.intp or scene.labels.shape != sides or scene.labels.min() < 0:
        return False
    few = bool(scene.labels.max() < MOST_FEATURES)
    return few and bool(np.bincount(scene.labels.ravel()).all())


def _same_kind(scene: ImageScene) -> bool:
    """Whether the shown and the hidden image have the same shape and dtype."""
    return (scene.shown.shape, scene.shown.dtype) == (scene.hidden.shape, scene.hidden.dtype)


_FIELDS = {
    "shown": array_of("buif", 2, 3),
    "hidden": array_of("buif", 2, 3),
    "labels": array_of("i", 2),
    "channel_axis": one_of(None, 0, 2),
}
_RULES = {
    "a channel axis if the image has three axes": lambda scene: (
        (scene.shown.ndim == 3) == (scene.channel_axis is not None)
    ),
    "a hidden image with the shape and dtype of the shown one": _same_kind,
    f"a label 0 .. p - 1 for each pixel, p <= {MOST_FEATURES}": _labels_fit,
}

IMAGE = Domain(
    name="image",
    feature="superpixel",
    scene=ImageScene,
    check_scene=lambda scene: check_object(scene, _FIELDS, _RULES),
    picture="map",
)


Words = NDArray[Any]  # unsigned integers of the largest size that divides an image's bytes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class WordRenderer:
    """An image and its hidden version as words, and the superpixel of each word."""

    hidden: Words  # (planes, W)
    change: Words  # (planes, W) shown ^ hidden
    labels: NDArray[np.intp]  # (W,) superpixel of each word, or of its first byte on an edge
    edge: NDArray[np.intp]  # (E,) words that several superpixels share
    edge_labels: NDArray[np.intp]  # (K, E) the superpixels of these words
    edge_bits: Words  # (K, E) the bits of the word that belong to each superpixel

    def render(self, masks: FloatArray, out: NDArray[Any]) -> None:
        """Write one perturbed image per mask, (n, p), into `out`, (n, *image shape)."""
        word = self.hidden.dtype
        tables = np.array([0, -1]).astype(word)[(masks > 0.5).astype(np.intp)]
        bits = np.empty_like(self.hidden[0])  # the mask of one image, by word
        images = out.reshape(len(out), -1).view(word).reshape(len(out), *self.hidden.shape)
        for table, image in zip(tables, images, strict=True):
            np.take(table, self.labels, out=bits, mode="clip")
            if self.edge.size:
                parts = table[self.edge_labels] & self.edge_bits
                bits[self.edge] = np.bitwise_or.reduce(parts, axis=0)
            np.bitwise_and(self.change, bits, out=image)
            np.bitwise_xor(image, self.hidden, out=image)


def word_renderer(
    shown: NDArray[Any], hidden: NDArray[Any], labels: NDArray[np.intp]
) -> WordRenderer:
    """Cut an image for rendering; `labels` has the shape of the image, or of one of its planes."""
    planes = shown.size // labels.size
    plane_bytes = shown.nbytes // planes
    word = np.dtype(f"u{next(size for size in (8, 4, 2, 1) if plane_bytes % size == 0)}")
    narrow = labels.ravel().astype(np.int32)
    covered = np.repeat(narrow, shown.itemsize).reshape(-1, word.itemsize)
    first = covered[:, 0].astype(np.intp)
    edge = np.flatnonzero((covered != first[:, None]).any(axis=1))
    edge_labels, edge_bits = _parts(covered[edge].astype(np.intp), word)
    shown_words, hidden_words = (
        np.ascontiguousarray(pixels).reshape(-1).view(word).reshape(planes, -1)
        for pixels in (shown, hidden)
    )
    return WordRenderer(
        hidden=hidden_words,
        change=shown_words ^ hidden_words,
        labels=first,
        edge=edge,
        edge_labels=edge_labels,
        edge_bits=edge_bits,
    )


def _parts(covered: NDArray[np.intp], word: np.dtype[Any]) -> tuple[NDArray[np.intp], Words]:
    """The superpixels of each edge word, (E, bytes) -> (K, E), and the bits of each one."""
    labels, bits = [], []
    left = np.ones(covered.shape, dtype=bool)
    while left.any():
        first = left.argmax(axis=1)
        label = covered[np.arange(len(covered)), first]
        own = left & (covered == label[:, None])
        labels.append(label)
        bits.append((own * np.uint8(255)).astype(np.uint8).view(word).ravel())
        left &= ~own
    if not labels:
        return np.empty((0, 0), dtype=np.intp), np.empty((0, 0), dtype=word)
    return np.stack(labels), np.stack(bits)
