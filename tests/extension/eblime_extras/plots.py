"""Two plot kinds: one for every explanation, one for series only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def signs(explanation: Any, *, top: int = 10, ax: Axes | None = None) -> Axes:
    """The probability that each of the most important features has a positive importance."""
    post = explanation.posterior
    order = np.argsort(-np.abs(post.mean), kind="stable")[:top][::-1]
    drawn = _axes(ax)
    drawn.barh(range(len(order)), post.prob_positive()[order])
    drawn.set_yticks(range(len(order)), [explanation.features[j] for j in order])
    drawn.set_xlim(0, 1)
    drawn.set_xlabel("probability of a positive importance")
    return drawn


def series(explanation: Any, *, ax: Axes | None = None) -> Axes:
    """The series, with its windows tinted by their importance."""
    scene, mean = explanation.scene, explanation.posterior.mean
    if scene.domain != "series":
        raise TypeError(
            'plot("series") needs a series explanation; '
            f"the domain of this one is {scene.domain!r}."
        )
    drawn, most = _axes(ax), np.abs(mean).max() or 1.0
    for j, (start, end) in enumerate(zip(scene.edges[:-1], scene.edges[1:], strict=True)):
        colour = "#009E73" if mean[j] > 0 else "#D55E00"
        drawn.axvspan(start - 0.5, end - 0.5, color=colour, alpha=0.75 * abs(mean[j]) / most)
    drawn.plot(scene.values, color="black")
    drawn.set_xlabel("step")
    return drawn


def _axes(ax: Axes | None) -> Axes:
    """The given axes, or new ones."""
    from matplotlib.figure import Figure

    return Figure(layout="constrained").subplots() if ax is None else ax
