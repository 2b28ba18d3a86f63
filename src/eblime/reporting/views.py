"""The input with its features marked, so that a reader can point at them.

The `Domain` record names the view of its inputs: a function from an explanation to HTML. Elements
with `data-feature="j"` are coloured by the page and by the notebook.
"""

from __future__ import annotations

import base64
import io
from typing import TYPE_CHECKING, Any

import numpy as np

from eblime import registry
from eblime._text import printable
from eblime._types import BoolArray, FloatArray, IntArray
from eblime.plot.maps import Canvas, check_truth, target_mask, tinted
from eblime.plot.signals import picture_of
from eblime.plot.style import STRONGEST, sign_colour, signed_shares, uncertain
from eblime.plot.volumes import PLANES, sections_of
from eblime.reporting.render import render
from eblime.results.explanation import Explanation
from eblime.scores import resize

if TYPE_CHECKING:
    from markupsafe import Markup

MOST = 250  # features with all their numbers; a page stays below 400 KB
_LONGEST = 640  # units along the longer side of the outlines
_PHOTO = 960  # pixels along the longer side of a photo in a page
_SLICE = 160  # pixels and units along the longer side of a slice of a volume
_STORED = 16  # slices along each axis, and as many at the centres of the top features
_MARKS = 5_000  # elements of a text
_THUMBNAIL = 112  # and in a list of many
_OUTLINE_BYTES = 160_000  # above this size the outlines are computed at a lower resolution


def input_view(explanation: Explanation, truth: BoolArray | None = None) -> Markup:
    """The view of the explanation's domain as HTML; empty for a domain without a view."""
    from markupsafe import Markup

    if truth is not None:
        return image_view(explanation, truth)
    domain = registry.get("domains", explanation.scene.domain)
    view = None if domain is None else registry.of_domain(domain, "view")
    return Markup("" if view is None else view(explanation))


def image_view(explanation: Explanation, truth: BoolArray | None = None) -> Markup:
    """The photo with one outline per superpixel over it, and that of a known mask."""
    scene: Any = explanation.scene
    layers = _layers(explanation, scene.photo(2 * _PHOTO), scene.labels, _LONGEST, _PHOTO)
    drawn = {"target": target_mask(explanation), "truth": None}
    if truth is not None:
        drawn["truth"] = check_truth(explanation, truth)
    paths = dict.fromkeys(drawn, "")
    for name, mask in drawn.items():
        if mask is not None:
            inside = resize(mask.astype(int), (layers["rows"], layers["columns"]))
            paths[name] = outlines(inside)[1] if inside.any() else ""
    return render("image_view.html.j2", layers=layers, **paths)


def _layers(
    explanation: Explanation, photo: FloatArray, labels: IntArray, longest: int, pixels: int
) -> dict[str, Any]:
    """A photo as a data URI, and an outline for each feature that is there."""
    order, shares = explanation.posterior.order(), signed_shares(explanation)
    number = np.full(len(order), MOST)  # those that the page leaves out have one outline
    number[order[:MOST]] = np.arange(len(order[:MOST]))
    small, paths = _outlines_of_photo(number[labels], longest)
    return {
        "photo": _photo_uri(photo, pixels),
        "rows": small.shape[0],
        "columns": small.shape[1],
        "pixelated": max(labels.shape) <= 128,
        "shapes": [
            (int(j), path, sign_colour(shares[j]), STRONGEST * abs(shares[j]))
            for j, path in zip(order[:MOST], paths, strict=False)
            if path
        ],
        "rest": "".join(paths[MOST:]),
    }


def volume_view(explanation: Explanation) -> Markup:
    """Three slices with a slider each, and three projections.

    The slices to switch to are in a `template` element, for the script of the page.
    """
    cut, order = sections_of(explanation), explanation.posterior.order()
    centres = [cut.centre(int(j)) for j in order[:_STORED]]
    panels = []
    for axis, (down, across) in enumerate(PLANES):
        length = cut.full.shape[axis]
        even = np.linspace(0, length - 1, min(length, _STORED)).round().astype(int)
        stored = sorted({*even.tolist(), *(centre[axis] for centre in centres)})
        panels.append(
            {
                "name": cut.name(axis),
                "axis": cut.axes[axis],
                "down": down,
                "across": across,
                "wide": 1000 * cut.lengths[across] / max(cut.lengths),
                "tall": 1000 * cut.lengths[down] / max(cut.lengths),
                "slices": [
                    (
                        cut.place(axis, k),
                        (k + 0.5) / length,
                        _panel(explanation, cut.slice(axis, k)),
                    )
                    for k in stored
                ],
                "first": stored.index(centres[0][axis]),
                "projection": _panel(explanation, cut.projection(axis, order)),
            }
        )
    at = (np.array(centres) + 0.5) / cut.full.shape
    return render(
        "volume_view.html.j2",
        panels=panels,
        centres=dict(zip(order.tolist(), at.round(4).tolist(), strict=False)),
    )


def _panel(explanation: Explanation, canvas: Canvas) -> dict[str, Any]:
    return _layers(explanation, canvas.photo, canvas.labels, _SLICE, _SLICE)


def text_view(explanation: Explanation) -> Markup:
    """The text with one element per token."""
    return render("text_view.html.j2", pieces=_marked(explanation))


def _marked(explanation: Explanation) -> list[tuple[str, int | None]]:
    """The text in pieces, each with its feature; None for what no feature of the page has."""
    scene: Any = explanation.scene
    shown = set(explanation.posterior.order()[:MOST].tolist())
    found: list[tuple[str, int | None]] = []
    plain: list[str] = []
    for piece, owner in zip(scene.pieces, scene.owners, strict=True):
        if owner in shown and len(found) < 2 * _MARKS:
            found += [(as_lines("".join(plain)), None), (as_lines(piece), int(owner))]
            plain.clear()
        else:
            plain.append(piece)
    return [*found, (as_lines("".join(plain)), None)]


def prompt_view(explanation: Explanation) -> Markup:
    """The answer, then the prompt with one element per source."""
    scene: Any = explanation.scene
    start, end = scene.spans[explanation.target if explanation.target < len(scene.spans) else 0]
    parts = (scene.answer[:start], scene.answer[start:end], scene.answer[end:])
    return render(
        "prompt_view.html.j2",
        question=as_lines(scene.question),
        answer=[as_lines(part) for part in parts] if scene.answer else None,
        pieces=_marked(explanation),
        names=[as_lines(name.partition(" '")[0]) for name in explanation.features],
    )


def signal_view(explanation: Explanation) -> Markup:
    """The signal, or its spectrogram, with one box per window or band."""
    picture, shares = picture_of(explanation), signed_shares(explanation)
    several = len(picture.lanes) > 1
    high = 52 if several else 200
    lanes = [
        {
            "name": lane.name if several else "",
            "line": _polyline(lane.line),
            "dense": lane.dense,
            "shades": _photo_uri(1 - 0.7 * lane.shades[::-1], _PHOTO) if lane.shades.size else "",
            "boxes": [
                (j, 100 * left, 100 * wide, high * (1 - low - tall), high * tall)
                for j, left, low, wide, tall in lane.boxes
            ],
        }
        for lane in picture.lanes
    ]
    return render(
        "signal_view.html.j2",
        lanes=lanes,
        picture=picture,
        high=high,
        step=high + (20 if several else 4),
        shares=shares,
        unsure=uncertain(explanation),
    )


def _polyline(line: FloatArray) -> str:
    """Points in shares as an SVG path in a box of 1000 x 1000; empty without points."""
    across, down = np.round(1000 * line[:, 0], 1), np.round(1000 * (1 - line[:, 1]))
    points = [f"{x:g} {y:g}" for x, y in zip(across, down, strict=True)]
    return f"M{'L'.join(points)}" if points else ""


def thumbnail(explanation: Explanation, most: float | None = None) -> str:
    """A small photo in grey as a data URI, coloured as on a map by what is certain of `most`.

    Of a volume the projection along its first axis; empty for other inputs.
    """
    from scipy import ndimage

    scene: Any = explanation.scene
    if scene.domain == "image":
        photo = scene.photo(2 * _THUMBNAIL)
        labels = resize(scene.labels, photo.shape[:2])
    elif scene.domain == "volume":
        canvas = sections_of(explanation).projection(0, explanation.posterior.order())
        photo, labels = canvas.photo, canvas.labels
    else:
        return ""
    shown = tinted(photo, labels, signed_shares(explanation, most))
    mask = target_mask(explanation) if scene.domain == "image" else None
    if mask is not None:
        inside = resize(mask, photo.shape[:2])
        width = max(1, round(max(inside.shape) / 56))  # two pixels of a thumbnail
        shown[inside & ~ndimage.binary_erosion(inside, iterations=width)] = (0, 0.3, 1)  # blue
    return _data_uri(shown, _THUMBNAIL, quality=75)


def _outlines_of_photo(labels: IntArray, longest: int) -> tuple[IntArray, list[str]]:
    """Labels at the resolution of the outlines, and an SVG path for each superpixel."""
    height, width = labels.shape
    shrink = max(1.0, max(height, width) / longest)
    while True:
        sizes = max(round(height / shrink), 1), max(round(width / shrink), 1)
        small = resize(labels, sizes)
        borders = sum(np.count_nonzero(np.diff(small, axis=axis)) for axis in (0, 1))
        if borders <= longest**2 // 8 or min(small.shape) < 32:
            paths = outlines(small)
            if sum(map(len, paths)) <= _OUTLINE_BYTES or min(small.shape) < 32:
                return small, paths
        shrink *= 1.5


def as_lines(piece: str) -> Markup:
    """A piece of text with its line breaks; tabs become spaces."""
    from markupsafe import Markup

    lines = piece.replace("\r\n", "\n").replace("\r", "\n").expandtabs(4).split("\n")
    return Markup("\n").join(printable(line) for line in lines)


def _photo_uri(photo: FloatArray, longest: int) -> str:
    """A photo as a data URI: PNG for small ones, JPEG for others."""
    return _data_uri(photo, longest, quality=None if max(photo.shape[:2]) <= 128 else 86)


def _data_uri(photo: FloatArray, longest: int, *, quality: int | None) -> str:
    from PIL import Image

    image = Image.fromarray(np.round(255 * photo).astype(np.uint8))
    image.thumbnail((longest, longest))
    buffer, kind = io.BytesIO(), "png" if quality is None else "jpeg"
    sharp = 0 if longest == _THUMBNAIL else -1  # colours of thin outlines, or fewer bytes
    image.save(buffer, kind, quality=quality, optimize=True, subsampling=sharp)
    return f"data:image/{kind};base64,{base64.b64encode(buffer.getvalue()).decode()}"


def figure_data(figure: Any, dpi: int) -> str:
    """A matplotlib figure as the data of a PNG."""
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=dpi)
    return base64.b64encode(content.getvalue()).decode()


def outlines(labels: IntArray) -> list[str]:
    """An SVG path for each label 0 .. p - 1; empty for a label without pixels.

    A hole is a loop in the opposite direction, so that both fill rules leave it empty.
    """
    count = int(labels.max()) + 1
    edges: list[dict[tuple[int, int], list[tuple[int, int]]]] = [{} for _ in range(count)]
    padded = np.pad(labels, 1, constant_values=-1)
    inner = padded[1:-1, 1:-1]
    # directed edges between pixel corners (row, column), with the superpixel on the right
    for step, neighbour, start in (
        ((0, 1), padded[:-2, 1:-1], (0, 0)),  # border above: go right along the top
        ((1, 0), padded[1:-1, 2:], (0, 1)),  # border on the right: go down
        ((0, -1), padded[2:, 1:-1], (1, 1)),  # border below: go left
        ((-1, 0), padded[1:-1, :-2], (1, 0)),  # border on the left: go up
    ):
        rows, columns = np.nonzero(inner != neighbour)
        for label, row, column in zip(
            inner[rows, columns].tolist(),
            (rows + start[0]).tolist(),
            (columns + start[1]).tolist(),
            strict=True,
        ):
            edges[label].setdefault((row, column), []).append(step)
    return [_path(steps) for steps in edges]


def _path(edges: dict[tuple[int, int], list[tuple[int, int]]]) -> str:
    """Chain directed unit edges into closed loops; a straight run is one command.

    As many edges enter a corner as leave it, so every loop closes.
    """
    parts: list[str] = []
    while edges:
        first = corner = next(iter(edges))
        parts.append(f"M{first[1]} {first[0]}")
        run, last = 0, None
        while run == 0 or corner != first:
            step = edges[corner].pop()
            if not edges[corner]:
                del edges[corner]
            if last is not None and step != last:
                parts.append(f"{'v' if last[0] else 'h'}{run * (last[0] + last[1])}")
                run = 0
            run, last = run + 1, step
            corner = (corner[0] + step[0], corner[1] + step[1])
        parts.append("z")  # closing the path draws the last run
    return "".join(parts)
