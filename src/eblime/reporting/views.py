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
from eblime._types import FloatArray, IntArray
from eblime.plot.style import AGAINST, FAVOUR
from eblime.reporting.render import render
from eblime.results.explanation import Explanation

if TYPE_CHECKING:
    from markupsafe import Markup

__all__ = [
    *("MOST", "image_view", "input_view", "outlines", "prompt_view", "text_view", "thumbnail"),
]

MOST = 250  # features with all their numbers; a page stays below 400 KB
_LONGEST = 640  # units along the longer side of the outlines
_PHOTO = 960  # pixels along the longer side of a photo in a page
_TOP = 3  # the k of P(top k) beside a source
_THUMBNAIL = 112  # and in a list of many
_OUTLINE_BYTES = 160_000  # above this size the outlines are computed at a lower resolution


def input_view(explanation: Explanation) -> Markup:
    """The view of the explanation's domain as HTML; empty for a domain without a view."""
    from markupsafe import Markup

    domain = registry.get("domains", explanation.scene.domain)
    view = None if domain is None else registry.of_domain(domain, "view")
    return Markup("" if view is None else view(explanation))


def image_view(explanation: Explanation) -> Markup:
    """The photo with one outline per superpixel over it."""
    scene: Any = explanation.scene
    labels, paths = _outlines_of_photo(scene.labels)
    paths += [""] * (scene.n_features - len(paths))
    order, mean = explanation.posterior.order(), explanation.posterior.mean
    largest = np.abs(mean).max() or 1.0
    return render(
        "image_view.html.j2",
        photo=_data_uri(scene.photo(2 * _PHOTO), _PHOTO),
        rows=labels.shape[0],
        columns=labels.shape[1],
        pixelated=max(scene.labels.shape) <= 128,
        shapes=[
            (int(j), paths[j], FAVOUR if mean[j] > 0 else AGAINST, 0.75 * abs(mean[j]) / largest)
            for j in order[:MOST]
            if paths[j]
        ],
        rest="".join(paths[j] for j in order[MOST:]),
        target=_target_path(explanation, *labels.shape),
    )


def _target_path(explanation: Explanation, rows: int, columns: int) -> str:
    """An SVG path around the box or the region whose score is explained; empty without one."""
    scene: Any = explanation.scene
    if explanation.target >= len(scene.scores):
        return ""
    score = scene.scores[explanation.target]
    if score["kind"] == "region":
        return (*outlines(_resize(score["mask"].astype(np.intp), rows, columns)), "", "")[1]
    height, width = scene.labels.shape
    x0, x1 = (round(x * columns / width, 1) for x in score["box"][::2])
    y0, y1 = (round(y * rows / height, 1) for y in score["box"][1::2])
    return f"M{x0:g} {y0:g}H{x1:g}V{y1:g}H{x0:g}z"


def text_view(explanation: Explanation) -> Markup:
    """The text with one element per token."""
    scene: Any = explanation.scene
    pieces = [
        (_lines(piece), None if owner < 0 else int(owner))
        for piece, owner in zip(scene.pieces, scene.owners, strict=True)
    ]
    return render("text_view.html.j2", pieces=pieces)


def prompt_view(explanation: Explanation) -> Markup:
    """The answer, then the prompt with one element per source, and the numbers of each source."""
    scene: Any = explanation.scene
    post, k = explanation.posterior, min(_TOP, scene.n_features)
    words = [f"{mean:.3g}" for mean in post.mean]
    if post.has_spread:
        ends, top = post.interval(), post.top_k_probability(k)
        for j, (low, high) in enumerate(ends):
            words[j] += f" ({low:.3g} to {high:.3g}), P(top {k}) {top[j]:.2f}"
    pieces = [
        (_lines(piece), None if owner < 0 else owner, "" if owner < 0 else words[owner])
        for piece, owner in zip(scene.pieces, scene.owners, strict=True)
    ]
    start, end = scene.spans[explanation.target if explanation.target < len(scene.spans) else 0]
    parts = (scene.answer[:start], scene.answer[start:end], scene.answer[end:])
    return render(
        "prompt_view.html.j2",
        question=_lines(scene.question),
        answer=[_lines(part) for part in parts] if scene.answer else None,
        pieces=pieces,
    )


def thumbnail(explanation: Explanation) -> str:
    """A small photo as a data URI: superpixels that certainly raise the score, the rest dimmed.

    Empty for inputs that are not images.
    """
    if explanation.scene.domain != "image":
        return ""
    scene: Any = explanation.scene
    post = explanation.posterior
    certain = post.interval(0.95)[:, 0] > 0 if post.has_spread else post.mean > 0
    photo = scene.photo(2 * _THUMBNAIL)
    labels = _resize(scene.labels, *photo.shape[:2])
    shown = np.where(certain[labels][..., None], photo, 0.25 * photo + 0.55)
    return _data_uri(shown, _THUMBNAIL)


def _outlines_of_photo(labels: IntArray) -> tuple[IntArray, list[str]]:
    """Labels at the resolution of the outlines, and an SVG path for each superpixel."""
    height, width = labels.shape
    shrink = max(1.0, max(height, width) / _LONGEST)
    while True:
        small = _resize(labels, round(height / shrink), round(width / shrink))
        paths = outlines(small)
        if sum(map(len, paths)) <= _OUTLINE_BYTES or min(small.shape) < 64:
            return small, paths
        shrink *= 1.5


def _lines(piece: str) -> Markup:
    """A piece of text with its line breaks; tabs become spaces."""
    from markupsafe import Markup

    lines = piece.replace("\r\n", "\n").replace("\r", "\n").expandtabs(4).split("\n")
    return Markup("\n").join(printable(line) for line in lines)


def _resize(labels: IntArray, rows: int, columns: int) -> IntArray:
    """Labels at another resolution: each the nearest label."""
    height, width = labels.shape
    down = ((np.arange(max(rows, 1)) + 0.5) * height / max(rows, 1)).astype(np.intp)
    across = ((np.arange(max(columns, 1)) + 0.5) * width / max(columns, 1)).astype(np.intp)
    return np.asarray(labels[down][:, across])


def _data_uri(photo: FloatArray, longest: int) -> str:
    """A photo as a data URI: PNG for small ones, JPEG for others."""
    from PIL import Image

    image = Image.fromarray(np.round(255 * photo).astype(np.uint8))
    small = max(image.size) <= 128
    image.thumbnail((longest, longest))
    buffer = io.BytesIO()
    image.save(buffer, "PNG" if small else "JPEG", quality=86, optimize=True)
    kind = "png" if small else "jpeg"
    return f"data:image/{kind};base64,{base64.b64encode(buffer.getvalue()).decode()}"


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
                parts.append(_command(last, run))
                run = 0
            run, last = run + 1, step
            corner = (corner[0] + step[0], corner[1] + step[1])
        parts.append("z")  # closing the path draws the last run
    return "".join(parts)


def _command(step: tuple[int, int], run: int) -> str:
    """One straight run as a relative SVG command."""
    return f"{'v' if step[0] else 'h'}{run * (step[0] + step[1])}"
