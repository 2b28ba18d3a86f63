"""Arrays cut into features by labels: how they are read, what hidden features show, rendering.

Images and volumes are such arrays. `kind` is what messages call the array: "image", "volume".
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import ndimage

from eblime import _field_checks as checks
from eblime._checks import as_floats, check_choice, check_count
from eblime._digest import digest_of
from eblime._types import Columns, FloatArray, IntArray

Channels = Literal["auto", "first", "last"]
HIDES = ("auto", "mean", "blur")
_BLOCK = 1 << 16  # words that are rendered at once
_CUTS: dict[str, Labels] = {}  # by content, so that another target needs no new cut
_CUTS_KEPT, _MOST_KEPT = 4, 1 << 20  # cuts, and pixels of one
_COUNTS = {"n", "rows", "columns", "width", "windows", "bands"}  # parameters that are whole numbers
Hide = str | float | tuple[float, ...] | np.ndarray | Callable[[np.ndarray], ArrayLike]
Labels = NDArray[np.intp]
Segmentation = str | tuple[str, Mapping[str, object]] | np.ndarray | Callable[..., object]


# Reading


def plain_array(values: Any) -> np.ndarray:
    """An array of any dtype, also from a torch tensor."""
    if callable(getattr(values, "detach", None)):  # a torch tensor, perhaps with a gradient
        values = values.detach().cpu()
        values = values.float() if str(values.dtype) == "torch.bfloat16" else values
    return np.asarray(values)


def as_numbers(kind: str, values: Any, axes: tuple[int, ...], shapes: str, also: str) -> np.ndarray:
    """The checked numbers of an array, a tensor or lists.

    For messages: its shapes in words, and what else the user may pass.
    """
    array = plain_array(values)
    if array.dtype.kind not in "buif" or array.dtype.itemsize > 8:
        hint = f" Pass the magnitude, `np.abs({kind})`." if array.dtype.kind == "c" else ""
        raise TypeError(
            f"`{kind}` must be an array of numbers of at most 8 bytes, {also}; got "
            f"{type(values).__name__} of dtype {array.dtype}.{hint}"
        )
    if array.ndim not in axes or 0 in array.shape:
        batch = array.ndim == max(axes) + 1 and len(array) == 1
        raise ValueError(
            f"`{kind}` must be one {kind} of shape {shapes}, and not be empty; got shape "
            f"{array.shape}." + (f" Pass `{kind}[0]`, without the batch axis." if batch else "")
        )
    if np.ma.is_masked(values):
        raise ValueError(
            f"`{kind}` must have no masked numbers; got {np.ma.getmaskarray(values).sum()}. Fill "
            f"them, such as `{kind}.filled(0)`."
        )
    return check_finite(kind, array)


def check_finite(kind: str, array: np.ndarray) -> np.ndarray:
    """Refuse NaN and infinite numbers."""
    if array.dtype.kind == "f" and len(bad := np.argwhere(~np.isfinite(array))):
        place = tuple(bad[0].tolist())
        raise ValueError(
            f"`{kind}` must be finite; got {array[place]} at {place}, and {len(bad)} such numbers "
            "in all. Fill them first."
        )
    return array


def _channel_axis(shape: tuple[int, ...], axes: int, channels: Channels, kind: str) -> int | None:
    """The axis of the channels, None for an array that has no more than its own axes.

    "auto" finds an axis that has length at most 4, or is much shorter than the others.
    """
    if len(shape) == axes:
        return None
    if channels != "auto":
        return 0 if channels == "first" else axes
    first, *middle, last = shape
    if last <= 4 or 4 * last <= min(first, *middle):
        return axes
    if first <= 4 or 4 * first <= min(last, *middle):
        return 0
    raise ValueError(
        f"The channel axis of the {kind} of shape {shape} is not clear; "
        "set channels='first' or channels='last'."
        + (" To explain a volume, use `VolumeExplainer`." if kind == "image" else "")
    )


# Segmentation


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Segmenter:
    """Cuts arrays of one kind into features, numbered 0 .. p - 1."""

    kind: str  # "image"
    features: str  # "superpixels"
    axes: int  # without channels
    sides: str  # "(H, W)"
    known: Mapping[str, Callable[..., Labels]]  # array in [0, 1] with channels last -> labels
    regular: str  # the algorithm in `known` that looks at the shape alone
    factor: Callable[[tuple[int, ...]], int]  # how far an array of these sides is reduced

    def check(self, segmentation: Segmentation, hide: Hide, channels: Channels) -> None:
        """Refuse settings that no array of this kind can have."""
        check_choice("channels", channels, ("auto", "first", "last"))
        check_cut(segmentation, hide, self.known, HIDES, self.sides, (self.axes,))

    def read(
        self, numbers: np.ndarray, segmentation: Segmentation, hide: Hide, channels: Channels
    ) -> dict[str, Any]:
        """Cut checked numbers into features: the fields of an `ArrayScene`."""
        shown = np.array(numbers, order="C")  # a copy: the explanation keeps it
        shown = shown.astype(shown.dtype.newbyteorder("="), copy=False)
        axis = _channel_axis(shown.shape, self.axes, channels, self.kind)
        if axis == 0 and getattr(hide, "shape", None) == shown.shape:
            hide = np.moveaxis(plain_array(hide), 0, -1)
        stacked = shown[..., None] if axis is None else np.moveaxis(shown, axis, -1)
        labels = self.segment(stacked, segmentation)
        hidden = hidden_version(stacked, labels, hide, self.kind)
        single = f"all {self.features} are single numbers" * int(labels.max() + 1 == labels.size)
        check_changes(hidden, stacked, self.kind, single)
        hidden = hidden[..., 0] if axis is None else np.moveaxis(hidden, -1, axis)
        return {
            "shown": shown,
            "hidden": np.ascontiguousarray(hidden),
            "labels": labels,
            "channel_axis": axis,
        }

    def segment(self, array: np.ndarray, segmentation: Segmentation) -> Labels:
        """Cut an array with channels last; a function gets it as floats in [0, 1] without alpha."""
        cut, params = name_and_parameters(segmentation)
        if isinstance(cut, str):
            cut = self._cut(array, cut, params)
        elif callable(cut):
            cut = cut(_unit_range(array))
        advice = f"('slic', {{'compactness': 1.0}}), or use {self.regular!r}"
        return relabel(np.asarray(cut), array.shape[:-1], self.kind, self.features, advice)

    def _cut(self, array: np.ndarray, name: str, params: Mapping[str, object]) -> Labels:
        """Cut by name; a large array is reduced first, and the labels are enlarged again."""
        if name == self.regular:
            return self.known[name](array, **params)
        sides = array.shape[:-1]
        if (factor := self.factor(sides)) > 1:
            array = block_means(array, factor) / (255 if array.dtype == np.uint8 else 1)
        if (array == array[(0,) * len(sides)]).all():
            raise ValueError(
                f"The {self.kind} must vary for segmentation={name!r}; all of it is the same. Use "
                f"segmentation={self.regular!r} or pass your own labels."
            )
        key = digest_of((self.kind, name, dict(params), array))
        labels = _CUTS.get(key)
        try:
            labels = self.known[name](_unit_range(array), **params) if labels is None else labels
        except Exception as error:  # scikit-image does not check its parameters
            raise ValueError(
                f"The segmentation {name!r} failed with the parameters {dict(params)!r}: "
                f"{type(error).__name__}: {error}."
            ) from error
        if labels.size <= _MOST_KEPT:
            _CUTS[key] = labels
            while len(_CUTS) > _CUTS_KEPT:
                _CUTS.pop(next(iter(_CUTS)), None)
        if factor > 1:
            labels = labels[np.ix_(*(np.arange(length) // factor for length in sides))]
        return np.asarray(labels)


def name_and_parameters(segmentation: Segmentation) -> tuple[Any, Mapping[str, Any]]:
    """A segmentation and its parameters, if it comes with some."""
    if isinstance(segmentation, tuple) and len(segmentation) == 2:
        return segmentation if isinstance(segmentation[1], Mapping) else (segmentation, {})
    return segmentation, {}


def check_cut(
    segmentation: Segmentation,
    hide: object,
    known: Mapping[str, Callable[..., object]],
    hides: Sequence[str],
    sides: str,
    axes: tuple[int, ...],
) -> None:
    """Refuse an unknown name, an unknown parameter, or an object of another type.

    `known` has the functions that cut by name, `hides` the names of ways to hide; labels of the
    user have one of these numbers of axes, in words `sides`.
    """
    if isinstance(hide, str):
        check_choice("hide", hide, hides)
    elif hide is None or isinstance(hide, (bool, np.bool_)):
        words = ", ".join(map(repr, hides))
        raise TypeError(f"`hide` must be {words}, a number, an array or a function; got {hide}.")
    cut, params = name_and_parameters(segmentation)
    if isinstance(cut, str):
        check_choice("segmentation", cut, tuple(known))
        listed = inspect.signature(known[cut])
        try:
            listed.bind(None, **params)
        except TypeError as error:
            words = ", ".join(map(repr, [*listed.parameters][1:])) or "none"
            raise ValueError(
                f"The parameters in `segmentation` must be those of {cut!r}, {words}; got "
                f"{', '.join(map(repr, params))}."
            ) from error
        for key in _COUNTS & params.keys():
            for count in np.atleast_1d(params[key]).tolist():
                check_count(key, count)
    elif isinstance(cut, tuple) or not (callable(cut) or np.ndim(cut) in axes):
        shape = getattr(cut, "shape", None)
        got = f"{cut!r:.80}" if shape is None else f"an array of shape {shape}"
        raise TypeError(
            "`segmentation` must be a name, (name, {parameter: value}), an array of labels "
            f"{sides} or a function; got {got}."
        )


def relabel(
    labels: np.ndarray, shape: tuple[int, ...], kind: str, features: str, advice: str
) -> Labels:
    """Check labels and number them 0 .. p - 1; the words are for messages."""
    if labels.shape != shape:
        raise ValueError(f"The labels must have the {kind}'s shape {shape}; got {labels.shape}.")
    if labels.dtype.kind not in "biu":
        raise TypeError(f"The labels must be whole numbers; got dtype {labels.dtype}.")
    low, high = int(labels.min()), int(labels.max())
    if high - low > labels.size or high > np.iinfo(np.intp).max:  # too far for a look-up table
        shifted = np.unique(labels, return_inverse=True)[1].reshape(shape)
    else:
        shifted = labels.astype(np.intp)
        shifted -= low
    present = np.bincount(shifted.ravel()) > 0
    if present.sum() < 2:
        raise ValueError(
            f"The segmentation must find at least 2 {features}; got 1. Change its parameters, such "
            f"as segmentation={advice}."
        )
    return shifted if present.all() else np.asarray((np.cumsum(present) - 1)[shifted])


def check_changes(hidden: np.ndarray, shown: np.ndarray, kind: str, single: str = "") -> None:
    """Refuse hidden parts that look like the shown ones; `single` says that they are too small."""
    if np.array_equal(hidden, shown):
        advice = f"Cut it into fewer: {single}." if single else "Choose another, such as hide=0."
        raise ValueError(
            f"Hiding must change the {kind}; with this `hide` every hidden part looks like the "
            f"shown one. {advice}"
        )


def even_blocks(sides: Sequence[int], counts: Sequence[int]) -> Labels:
    """Labels of equal blocks, so many along each axis, and no more than it has elements."""
    labels: Labels = np.zeros((), dtype=np.intp)
    for n, k in zip(sides, np.minimum(counts, sides), strict=True):
        labels = np.add.outer(labels * k, np.arange(n) * k // n)
    return labels


def boxes_of(labels: Labels) -> list[tuple[slice, ...]]:
    """The bounding box of each feature."""
    found: list[tuple[slice, ...]] = ndimage.find_objects(labels + 1)
    return found


def centres(labels: Labels) -> FloatArray:
    """The mean position of each feature along each axis, (axes, p)."""
    every, counts = labels.ravel(), np.bincount(labels.ravel())
    grids: Any = np.indices(labels.shape, sparse=True)
    positions = (np.broadcast_to(grid, labels.shape).ravel() for grid in grids)
    return np.array([np.bincount(every, weights=each) for each in positions]) / counts


def slic(array: FloatArray, **params: object) -> Labels:
    """About 50 clusters by value and position; scikit-image's `slic`.

    Compactness is relative to differences of 100, as of the lightness in CIELAB, to which images in
    grey and in three channels are converted. Other values stay between 0 and 1, and the compactness
    is scaled.
    """
    settings: Any = {"n_segments": 50, "compactness": 10.0, "sigma": 1.0, **params}
    array = three_channels(array) if array.ndim == 3 and array.shape[-1] == 1 else array
    if array.ndim > 3 or array.shape[-1] != 3:
        settings["compactness"] *= np.sqrt(array.shape[-1]) / 100
        settings.setdefault("convert2lab", False)
    return by_skimage("slic", array, start_label=0, channel_axis=-1, **settings)


def by_skimage(name: str, array: np.ndarray, **settings: object) -> Labels:
    """Labels by a function of `skimage.segmentation`."""
    from skimage import segmentation

    return np.asarray(getattr(segmentation, name)(array, **settings))


def three_channels(image: np.ndarray) -> np.ndarray:
    """Grey becomes RGB, as in lime; of more than three channels the first three are used."""
    return image[..., [0, 0, 0]] if image.shape[-1] < 3 else image[..., :3]


def block_means(array: np.ndarray, factor: int) -> np.ndarray:
    """Means over blocks of an array with channels last; edges are repeated to fill the blocks."""
    counts = [-(-n // factor) for n in array.shape[:-1]]
    padding = [(0, k * factor - n) for k, n in zip(counts, array.shape, strict=False)]
    padded = np.pad(array, [*padding, (0, 0)], mode="edge")
    blocks = padded.reshape(*(length for k in counts for length in (k, factor)), -1)
    return np.asarray(blocks.mean(axis=tuple(range(1, 2 * len(counts), 2))))


def _unit_range(array: np.ndarray) -> FloatArray:
    """The array as segmentations expect it: floats in [0, 1], channels last, without alpha."""
    without_alpha = array[..., :-1] if array.ndim == 3 and array.shape[-1] in (2, 4) else array
    values = without_alpha.astype(np.float64)
    if array.dtype == np.uint8:
        return np.asarray(values / 255)
    low, high = values.min(), values.max()
    if array.dtype.kind == "f" and low >= 0 and high <= 1:
        return values
    return np.asarray((values - low) / (high - low) if high > low else values * 0)


# Hiding


def hidden_version(array: np.ndarray, labels: Labels, hide: Hide, kind: str) -> np.ndarray:
    """The array, channels last, with everything hidden, in the same shape and dtype.

    Numbers are in the array's range: for floats in [0, 1] a medium grey is 0.5, not 128.
    """
    if isinstance(hide, str):
        if usual_hide(array, kind, hide) == "mean":
            flat, counts = labels.ravel(), np.bincount(labels.ravel())
            columns = (array[..., c].ravel() for c in range(array.shape[-1]))
            means = [np.bincount(flat, weights=column) / counts for column in columns]
            return _in_dtype(array, np.stack(means, axis=-1), kind)[labels]
        blurred = array.astype(np.float64)
        sizes = (*[max(3, round(max(array.shape[:-1]) / 10))] * (array.ndim - 1), 1)
        for _ in range(3):  # three box filters, each a tenth of the array wide
            blurred = ndimage.uniform_filter(blurred, size=sizes, mode="nearest")
        return _in_dtype(array, blurred, kind)
    values = as_floats("hide", hide(array.copy()) if callable(hide) else hide)
    if values.ndim == array.ndim - 1 and array.shape[-1] == 1:
        values = values[..., None]
    if values.shape not in ((), array.shape[-1:], array.shape):
        raise ValueError(
            f"`hide` must be one number, one for each of the {array.shape[-1]} channels, or have "
            f"the shape of the explained {kind}, {array.shape}; got shape {values.shape}."
        )
    found = _in_dtype(array, values, kind)
    _check_range(array, values, kind)
    return np.broadcast_to(found, array.shape)


def usual_hide(array: np.ndarray, kind: str, hide: Any = "auto") -> Any:
    """What "auto" means for an array, channels last: a blur for a grey image, else the mean."""
    if not isinstance(hide, str) or hide != "auto":
        return hide
    return "blur" if kind == "image" and (array == array[..., :1]).all() else "mean"


def _check_range(array: np.ndarray, values: FloatArray, kind: str) -> None:
    """Refuse colours of 0 to 1 for an array up to 255, and colours up to 255 for one of 0 to 1.

    A whole array is allowed if the explained one is nearly black too, such as its blurred copy.
    """
    low, high = values.min(), values.max()
    if array.dtype.kind in "iu":
        bright = array.max() if values.ndim <= 1 else array.mean()
        wrong = bright > 1 and low >= 0 and high <= 1 and (values % 1 != 0).any()
    else:
        wrong = (low < -1 or high > 2) and array.min() >= 0 and array.max() <= 1
    if wrong and array.dtype != bool:
        raise ValueError(
            f"`hide` must be in the range of the {kind} of {array.dtype}, {array.min():g} to "
            f"{array.max():g}; got {low:g} to {high:g}. Multiply or divide it by the largest "
            "possible number, such as 255."
        )


def _in_dtype(array: np.ndarray, values: FloatArray, kind: str) -> np.ndarray:
    """Convert values to the array's dtype, rounded for integers; refuse those that do not fit."""
    if array.dtype == bool:
        return np.asarray(values >= 0.5)
    whole = array.dtype.kind in "iu"
    limits: Any = np.iinfo(array.dtype) if whole else np.finfo(array.dtype)
    values = np.rint(values) if whole else values
    if not (values.min() >= float(limits.min) and values.max() <= float(limits.max)):
        raise ValueError(
            f"`hide` must be finite and between {limits.min:g} and {limits.max:g} for the "
            f"{kind} of {array.dtype}; got {values.min():g} to {values.max():g}."
        )
    return np.asarray(values, dtype=array.dtype)


# Scenes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ArrayScene:
    """An array cut into features, in the layout and dtype that the model gets."""

    shown: np.ndarray  # the array itself
    hidden: np.ndarray  # everything hidden, same shape and dtype
    labels: Labels  # feature of each element, 0 .. p - 1
    channel_axis: int | None  # the first or the last, None without channels
    spacing: Sequence[float] | None = None  # size of an element along each axis
    unit: str = "mm"  # of the spacing
    origin: Sequence[float] | None = None  # position of the first element; None is 0

    @property
    def n_features(self) -> int:
        """Number of features, p."""
        return int(self.labels.max()) + 1

    def batch(self, n: int) -> np.ndarray:
        """An empty batch of n arrays."""
        return np.empty((n, *self.shown.shape), dtype=self.shown.dtype)

    def renderer(self) -> Renderer:
        """Writes perturbed arrays; made once and used many times."""
        labels = self.labels
        if self.channel_axis == labels.ndim:  # channels are adjacent: each number gets a label
            labels = np.repeat(labels[..., None], self.shown.shape[-1], axis=-1)
        planes, size = self.shown.size // labels.size, labels.size * self.shown.itemsize
        word = np.dtype(f"u{next(n for n in (8, 4, 2, 1) if size % n == 0)}")
        shown, hidden = (
            np.ascontiguousarray(numbers).reshape(-1).view(word).reshape(planes, -1)
            for numbers in (self.shown, self.hidden)
        )
        owners = labels.reshape(-1, word.itemsize // self.shown.itemsize)
        edge = np.flatnonzero((owners != owners[:, :1]).any(axis=1))
        return Renderer(
            hidden=hidden,
            change=shown ^ hidden,
            labels=np.ascontiguousarray(owners[:, 0]),
            edge=edge,
            edge_labels=owners[edge],
        )

    def positions(self, axes: Sequence[str], counts: str, size: str) -> Columns:
        """Centre, bounding box and number of elements of each feature, and the same in units.

        `axes`, `counts` and `size` are names of columns, as in "centre_z", "voxels" and "volume".
        """
        starts, stops, steps, origin = self._bounds()
        middles, n = centres(self.labels), np.bincount(self.labels.ravel())
        found = {("centre", ""): middles, ("start", ""): starts, ("stop", ""): stops}
        sizes = {counts: n}
        if self.spacing is not None:
            unit = f"_{self.unit}"
            found |= {("centre", unit): origin + steps * middles}
            found |= {("extent", unit): steps * (stops - starts)}
            sizes[f"{size}{unit}{len(axes)}"] = n * steps.prod()
        rows = {
            f"{word}_{axis}{unit}": rows[k]
            for (word, unit), rows in found.items()
            for k, axis in enumerate(axes)
        }
        return {name: values.tolist() for name, values in (rows | sizes).items()}

    def places(self, element: str) -> list[str]:
        """Position and size of each feature in words: `centre (8, 24, 4), size 16 x 16 x 8 mm`."""
        starts, stops, steps, origin = self._bounds()
        middles, sides = origin + steps * (starts + stops - 1) / 2, steps * (stops - starts)
        unit = element if self.spacing is None else self.unit
        texts = np.array([[f"{x:.4g}" for x in row] for row in (*middles, *sides)]).T.tolist()
        n = len(steps)
        return [f"centre ({', '.join(t[:n])}), size {' x '.join(t[n:])} {unit}" for t in texts]

    def _bounds(self) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
        """First and next element of each feature along each axis; the axes' steps and origins."""
        boxes = np.array([[(s.start, s.stop) for s in box] for box in boxes_of(self.labels)])
        axes = self.labels.ndim
        steps, origin = self.spacing or [1.0] * axes, self.origin or [0.0] * axes
        return boxes[..., 0].T, boxes[..., 1].T, np.c_[steps], np.c_[origin]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Renderer:
    """An array and its hidden version as words of up to 8 bytes, and the features of the words."""

    hidden: np.ndarray  # (planes, n)
    change: np.ndarray  # (planes, n) shown ^ hidden
    labels: Labels  # (n,) of each word, or of its first number
    edge: NDArray[np.intp]  # (E,) words that several features share
    edge_labels: Labels  # (E, k) the features of their numbers

    def render(self, masks: FloatArray, out: np.ndarray) -> None:
        """Write one perturbed array per mask, (n, p), into `out`, (n, *shape)."""
        word = self.hidden.dtype
        shown = (masks > 0.5).astype(np.intp)
        single = np.dtype(f"u{word.itemsize // self.edge_labels.shape[1]}")
        tables, singles = (np.array([0, -1]).astype(kind)[shown] for kind in (word, single))
        arrays = out.reshape(len(out), -1).view(word).reshape(len(out), *self.hidden.shape)
        for table, whole, array in zip(tables, singles, arrays, strict=True):
            for start in range(0, len(self.labels), _BLOCK):  # blocks that stay in the cache
                block = slice(start, start + _BLOCK)
                edge = slice(*np.searchsorted(self.edge, (start, start + _BLOCK)))
                bits = table.take(self.labels[block], mode="clip")
                bits[self.edge[edge] - start] = whole[self.edge_labels[edge]].view(word).ravel()
                np.bitwise_and(self.change[:, block], bits, out=array[:, block])
                np.bitwise_xor(array[:, block], self.hidden[:, block], out=array[:, block])


def check_spacing(spacing: ArrayLike | None, axes: int) -> None:
    """Refuse a spacing that is not None, a positive number, or one for each axis."""
    steps = as_floats("spacing", 1 if spacing is None else spacing)
    if steps.shape not in ((), (1,), (axes,)) or not ((steps > 0) & (steps < np.inf)).all():
        raise ValueError(f"`spacing` must be {axes} numbers > 0, or one; got {spacing!r:.60}.")


def per_axis(values: ArrayLike | None, axes: int) -> list[float] | None:
    """A checked spacing or origin as one number per axis."""
    return None if values is None else np.broadcast_to(np.array(values, float), axes).tolist()


def field_checks(axes: int) -> dict[str, checks.Check]:
    """Checks of the fields of an `ArrayScene` with so many axes and perhaps one of channels."""
    steps, places = checks.number(1e-300), checks.number()
    return {
        "spacing": checks.optional(checks.list_of(steps, "axes", most=axes)),
        "unit": checks.text(40),
        "origin": checks.optional(checks.list_of(places, "axes", most=axes)),
        "shown": checks.array_of("buif", axes, axes + 1),
        "hidden": checks.array_of("buif", axes, axes + 1),
        "labels": checks.array_of("i", axes),
        "channel_axis": checks.one_of(None, 0, axes),
    }


def _labels_fit(scene: ArrayScene) -> bool:
    axis, shape = scene.channel_axis, scene.shown.shape
    sides = shape if axis is None else tuple(n for k, n in enumerate(shape) if k != axis)
    fits = (axis is None) == (len(shape) == scene.labels.ndim)  # one more axis is for channels
    return fits and are_labels(scene.labels, sides)


def are_labels(labels: np.ndarray, shape: tuple[int, ...]) -> bool:
    """Whether labels have this shape and are 0 .. p - 1, each at least once, and p is allowed."""
    if labels.dtype != np.intp or labels.shape != shape or labels.min() < 0:
        return False
    return bool(labels.max() < checks.MOST_FEATURES and np.bincount(labels.ravel()).all())


RULES: Mapping[str, Callable[[ArrayScene], bool]] = {
    "hidden numbers with the shape and dtype of the shown ones": lambda scene: (
        (scene.shown.shape, scene.shown.dtype) == (scene.hidden.shape, scene.hidden.dtype)
    ),
    f"a label 0 .. p - 1 for each element, p <= {checks.MOST_FEATURES}": _labels_fit,
}
