"""Scores of detectors and of networks that label pixels: one number per image.

`Box` and `Region` are targets, as a label is: `explain(image, target=Box("car"))`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eblime._checks import as_floats, check_choice, check_count
from eblime._types import FloatArray, Record
from eblime.models.conversion import activate, default_output, entries_of, on_cpu

__all__ = ["Box", "Region"]

_ACTIVATIONS = ("auto", "softmax", "sigmoid", "none")
_TEXT = re.compile(r"(box|region):(.+?)(?::([-+\d.e,\s]+))?")
_FORMS = (
    "a list with a dictionary of `boxes`, `scores` and `labels` for each image, as torchvision's; "
    "arrays (n, M, 4) of boxes, (n, M) of scores and (n, M) of whole numbers, the classes, in a "
    "tuple or a dictionary; or one array (n, M, 6) of x0, y0, x1, y1, score and class"
)
Find = Callable[[str | int], int]  # from a label to the number of its class


@dataclass(frozen=True, slots=True)
class Box:
    """How surely a detector finds an object of a label at a place.

    The score of an image is the largest product of overlap (intersection over union) and confidence
    among the detector's boxes with that label; 0 without one.

    A detector may return torchvision's list of dictionaries, boxes, scores and classes in a tuple
    or a dictionary, or one array, (n, M, 6).

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
        _check_label(self.label)
        if self.box is None:
            return
        corners = as_floats("box", self.box)
        rises = corners.shape == (4,) and (corners[:2] < corners[2:]).all()
        if not (rises and np.isfinite(corners).all()):
            raise ValueError(
                "`box` must be four numbers, (x0, y0, x1, y1) with x0 < x1 and y0 < y1; got "
                f"{self.box!r:.80}."
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

    def settle(self, output: object, shape: tuple[int, ...], find: Find) -> tuple[Score, object]:
        """The score with its box, and its class in the output, from the output for the input."""
        (found,) = _detections(output, 1)
        _check_pixels(found.boxes, shape)
        named = found.labels.dtype.kind in "USO"
        wanted: object = str(self.label) if named else find(self.label)
        if self.box is not None:
            return self, wanted
        boxes, chances = found.of(wanted)
        if not chances.max(initial=0) > 0:
            known = ", ".join(map(repr, np.unique(found.labels).tolist()[:8]))
            also = f"; it found boxes of {known}" if known else ""
            raise ValueError(f"The detector finds no box of {self.label!r} in the input{also}.")
        high = (shape[1], shape[0]) * 2  # a detector may draw its box a little beyond the edge
        best = np.clip(boxes[chances.argmax()], 0, high)
        return Box(self.label, tuple(best.tolist())), wanted

    def read(self, output: object, n: int, wanted: object) -> FloatArray:
        """The scores of n images, (n,)."""
        every, box = [found.of(wanted) for found in _detections(output, n)], np.array(self.box)
        return np.array([(overlap(b, box) * c).max(initial=0.0) for b, c in every], np.float64)


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

    def settle(self, output: object, shape: tuple[int, ...], find: Find) -> tuple[Score, object]:
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
            return replace(self, activation=found), number
        own = maps[0].argmax(axis=0) == number
        if classes == 1:
            own = maps[0, 0] > (0 if found == "sigmoid" else 0.5)
        if not own.any():
            raise ValueError(f"The network finds {self.label!r} nowhere in the input; give `mask`.")
        return Region(self.label, resize(own, shape), found), number

    def read(self, output: Any, n: int, wanted: int) -> FloatArray:
        """The scores of n images, (n,)."""
        maps = _maps(output, n, self.mask.shape)
        where = np.flatnonzero(resize(self.mask, tuple(maps.shape[2:])))
        if not where.size:
            raise ValueError(f"The region has no pixel in the map of size {tuple(maps.shape[2:])}.")
        maps = maps.float() if hasattr(maps, "float") else maps  # a tensor, maybe of half precision
        inside = maps.reshape(n, maps.shape[1], -1)[:, :, where]
        scores = activate(inside, self.activation)[:, wanted].mean(-1)
        return np.asarray(on_cpu(scores), dtype=np.float64)


Score = Box | Region


Target = int | str | Score | None
Targets = int | Sequence[int | str | Score]


def scores_of(targets: object, labels: Sequence[str] | Mapping[int, str] | None) -> list[Score]:
    """The boxes and regions among targets, also as texts; all of them, or none."""
    if not isinstance(targets, (list, tuple)):
        return []
    names = labels.values() if isinstance(labels, Mapping) else labels or ()
    found = [target if target in names else parse_score(target) for target in targets]
    scores = [target for target in found if isinstance(target, (Box, Region))]
    if scores and len(scores) < len(found):
        raise TypeError(f"`targets` must be all boxes and regions, or none; got {targets!r:.80}.")
    return scores


def parse_score(target: object) -> Any:
    """A target that is the text of a score, such as "box:car:10,20,60,80", as that score.

    Other targets are returned as they are.
    """
    found = _TEXT.fullmatch(target) if isinstance(target, str) else None
    if found is None:
        return target
    kind, label, numbers = found.groups()
    if kind == "region":
        return Region(label if numbers is None else f"{label}:{numbers}")
    return Box(label, numbers and tuple(map(float, numbers.split(","))))  # type: ignore[arg-type]


def score_record(score: Score) -> Record:
    """A score as plain values, which a scene keeps."""
    found = {entry.name: getattr(score, entry.name) for entry in fields(score)}
    if isinstance(score, Box):
        return {"kind": "box", **found, "box": list(score.box or ())}
    return {"kind": "region", **found, "mask": np.asarray(score.mask).astype(np.uint8)}


def restore_score(record: Mapping[str, Any]) -> Score:
    """A score from its record."""
    settings = dict(record)
    return (Box if settings.pop("kind") == "box" else Region)(**settings)


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads scores from what a model returns for n images: (n, scores)."""

    scores: tuple[Score, ...]
    classes: tuple[Any, ...]  # of each score, as the output has it

    def __call__(self, output: Any, n: int) -> FloatArray:
        """The scores, (n, scores)."""
        every = zip(self.scores, self.classes, strict=True)
        return np.stack([score.read(output, n, wanted) for score, wanted in every], axis=1)


def overlap(boxes: FloatArray, box: FloatArray) -> FloatArray:
    """Intersection over union of each of (M, 4) boxes with one, (M,)."""
    low, high = np.maximum(boxes[:, :2], box[:2]), np.minimum(boxes[:, 2:], box[2:])
    common = np.clip(high - low, 0, None).prod(axis=1)
    areas = np.clip(boxes[:, 2:] - boxes[:, :2], 0, None).prod(axis=1)
    return np.asarray(common / (areas + (box[2:] - box[:2]).prod() - common))


def _check_label(label: Any) -> None:
    if not (isinstance(label, str) and label):
        check_count("label", label, minimum=0)


def _check_pixels(boxes: FloatArray, shape: tuple[int, ...]) -> None:
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
    scores: FloatArray  # (M,)
    labels: NDArray[np.generic]  # (M,)

    def of(self, wanted: object) -> tuple[FloatArray, FloatArray]:
        """The boxes of a class and their confidences."""
        own = self.labels == wanted
        return self.boxes[own], self.scores[own]


def _detections(output: Any, n: int) -> list[_Detections]:
    several = isinstance(output, (list, tuple))
    parts = entries_of(output, None)
    if several and all(isinstance(record, Mapping) for record in output):
        found = [_one(*_roles(record)) for record in output]
    elif all(_shape(part)[-1:] in ((6,), (0,)) for part in parts.values()):
        tables = output if several or len(_shape(output)) == 3 else [output]
        rows = [np.asarray(on_cpu(table), dtype=np.float64).reshape(-1, 6) for table in tables]
        found = [_one(table[:, :4], table[:, 4], table[:, 5]) for table in rows]
    else:
        arrays = _roles(parts)
        if len(_shape(arrays[0])) == 2:  # of one image
            arrays = tuple(part[None] for part in arrays)
        found = [_one(*one) for one in zip(*arrays, strict=True)]
    if len(found) != n:
        raise ValueError(
            f"The detector must return the boxes of each of the {n} images of a batch; it returned "
            f"those of {len(found)}. For a detector of single images use "
            "calls=eblime.Calls(batch_size=1)."
        )
    return found


def _roles(parts: Mapping[str | int, Any]) -> tuple[Any, ...]:
    """Boxes, scores and labels: by name, else by the boxes' shape and the labels' type."""
    if {"boxes", "scores", "labels"} <= parts.keys():
        return parts["boxes"], parts["scores"], parts["labels"]
    boxes = [part for part in parts.values() if _shape(part)[-1:] == (4,)]
    rest = [on_cpu(part) for part in parts.values() if _shape(part)[-1:] != (4,)]
    if len(boxes) == 1 and len(rest) == 2:
        return boxes[0], *sorted(rest, key=lambda part: np.asarray(part).dtype.kind != "f")
    known = ", ".join(f"{key!r} of shape {_shape(part)}" for key, part in parts.items())
    raise ValueError(f"The detector must return {_FORMS}. It returned {known or 'nothing'}.")


def _one(boxes: object, scores: object, labels: object) -> _Detections:
    corners, chances = (np.asarray(on_cpu(part), dtype=np.float64) for part in (boxes, scores))
    names, count = np.asarray(on_cpu(labels)).ravel(), corners.size // 4
    if corners.size != 4 * count or not chances.shape == names.shape == (count,):
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
            f" alone or as `out` or `logits`; it returned {known or 'nothing'}. For a detector, "
            "explain a box: target=eblime.scores.Box(label)."
        )
    if found[1:-1] == shape and found[2:] != shape:  # classes last
        return maps.movedim(-1, 1) if hasattr(maps, "movedim") else np.moveaxis(maps, -1, 1)
    return maps


def resize(pixels: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """A mask or labels at another resolution: each pixel has the nearest value."""
    sizes = zip(pixels.shape, shape, strict=True)
    places = [((np.arange(new) + 0.5) * old / new).astype(np.intp) for old, new in sizes]
    return np.asarray(pixels[np.ix_(*places)])


def _shape(value: Any) -> tuple[int, ...]:
    """The shape of an array, a tensor or nested lists; empty for anything else."""
    known = getattr(value, "shape", None)
    if known is not None:
        return tuple(known)
    try:
        return np.shape(value)
    except ValueError:  # rows of different lengths
        return ()
