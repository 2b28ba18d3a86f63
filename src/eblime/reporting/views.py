"""What was explained, drawn so that its features can be pointed at."""

from __future__ import annotations

import base64
import io
from html import escape
from typing import Any

import numpy as np

from eblime import registry
from eblime._text import printable
from eblime._types import FloatArray
from eblime.plot.style import AGAINST, FAVOUR
from eblime.reporting.numbers import MOST, reading_order
from eblime.reporting.outlines import outlines
from eblime.results.explanation import Explanation

__all__ = ["image_view", "scene_view", "text", "text_view", "thumbnail"]

_LONGEST = 640  # along the longer side of the outlines
_PHOTO = 960  # pixels of a photo's longer side in a page
_SMALL = 112  # in a list of many
_OUTLINE_BYTES = 160_000  # beyond it the outlines are cut from a coarser picture


def text(value: object) -> str:
    """Any string from outside, as text of a page."""
    return escape(printable(value), quote=True)


def scene_view(explanation: Explanation, *, inline: bool = False) -> str:
    """The input with its features marked, by the `view` of its domain; empty if it has none.

    `inline` asks for style attributes, for notebooks, which have neither the style sheet nor the
    script of a page.
    """
    name = explanation.scene.domain
    view = registry.find("domains", name).view if name in registry.names("domains") else None
    return "" if view is None else str(registry.resolve(view)(explanation, inline=inline))


def thumbnail(explanation: Explanation) -> str:
    """A small picture of a photo: what surely speaks for the output, the rest dimmed."""
    scene: Any = explanation.scene
    if not hasattr(scene, "photo"):
        return ""
    post = explanation.posterior
    sure = post.interval(0.95)[:, 0] > 0 if post.has_spread else post.mean > 0
    photo = scene.photo(2 * _SMALL)
    labels = _thinned(scene.labels, *photo.shape[:2])
    shown = np.where(sure[labels][..., None], photo, 0.25 * photo + 0.55)
    return f'<img alt="" src="{_data_uri(shown, _SMALL)}">'


def image_view(explanation: Explanation, *, inline: bool = False) -> str:
    """The photo, and over it one outline per superpixel, tinted by its mean."""
    scene: Any = explanation.scene
    photo, labels = scene.photo(2 * _PHOTO), scene.labels
    height, width = labels.shape
    shrink = max(1.0, max(height, width) / _LONGEST)
    while True:
        small = _thinned(labels, round(height / shrink), round(width / shrink))
        paths = outlines(small)
        if sum(map(len, paths)) <= _OUTLINE_BYTES or min(small.shape) < 64:
            break
        shrink *= 1.5
    paths += [""] * (scene.n_features - len(paths))
    mean = explanation.posterior.mean
    strongest = np.abs(mean).max() or 1.0
    order = reading_order(explanation)
    shapes = "".join(
        f'<path d="{paths[j]}" data-feature="{j}" fill="{FAVOUR if mean[j] > 0 else AGAINST}" '
        f'fill-opacity="{0.75 * abs(mean[j]) / strongest:.2f}"/>'
        for j in order[:MOST]
        if paths[j]
    )
    rest = "".join(paths[j] for j in order[MOST:])
    shapes += f'<path d="{rest}" fill="none"/>' if rest else ""
    rows, columns = small.shape
    small_photo = ' class="pixels"' if max(height, width) <= 128 else ""
    return (
        f'<svg class="photo" viewBox="0 0 {columns} {rows}" tabindex="0" role="application" '
        'aria-label="The photo; arrow keys go from one superpixel to the next by importance">'
        f'<image href="{_data_uri(photo)}" width="{columns}" height="{rows}" '
        f'preserveAspectRatio="none"{small_photo}/><g class="superpixels">{shapes}</g></svg>'
    )


def text_view(explanation: Explanation, *, inline: bool = False) -> str:
    """The text, each of its tokens tinted by the mean of its feature."""
    scene: Any = explanation.scene
    mean = explanation.posterior.mean
    most = np.abs(mean).max() or 1.0
    parts = []
    for piece, owner in zip(scene.pieces, scene.owners, strict=True):
        words = escape("\n".join(printable(line) for line in _lines(piece)), quote=True)
        if owner < 0:
            parts.append(words)
            continue
        side = "for" if mean[owner] > 0 else "against"
        style = f' style="{_tint(mean[owner] / most)}"' if inline else ""
        parts.append(f'<mark data-feature="{owner}" class="{side}"{style}>{words}</mark>')
    layout = ' style="white-space:pre-wrap;line-height:1.9"' if inline else ""
    return (
        '<div class="document" dir="auto" tabindex="0" role="application" '
        'aria-label="The text; arrow keys go from one feature to the next by importance"'
        f"{layout}>{''.join(parts)}</div>"
    )


def _tint(share: float) -> str:
    """Style of a word whose importance is that share of the largest: readable on light and dark."""
    red, green, blue = (
        int((FAVOUR if share > 0 else AGAINST)[place : place + 2], 16) for place in (1, 3, 5)
    )
    return (
        f"background-color:rgba({red},{green},{blue},{0.6 * abs(share):.2f});color:inherit;"
        "padding:.1em;border-radius:.2em"
    )


def _lines(piece: str) -> list[str]:
    """A piece of text line by line, tabs as spaces."""
    return piece.replace("\r\n", "\n").replace("\r", "\n").expandtabs(4).split("\n")


def _thinned(labels: Any, rows: int, columns: int) -> Any:
    """A label picture of another size: the nearest label, no new ones."""
    height, width = labels.shape
    down = ((np.arange(max(rows, 1)) + 0.5) * height / max(rows, 1)).astype(np.intp)
    across = ((np.arange(max(columns, 1)) + 0.5) * width / max(columns, 1)).astype(np.intp)
    return labels[down][:, across]


def _data_uri(photo: FloatArray, longest: int = _PHOTO) -> str:
    """A picture inside the page: JPEG for photos, PNG for small ones."""
    from PIL import Image

    image = Image.fromarray(np.round(255 * photo).astype(np.uint8))
    small = max(image.size) <= 128
    image.thumbnail((longest, longest))
    buffer = io.BytesIO()
    image.save(buffer, "PNG" if small else "JPEG", quality=86, optimize=True)
    kind = "png" if small else "jpeg"
    return f"data:image/{kind};base64,{base64.b64encode(buffer.getvalue()).decode()}"
