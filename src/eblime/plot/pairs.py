"""Interactions of pairs of features as a heat map."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from eblime._checks import check_count
from eblime._types import FloatArray
from eblime.plot.style import INK, axes, caption, diverging, rgb, sign_bar
from eblime.results.indices import Interactions

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["interaction_map"]

_NUMBERED = 10  # features up to which the cells carry their numbers


def interaction_map(interactions: Interactions, *, top: int = 15, ax: Axes | None = None) -> Axes:
    """The means of the interactions as a heat map, for the features that interact most.

    Green pairs raise the score by more than the sum of their parts, orange ones by less. A pair
    fades with the uncertainty of its sign: it is white if either sign is equally likely.

    Examples
    --------
    >>> import eblime
    >>> both = lambda texts: [float("not" in t and "bad" in t) for t in texts]
    >>> e = eblime.TextExplainer(both, n_masks=100).explain("not bad at all")
    >>> ax = eblime.plot.interaction_map(e.interactions())
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ["word 'not'", "word 'bad'", "word 'at'", "word 'all'"]
    """
    check_count("top", top)
    mean, certain = _tables(interactions)
    order = np.sort(np.argsort(-np.abs(mean * certain).max(axis=1), kind="stable")[:top])
    mean, certain = mean[np.ix_(order, order)], certain[np.ix_(order, order)]
    size = 2.4 + 0.36 * len(order)
    drawn = axes(ax, (size + 1.2, size))
    colours = diverging()
    most = float(np.abs(mean).max()) or 1.0
    shown = colours((mean / most + 1) / 2)
    shown[..., :3] = 1 - (1 - shown[..., :3]) * certain[..., None]
    shown[np.diag_indices(len(order))] = (*rgb("#ECECEC"), 1.0)
    drawn.imshow(shown)
    _write_numbers(drawn, mean, certain)
    names = [caption(interactions.features[j], 18) for j in order]
    drawn.set_xticks(range(len(order)), names, rotation=60, ha="right", rotation_mode="anchor")
    drawn.set_yticks(range(len(order)), names)
    drawn.tick_params(length=0, labelsize="small")
    sign_bar(drawn, most, "interaction (faded: sign uncertain)", colours)
    drawn.set_title(_heading(interactions), fontsize="medium", loc="left")
    return drawn


def _tables(interactions: Interactions) -> tuple[FloatArray, FloatArray]:
    """The means and how certain their signs are, from 0 (either) to 1, each (p, p)."""
    post = interactions.posterior
    certain = np.abs(2 * post.prob_positive() - 1) if post.has_spread else np.ones(post.n_features)
    return interactions.matrix(), interactions.matrix(certain)


def _write_numbers(ax: Any, mean: FloatArray, certain: FloatArray) -> None:
    """The means in the cells whose sign is certain, where there is room for them."""
    if len(mean) > _NUMBERED:
        return
    rows, columns = np.nonzero(certain >= 0.95)
    for row, column in zip(rows, columns, strict=True):
        text = f"{mean[row, column]:.2g}".replace("0.", ".").replace("-", "\N{MINUS SIGN}")
        ax.text(column, row, text, ha="center", va="center", fontsize="x-small", color=INK)


def _heading(interactions: Interactions) -> str:
    """What is drawn."""
    post = interactions.posterior
    what = f"{caption(interactions.label, 30)}: " if interactions.label else ""
    return f"{what}{post.estimand}\n{post.fit_label(2, 'R²')}, {post.n_masks} masks"
