"""Figures of several axes: the most informative one of an explanation, and several side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eblime import registry
from eblime._checks import check_count
from eblime._types import BoolArray
from eblime.plot.signals import signal_size
from eblime.plot.style import caption, new_figure
from eblime.plot.text import text_size
from eblime.results.comparison import Comparison
from eblime.results.explanation import Explanation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LISTED = 10  # features with their intervals
_LISTS = (None, "means")  # kinds that are a list of the features
_SIZES = {"text": text_size, "signal": signal_size}  # of kinds that are wide


def poster(explanation: Explanation, top: int = 5, *, truth: BoolArray | None = None) -> Figure:
    """A matplotlib figure of the input with its features marked, and of their intervals.

    The input is drawn by the plot kind that its domain calls `picture`. For an image, every
    superpixel in the list has its number on the map, and `truth` is as in `importance_map`.

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> from eblime.plot.poster import poster
    >>> image = np.zeros((6, 6))
    >>> image[:3, :3] = 1.0
    >>> grid = ("grid", {"rows": 2, "columns": 2})
    >>> explainer = eblime.ImageExplainer(lambda batch: batch[:, 0, 0], segmentation=grid, hide=0)
    >>> e = explainer.explain(image)
    >>> figure = poster(e)
    >>> type(figure).__name__
    'Figure'
    """
    check_count("top", top)
    kind, n = _picture_of(explanation), explanation.scene.n_features
    if kind in _LISTS:
        figure = new_figure((7.2, 1.1 + 0.34 * min(12, n)))
        explanation.plot(kind, top=12, ax=figure.subplots())
        return figure
    if kind in _SIZES:  # the input above, the intervals below; both with margins of their own
        (width, height), rows = _SIZES[kind](explanation), min(_LISTED, n)
        below = 1.1 + 0.28 * rows
        figure = new_figure((width, height + below))
        halves: Any = figure.subfigures(2, 1, height_ratios=[height, below])
        explanation.plot(kind, ax=halves[0].subplots())
        explanation.plot(top=rows, ax=halves[1].subplots())
        return figure
    listed, shown = max(top, _LISTED), [dict[str, Any]()]
    if kind == "map":
        shown = [{"top": top, "numbered": listed, "truth": truth}, {"top": top, "of": "top_k"}]
        shown = shown if explanation.posterior.has_spread else shown[:1]
    wide = [9.4 if kind == "map" else 6.4, 4.4][: len(shown)]
    figure = new_figure((sum(wide) + 5.2, 4.6))
    *panels, last = figure.subplots(1, len(shown) + 1, width_ratios=[*wide, 5.2])
    for panel, settings in zip(panels, shown, strict=True):
        explanation.plot(kind, ax=panel, **settings)
    explanation.plot(ax=last, top=listed)
    return figure


def _picture_of(explanation: Explanation) -> str | None:
    """The plot kind that shows the input; None is the default one, a list of the features."""
    domain = registry.get("domains", explanation.scene.domain)
    return None if domain is None or domain.picture == "intervals" else domain.picture


def pictures(comparison: Comparison, *, top: int = 5) -> Figure:
    """The pictures of all explanations of a comparison, named, with the same number of features."""
    check_count("top", top)
    entries = list(comparison.explanations.values())
    kind = _picture_of(entries[0])
    volume = kind == "slices"  # has three panels, and titles on them
    settings: dict[str, object] = {"top": top, **({"original": False} if kind == "map" else {})}
    wide, tall, across = (6.4, 5.4, 2) if volume else (4.6, 3.6, 3)
    if kind in _SIZES:  # one below the other
        settings, wide, across = {}, 8.0, 1
        tall = max(_SIZES[kind](entry)[1] for entry in entries) + 0.4
    across = min(across, len(entries))
    down = -(-len(entries) // across)
    figure = new_figure((wide * across, tall * down))
    panels = figure.subplots(down, across, squeeze=False).ravel()
    for panel, name, entry in zip(panels, comparison, entries, strict=False):
        entry.plot(kind, ax=panel, **settings)
        above = 18 if volume else None
        panel.set_title(caption(name, 44), fontsize="medium", loc="left", pad=above)
    for panel in panels[len(comparison) :]:
        panel.remove()
    return figure
