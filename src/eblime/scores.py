"""Scores of detectors and of networks that label pixels: one number per image.

`Box` and `Region` are targets, as a label is: `explain(image, target=Box("car"))`. What the model
returns is read in one of several forms, which is found from its answer to the input itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eblime._checks import as_floats, check_choice
from eblime._types import BoolArray, FloatArray, IntArray
from eblime.models.conversion import activate, default_output, descends, entries_of, on_cpu

__all__ = ["Box", "Region"]

_ACTIVATIONS = ("auto", "softmax", "sigmoid", "none")
_TEXT = re.compile(r"(box|region):(.+?)(?::([-+\d.e,\s]+))?")
_WORDS = (  # in the names of parts with boxes, scores and labels
    ("box",),
    ("score", "conf", "prob"),
    ("label", "class", "categor"),
)
_FORMS = (
    "a list with a dictionary of `boxes`, `scores` and `labels` for each image, as torchvision's; "
    "arrays (n, M, 4) of boxes, (n, M) of scores and (n, M) of classes, or (n, M, K) of the scores "
    "of all classes, in a tuple or a dictionary; or one array (n, M, 6) of x0, y0, x1, y1, score "
    "and class"
)
Find = Callable[[str | int], int]  # from a label to the number of its class


@dataclass(frozen=True, slots=True)
class Box:
    """How surely a detector finds an object of a label at a place.

    The score of an image is the largest product of overlap (intersection over union) and confidence
    among the detector's boxes with that label; 0 without one.

    Parameters
    ----------
    label
        Name of the class, which the explainer's `labels` must have, or its number in the output.
    box
        (x0, y0, x1, y1) in pixels of the image. None is the box of that label with the highest
        confidence in the input itself.

    Examples
    --------
    A detector of bright columns, with one box for each image:

    >>> import numpy as np
    >>> import eblime
    >>> def detect(images):
    ...     bright = images[:, :, 4:6].mean(axis=(1, 2))
    ...     return [{"boxes": [[4, 0, 6, 8]], "scores": [s], "labels": [1]} for s in bright]
    >>> image = np.zeros((8, 8))
    >>> image[:, 4:6] = 0.9
    >>> columns = ("grid", {"rows": 1, "columns": 4})
    >>> explainer = eblime.ImageExplainer(
    ...     detect, segmentation=columns, hide=0, labels={1: "column"}
    ... )
    >>> e = explainer.explain(image, target=eblime.scores.Box("column"))
    >>> print(e.label, round(e.prediction, 2), e.as_list(top=1)[0][0], sep="; ")
    box of 'column' (4, 0, 6, 8); 0.9; superpixel 2, centre
    """

    label: str | int
    box: tuple[float, float, float, float] | None = None

    def __post_init__(self) -> None:
        """Refuse anything but a label and four numbers in order."""
        _check_label(self.label)
        if self.box is None:
            return
        corners = as_floats("box", self.box)
        if corners.shape != (4,) or not np.isfinite(corners).all():
            raise ValueError(f"`box` must be four numbers, (x0, y0, x1, y1); got {self.box!r:.80}.")
        if not (corners[0] < corners[2] and corners[1] < corners[3]):
            raise ValueError(
                f"`box` must be (x0, y0, x1, y1) with x0 < x1 and y0 < y1; got {self.box!r:.80}."
            )
        object.__setattr__(self, "box", tuple(corners.tolist()))

    @property
    def name(self) -> str:
        """What tables and pages call it."""
        place = "" if self.box is None else f" ({', '.join(f'{part:.5g}' for part in self.box)})"
        return f"box of {self.label!r}{place}"

    @property
    def text(self) -> str:
        """As on the command line: `parse_score` reads it."""
        place = "" if self.box is None else ":" + ",".join(map(repr, self.box))
        return f"box:{self.label}{place}"

    @property
    def words(self) -> str:
        """What the score is."""
        return f"largest overlap (IoU) x confidence of the boxes of {self.label!r} with {self.name}"

    def check(self, shape: tuple[int, ...]) -> None:
        """Refuse a box that is not inside an image of so many rows and columns."""
        if self.box is None:
            return
        x0, y0, x1, y1 = self.box
        if x0 < 0 or y0 < 0 or x1 > shape[1] or y1 > shape[0]:
            raise ValueError(
                f"`box` must lie inside the image, which has {shape[1]} columns (x) and {shape[0]} "
                f"rows (y); got {self.box}."
            )

    @classmethod
    def best(cls, output: Any, label: str | int, number: int | None = None) -> Box:
        """The detector's own box of a label with the highest confidence.

        Parameters
        ----------
        output
            What the detector returned for one image.
        label
            Name or number of the class.
        number
            Number of the class in the output, if the label is a name.
        """
        wanted = label if number is None else number
        found = _detections(output, 1, _find_form(output))[0]
        boxes, chances = found.of(wanted)
        if not chances.size or chances.max() <= 0:
            known = "" if found.labels is None else np.unique(found.labels).tolist()[:8]
            also = f"; it found boxes of {', '.join(map(repr, known))}" if known else ""
            raise ValueError(f"The detector finds no box of {label!r} in the input{also}.")
        return cls(label, tuple(boxes[chances.argmax()].tolist()))

    def settle(self, output: Any, shape: tuple[int, ...], find: Find) -> tuple[Score, Any, Any]:
        """The score with its box, its class and the form of the output, from that of the input."""
        form = _find_form(output)
        found = _detections(output, 1, form)[0]
        _check_pixels(found.boxes, shape)
        names = found.labels is not None and found.labels.dtype.kind in "USO"
        wanted: Any = str(self.label) if names else find(self.label)
        if found.labels is None and wanted >= found.scores.shape[1]:
            raise ValueError(
                f"`label` must be one of the detector's {found.scores.shape[1]} classes; got class "
                f"{wanted}."
            )
        if self.box is not None:
            return self, wanted, form
        best = Box.best(output, self.label, None if names else wanted)
        assert best.box is not None
        high = (shape[1], shape[0]) * 2  # a detector may draw its box a little beyond the edge
        inside = tuple(min(max(part, 0.0), most) for part, most in zip(best.box, high, strict=True))
        return Box(self.label, inside), wanted, form  # type: ignore[arg-type]

    def read(self, output: Any, n: int, wanted: Any, form: Any) -> FloatArray:
        """The scores of n images, (n,)."""
        every = [found.of(wanted) for found in _detections(output, n, form)]
        box = np.array(self.box)
        return np.array([(overlap(b, box) * c).max(initial=0.0) for b, c in every], np.float64)

    def plain(self) -> dict[str, Any]:
        """As plain values, which a scene keeps."""
        return {"kind": "box", "label": self.label, "box": list(self.box or ())}


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """How probable a network finds a label inside a region: the mean over its pixels.

    For networks that return a map of scores for each class, (n, K, H, W) or (n, H, W, K), also as
    `out` or `logits` in a dictionary. A smaller map gets a smaller region.

    Parameters
    ----------
    label
        Name of the class, which the explainer's `labels` must have, or its number in the output.
    mask
        Which pixels: (H, W) of zeros and ones. None is where the network itself finds the label
        more probable than every other in the input.
    activation
        Turns outputs into probabilities: "softmax" over the classes, "sigmoid" or "none". "auto"
        takes the outputs as they are if all of those for the input are between 0 and 1, else the
        softmax, or the sigmoid for a network with one map.

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> def label(images):  # dark or bright, for each pixel
    ...     return np.stack([1 - images, images], axis=1)
    >>> image = np.zeros((8, 8))
    >>> image[:4, :4] = 0.9
    >>> grid = ("grid", {"rows": 2, "columns": 2})
    >>> explainer = eblime.ImageExplainer(label, segmentation=grid, hide=0.2)
    >>> e = explainer.explain(image, target=eblime.scores.Region(1))
    >>> print(e.label, round(e.prediction, 2), e.as_list(top=1)[0][0], sep="; ")
    region of 1 (16 pixels); 0.9; superpixel 0, upper left
    """

    label: str | int
    mask: Any = None
    activation: str = "auto"

    def __post_init__(self) -> None:
        """Refuse anything but a label, zeros and ones, and a known activation."""
        _check_label(self.label)
        check_choice("activation", self.activation, _ACTIVATIONS)
        if self.mask is None:
            return
        mask = np.asarray(on_cpu(self.mask))
        if mask.dtype.kind not in "buif" or not np.isin(mask, (0, 1)).all() or mask.ndim < 1:
            raise ValueError(f"`mask` must be an array of zeros and ones; got {self.mask!r:.80}.")
        if not mask.any():
            raise ValueError("`mask` must have at least one pixel; it is empty.")
        object.__setattr__(self, "mask", mask.astype(bool))

    @property
    def name(self) -> str:
        """What tables and pages call it."""
        size = "" if self.mask is None else f" ({int(self.mask.sum()):,} pixels)"
        return f"region of {self.label!r}{size}"

    @property
    def text(self) -> str:
        """As on the command line: `parse_score` reads it."""
        if self.mask is not None or self.activation != "auto":
            raise TypeError(
                "A region of many inputs, or on the command line, must be the network's own, "
                "Region(label), without a mask and an activation."
            )
        return f"region:{self.label}"

    @property
    def words(self) -> str:
        """What the score is."""
        kind = {"softmax": "softmax ", "sigmoid": "sigmoid "}.get(self.activation, "")
        return f"mean {kind}score of {self.label!r} in the {self.name}"

    def check(self, shape: tuple[int, ...]) -> None:
        """Refuse a mask of another size than the image."""
        if self.mask is not None and self.mask.shape != shape:
            raise ValueError(
                f"`mask` must have the size of the image, {shape}; got {self.mask.shape}."
            )

    def settle(self, output: Any, shape: tuple[int, ...], find: Find) -> tuple[Score, Any, Any]:
        """The score with its mask and activation, and its class, from the output for the input."""
        maps = np.asarray(on_cpu(_maps(output, 1, shape)), dtype=np.float64)
        number, classes = find(self.label), maps.shape[1]
        if classes == 1 and number == 1:
            number = 0  # one map for the object, without one for the rest
        if number >= classes:
            raise ValueError(
                f"`label` must be one of the network's {classes} classes; got class {number}."
            )
        found = self.activation
        if found == "auto":
            chances = bool(maps.min() >= 0 and maps.max() <= 1)
            found = "none" if chances else "softmax" if classes > 1 else "sigmoid"
        if self.mask is not None:
            return replace(self, activation=found), number, None
        own = maps[0].argmax(axis=0) == number
        if classes == 1:
            own = maps[0, 0] > (0 if found == "sigmoid" else 0.5)
        if not own.any():
            raise ValueError(f"The network finds {self.label!r} nowhere in the input; give `mask`.")
        return Region(self.label, _resize(own, shape), found), number, None

    def read(self, output: Any, n: int, wanted: int, form: Any) -> Any:
        """The scores of n images, (n,), on the device of the output."""
        maps = _maps(output, n, self.mask.shape)
        where: Any = np.flatnonzero(_resize(self.mask, tuple(maps.shape[2:])))
        if not where.size:
            raise ValueError(f"The region has no pixel in the map of size {tuple(maps.shape[2:])}.")
        if descends(maps, "torch", "Tensor"):
            import torch

            where, maps = torch.from_numpy(where).to(maps.device), maps.float()
        inside = maps.reshape(n, maps.shape[1], -1)[:, :, where]
        return activate(inside, self.activation)[:, wanted].mean(-1)

    def plain(self) -> dict[str, Any]:
        """As plain values, which a scene keeps."""
        found = {"kind": "region", "label": self.label, "activation": self.activation}
        return {**found, "mask": np.asarray(self.mask).astype(np.uint8)}


Score = Box | Region


def parse_score(target: Any) -> Any:
    """A target that is the text of a score, such as "box:car:10,20,60,80", as that score.

    Other targets are returned as they are.

    Examples
    --------
    >>> parse_score("box:car:10,20,60,80"), parse_score("box:car"), parse_score("car")
    (Box(label='car', box=(10.0, 20.0, 60.0, 80.0)), Box(label='car', box=None), 'car')
    """
    found = _TEXT.fullmatch(target) if isinstance(target, str) else None
    if found is None:
        return target
    kind, label, numbers = found.groups()
    if kind == "region":
        return Region(label if numbers is None else f"{label}:{numbers}")
    try:
        corners: Any = numbers and tuple(float(part) for part in numbers.split(","))
        return Box(label, corners)
    except ValueError as error:
        raise ValueError(
            f"`target` must be box:LABEL or box:LABEL:x0,y0,x1,y1; got {target!r}: {error}"
        ) from error


def restore_score(stored: Mapping[str, Any]) -> Score:
    """A score from the plain values that a scene keeps."""
    if stored["kind"] == "box":
        return Box(stored["label"], tuple(stored["box"]))
    return Region(stored["label"], stored["mask"], stored["activation"])


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads scores from what a model returns for n images: (n, scores)."""

    scores: tuple[Score, ...]
    classes: tuple[Any, ...]  # of each score, as the output has it
    forms: tuple[Any, ...]  # how the output is read for each

    def __call__(self, output: Any, n: int) -> Any:
        """The scores, on the device of the output if that is a map."""
        every = zip(self.scores, self.classes, self.forms, strict=True)
        columns = [score.read(output, n, wanted, form) for score, wanted, form in every]
        if any(descends(column, "torch", "Tensor") for column in columns):
            import torch

            return torch.stack([torch.as_tensor(column) for column in columns], dim=1)
        return np.stack(columns, axis=1)


def overlap(boxes: FloatArray, box: FloatArray) -> FloatArray:
    """Intersection over union of each of (M, 4) boxes with one, (M,).

    Examples
    --------
    >>> overlap(np.array([[0, 0, 2, 2], [1, 0, 3, 2], [5, 5, 6, 6]]), np.array([0, 0, 2, 2]))
    array([1.        , 0.33333333, 0.        ])
    """
    low, high = np.maximum(boxes[:, :2], box[:2]), np.minimum(boxes[:, 2:], box[2:])
    common = np.clip(high - low, 0, None).prod(axis=1)
    areas = np.clip(boxes[:, 2:] - boxes[:, :2], 0, None).prod(axis=1)
    return np.asarray(common / (areas + (box[2:] - box[:2]).prod() - common))


def _check_label(label: Any) -> None:
    """Refuse a label that is neither a name nor a number >= 0."""
    whole = isinstance(label, (int, np.integer)) and not isinstance(label, bool) and label >= 0
    if not (whole or (isinstance(label, str) and label)):
        raise TypeError(f"`label` must be a name or a whole number >= 0; got {label!r:.60}.")


def _check_pixels(boxes: FloatArray, shape: tuple[int, ...]) -> None:
    """Refuse boxes that are not (x0, y0, x1, y1) in pixels."""
    real = boxes[(boxes != 0).any(axis=1)]  # without padding
    wrong = real[(real[:, :2] > real[:, 2:]).any(axis=1)]
    if len(real) and real.max() <= 1 < min(shape) - 1:
        wrong = real
    if len(wrong):
        raise ValueError(
            "The detector must return boxes in pixels, (x0, y0, x1, y1), not parts of one or sizes;"
            f" got {wrong[0].round(3).tolist()}. Wrap it in a function that converts them."
        )


class _Detections(NamedTuple):
    """What a detector finds in one image."""

    boxes: FloatArray  # (M, 4)
    scores: FloatArray  # (M,), or (M, K) of every class
    labels: NDArray[Any] | None  # (M,); None if the scores are of every class

    def of(self, wanted: Any) -> tuple[FloatArray, FloatArray]:
        """The boxes of a class and their confidences."""
        if self.labels is None:
            return self.boxes, self.scores[:, wanted]
        own = self.labels == wanted
        return self.boxes[own], self.scores[own]


_Form = tuple[Any, Any, Any] | None  # keys of boxes, scores, labels; None if all are in one table


def _find_form(output: Any) -> _Form:
    """The form of a detector's output for one image."""
    one = isinstance(output, (list, tuple)) and len(output) == 1
    first = output[0] if one else output
    if _shape(first)[-1:] == (6,) and len(_shape(first)) in (2, 3):
        return None
    return _roles(first if isinstance(first, Mapping) else entries_of(output, None))


def _roles(parts: Mapping[Any, Any]) -> _Form:
    """Which part is which: by name, else by shape and type."""
    boxes, scores, labels = (
        [key for key in parts if any(word in str(key).lower() for word in words)]
        for words in _WORDS
    )
    if len(boxes) == len(scores) == 1:
        return boxes[0], scores[0], (*labels, None)[0]
    boxes = [key for key, part in parts.items() if _shape(part)[-1:] == (4,)]
    if len(boxes) == 1:
        count = _shape(parts[boxes[0]])[-2]
        rest = [key for key in parts if key != boxes[0] and count in _shape(parts[key])]
        rest.sort(key=lambda key: _wholeness(parts[key]))
        if rest and _wholeness(parts[rest[0]]) < 2:
            return boxes[0], rest[0], (*rest[1:], None)[0]
    known = ", ".join(f"{key!r} of shape {_shape(part)}" for key, part in parts.items())
    raise ValueError(f"The detector must return {_FORMS}. It returned {known or 'nothing'}.")


def _wholeness(part: Any) -> int:
    """How far a part looks like labels: 0 has fractions, 1 has whole floats, 2 are numbers."""
    values = np.asarray(on_cpu(part))
    return 2 if values.dtype.kind in "iuUSO" else int((values == np.rint(values)).all())


def _detections(output: Any, n: int, form: _Form) -> list[_Detections]:
    """What a detector finds in each of n images."""
    several = isinstance(output, (list, tuple))
    if form is None:
        tables = list(output) if several or len(_shape(output)) == 3 else [output]
        rows = [np.asarray(on_cpu(table), dtype=np.float64).reshape(-1, 6) for table in tables]
        found = [_one(table[:, :4], table[:, 4], table[:, 5]) for table in rows]
    elif several and all(isinstance(record, Mapping) for record in output):
        found = [_one(*(record.get(key) for key in form)) for record in output]
    else:
        parts: Any = entries_of(output, None)
        boxes, scores, labels = (parts.get(key) for key in form)
        if not isinstance(boxes, (list, tuple)) and len(_shape(boxes)) == 2:
            boxes, scores, labels = [boxes], [scores], None if labels is None else [labels]
        names = [None] * len(boxes) if labels is None else labels
        found = [_one(*parts) for parts in zip(boxes, scores, names, strict=True)]
    if len(found) != n:
        raise ValueError(
            f"The detector must return the boxes of each of the {n} images of a batch; it returned "
            f"those of {len(found)}. For a detector of single images use "
            "calls=eblime.Calls(batch_size=1)."
        )
    return found


def _one(boxes: Any, scores: Any, labels: Any) -> _Detections:
    """What is found in one image, as arrays."""
    corners, chances = (np.asarray(on_cpu(part), dtype=np.float64) for part in (boxes, scores))
    names = None if labels is None else np.asarray(on_cpu(labels)).ravel()
    count = corners.size // 4
    chances = chances.T if chances.ndim == 2 and len(chances) != count else chances
    if names is None:
        fits = chances.ndim == 2 and len(chances) == count
    else:
        fits = chances.shape == names.shape == (count,)
    if corners.size != 4 * count or not fits:
        raise ValueError(
            "The detector must return boxes of four numbers, (x0, y0, x1, y1), with one score and "
            f"one label per box; it returned boxes of shape {corners.shape}, scores of shape "
            f"{chances.shape} and labels of shape {_shape(labels)}."
        )
    return _Detections(corners.reshape(-1, 4), chances, names)


def _maps(output: Any, n: int, shape: tuple[int, ...]) -> Any:
    """The maps of a network for n images, (n, K, H, W), as an array or a tensor."""
    parts = entries_of(output, None)
    wanted: Any = "out" if "out" in parts else default_output(list(parts))
    maps = parts.get(wanted)
    found = _shape(maps) if maps is not None else ()
    if maps is not None and len(found) == len(shape) + 1:
        maps, found = maps[:, None], (found[0], 1, *found[1:])
    if maps is None or len(found) != len(shape) + 2 or found[0] != n:
        known = ", ".join(f"{key!r} of shape {_shape(part)}" for key, part in parts.items())
        raise ValueError(
            f"The network must return one map per class for each of {n} images, shape (n, K, H, W),"
            f" alone or as `out` or `logits`; it returned {known or 'nothing'}."
        )
    if found[1:-1] == shape and found[2:] != shape:  # classes last
        return maps.movedim(-1, 1) if hasattr(maps, "movedim") else np.moveaxis(maps, -1, 1)
    return maps


def _resize(mask: BoolArray, shape: tuple[int, ...]) -> BoolArray:
    """A mask at another resolution: each pixel has the nearest value."""
    for axis, (old, new) in enumerate(zip(mask.shape, shape, strict=True)):
        if old != new:
            places: IntArray = ((np.arange(new) + 0.5) * old / new).astype(np.intp)
            mask = mask.take(places, axis=axis)
    return mask


def _shape(value: Any) -> tuple[int, ...]:
    """The shape of an array, a tensor or nested lists; empty for anything else."""
    known = getattr(value, "shape", None)
    if known is not None:
        return tuple(known)
    try:
        return np.shape(value)
    except ValueError:  # rows of different lengths
        return ()
