"""A text with its words shaded by importance, and underlined where the sign is certain."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from eblime._checks import check_count
from eblime._text import printable, width
from eblime.plot.style import INK, axes, needs_domain, sign_colour, signed_shares, title
from eblime.results.explanation import Explanation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.transforms import Transform

_MOST_LINES = 40
_COLUMNS = 72
_POINTS = 9  # the size of the font
_COLUMN = 0.602 * _POINTS / 72  # inches: the advance of DejaVu Sans Mono


def highlighted(
    explanation: Explanation,
    *,
    columns: int = _COLUMNS,
    lines: int | None = _MOST_LINES,
    ax: Axes | None = None,
) -> Axes:
    """The text: green words raise the score, orange words lower it; darker words have more effect.

    The sources of a prompt are drawn as words are. A word has a colour and a line below it only if
    its 95 % interval excludes zero. Lines have at most `columns`
    characters, fewer in narrow axes. Long texts are cut after `lines`, 40 by default; None draws
    all of them.

    Examples
    --------
    >>> import eblime
    >>> model = lambda texts: [float("good" in text) for text in texts]
    >>> e = eblime.TextExplainer(model).explain("a good day")
    >>> ax = eblime.plot.highlighted(e)
    >>> [text.get_text() for text in ax.texts]
    ['a', ' ', 'good', ' ', 'day']
    """
    scene: Any = explanation.scene
    if scene.domain != "prompt":  # which is drawn in the same way, by its sources
        needs_domain(explanation, "text", 'plot("text")')
    check_count("columns", columns)
    check_count("lines", 1 if lines is None else lines)
    post, shares = explanation.posterior, signed_shares(explanation)
    columns = columns if ax is None else min(columns, _room(ax))
    placed, needed = _wrap(scene.pieces, scene.owners, columns)
    shown = min(needed, lines or needed)
    drawn = axes(ax, _size(columns, shown))
    drawn.set_ylim(shown + 0.1, -0.5)
    grid = _grid(drawn)
    font: Any = {"family": "monospace", "fontsize": _POINTS, "color": INK, "transform": grid}
    for line, start, text, owner in placed:
        if line >= shown:
            break
        if owner >= 0 and text.strip():
            share, ends = shares[owner], (start, start + width(text))
            # words may end beyond the axes
            style: Any = {"color": sign_colour(share), "transform": grid, "clip_on": False}
            shade = {"alpha": 0.65 * abs(share), "linewidth": 0}
            drawn.fill_between(ends, line - 0.08, line + 0.72, **shade, **style)
            if post.has_spread and share:
                drawn.plot(ends, [line + 0.82] * 2, linewidth=0.5 + 2 * abs(share), **style)
        drawn.text(start, line + 0.5, text.replace("$", r"\$"), **font)
    cut = f"; first {shown} of {needed} lines" if needed > shown else ""
    words = "green raises, orange lowers" + ", no colour: sign uncertain" * post.has_spread
    title(drawn, explanation, words + cut)
    drawn.set_axis_off()
    return drawn


def text_size(explanation: Explanation) -> tuple[float, float]:
    """The size in inches that `highlighted` needs for the text."""
    scene: Any = explanation.scene
    lines = _wrap(scene.pieces, scene.owners, _COLUMNS)[1]
    return _size(_COLUMNS, min(lines, _MOST_LINES))


def _size(columns: int, lines: int) -> tuple[float, float]:
    return 0.1 + _COLUMN * (columns + 1), 0.6 + 0.3 * lines


def _room(ax: Axes) -> int:
    return max(20, int(ax.bbox.width / ax.figure.dpi / _COLUMN))


def _grid(drawn: Axes) -> Transform:
    """From (column, line) to the screen: columns have the width of a character in any axes."""
    from matplotlib.transforms import Affine2D, ScaledTranslation, blended_transform_factory

    corner: Any = drawn.transAxes  # matplotlib's types are too narrow
    left = ScaledTranslation(0, 0, corner)
    columns = Affine2D().scale(_COLUMN, 1) + drawn.figure.dpi_scale_trans + left
    return blended_transform_factory(columns, drawn.transData)


def _wrap(pieces: Any, owners: Any, columns: int) -> tuple[list[tuple[int, int, str, int]], int]:
    """Pieces wrapped into lines, as (line, column, text, owner), and the number of lines."""
    placed: list[tuple[int, int, str, int]] = []
    line = column = 0
    for piece, owner in zip(pieces, owners, strict=True):
        rows = piece.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        for k, row in enumerate(rows):
            if k:
                line, column = line + 1, 0
            for text in _words(printable(row.replace("\t", "    ")), columns):
                if column + width(text) > columns and column:
                    line, column = line + 1, 0
                    text = text.lstrip() if owner < 0 else text
                if text:
                    placed.append((line, column, text, owner))
                    column += width(text)
    return placed, line + 1


def _words(text: str, columns: int) -> list[str]:
    """Words with the space after them; the characters of one that needs more than a line."""
    words = re.findall(r"[^ ]* |[^ ]+", text)
    return [part for word in words for part in ([word] if width(word) <= columns else word)]
