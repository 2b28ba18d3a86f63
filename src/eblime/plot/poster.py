"""Figures of several axes: the most informative one of an explanation, and several side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from eblime import registry
from eblime._checks import check_count
from eblime.plot.signals import signal_size
from eblime.plot.style import caption, new_figure
from eblime.plot.text import text_size
from eblime.results.comparison import Comparison
from eblime.results.explanation import Explanation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LISTED = 10  # features with their intervals
_ACROSS = 3  # pictures in a row
_WIDE = 0.3  # height of an image, in widths, below which its maps are one below the other


def poster(explanation: Explanation, top: int = 5) -> Figure:
    """A matplotlib figure of the input with its features marked, and of their intervals.

    The input is drawn by the plot kind that its domain calls `picture`. For an image, every
    superpixel in the list has its number on the map.

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
    domain = registry.get("domains", explanation.scene.domain)
    picture = "intervals" if domain is None else domain.picture
    return _POSTERS.get(picture, _picture_poster)(explanation, picture, top)


def pictures(comparison: Comparison, *, top: int = 5) -> Figure:
    """The pictures of all explanations of a comparison, named, with the same number of features."""
    check_count("top", top)
    domain = registry.get("domains", comparison[comparison.methods[0]].scene.domain)
    kind = "intervals" if domain is None else domain.picture
    below = {"text": text_size, "signal": signal_size}.get(kind)  # these are one below the other
    volume = kind == "slices"  # has three panels, and titles on them
    wide, tall, most = (6.4, 5.4, 2) if volume else (4.6, 3.6, _ACROSS)
    across = 1 if below is not None else min(most, len(comparison))
    down = -(-len(comparison) // across)
    if below is not None:
        tall = max(below(entry)[1] for entry in comparison.explanations.values()) + 0.4
    figure = new_figure(((8.0 if across == 1 else wide * across), tall * down))
    panels = figure.subplots(down, across, squeeze=False).ravel()
    for panel, name in zip(panels, comparison, strict=False):
        entry = comparison[name]
        settings: dict[str, Any] = {} if below is not None else {"top": top}
        chosen = None if kind in ("intervals", "values") else kind  # None: "means" for an estimate
        entry.plot(chosen, ax=panel, **settings)
        above = 18 if volume else None
        panel.set_title(caption(name, 44), fontsize="medium", loc="left", pad=above)
    for panel in panels[len(comparison) :]:
        panel.remove()
    return figure


def _image_poster(explanation: Explanation, picture: str, top: int) -> Figure:
    """The map, the probabilities of being among the `top`, and the intervals, side by side.

    The maps of a wide image are one below the other.
    """
    scene: Any = explanation.scene
    height, width = scene.labels.shape
    listed = max(top, _LISTED)
    maps = ["map", "top_k"] if explanation.posterior.has_spread else ["map"]
    figure = new_figure((5.0 * (len(maps) + 1), 4.2))
    if height < _WIDE * width:
        layout: list[Any] = [[name, "bars"] for name in maps]
        panels = figure.subplot_mosaic(layout, width_ratios=[len(maps), 1])
    else:
        panels = figure.subplot_mosaic([[*maps, "bars"]])
    explanation.plot(picture, ax=panels["map"], top=top, numbered=listed)
    if "top_k" in panels:
        explanation.plot(picture, of="top_k", ax=panels["top_k"], top=top)
    explanation.plot(ax=panels["bars"], top=listed)
    return figure


def _above_poster(explanation: Explanation, picture: str, top: int) -> Figure:
    """The text or the signal above, the intervals of its features below."""
    width, height = (signal_size if picture == "signal" else text_size)(explanation)
    rows = min(_LISTED, explanation.scene.n_features)
    below = 1.1 + 0.28 * rows
    figure = new_figure((width, height + below))
    halves: Any = figure.subfigures(2, 1, height_ratios=[height, below])  # margins of their own
    upper, lower = halves
    explanation.plot(picture, ax=upper.subplots())
    explanation.plot(top=rows, ax=lower.subplots())
    return figure


def _bars_poster(explanation: Explanation, picture: str, top: int) -> Figure:
    """One plot that already has the intervals."""
    figure = new_figure((7.2, 1.1 + 0.34 * min(12, explanation.scene.n_features)))
    chosen = None if picture == "intervals" else picture  # None: "means" for a point estimate
    explanation.plot(chosen, ax=figure.subplots())
    return figure


def _picture_poster(explanation: Explanation, picture: str, top: int) -> Figure:
    """The domain's own picture beside the intervals."""
    figure = new_figure((11.0, 4.8))
    left, right = figure.subplots(1, 2)
    explanation.plot(picture, ax=left)
    explanation.plot(ax=right, top=max(top, _LISTED))
    return figure


_POSTERS: dict[str, Callable[[Explanation, str, int], Figure]] = {
    "map": _image_poster,
    "text": _above_poster,
    "signal": _above_poster,
    "values": _bars_poster,
    "intervals": _bars_poster,
}
