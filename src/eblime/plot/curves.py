"""Densities, ranks, the ridge parameter, and how intervals narrow as masks are added."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from eblime._checks import check_count
from eblime._types import IntArray
from eblime.plot.style import (
    COLOURS,
    FAVOUR,
    INK,
    LINES,
    NEUTRAL,
    axes,
    axis_label,
    caption,
    clean,
    legend_below,
    log_ticks,
    sign_colour,
    title,
)
from eblime.posterior import Posterior
from eblime.protocols import Method
from eblime.results.explanation import Explanation

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["convergence", "densities", "ranks", "ridge"]

_POINTS = 300  # of a density


def densities(explanation: Explanation, *, top: int = 5, ax: Axes | None = None) -> Axes:
    """Marginal posterior densities of the most important features.

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> rows = np.random.default_rng(0).random((50, 3))
    >>> e = eblime.TabularExplainer(lambda table: table[:, 0], rows, n_masks=50).explain(rows[0])
    >>> ax = eblime.plot.densities(e)
    >>> ax.get_xlabel()
    'importance for output'
    """
    check_count("top", top)
    post = explanation.posterior
    order = post.order()[:top]
    low, high = post.quantile([1e-4, 1 - 1e-4])
    x = np.linspace(low, high, _POINTS)  # (points, p)
    x[x == 0] = 1e-12 * np.ptp(x)  # the density has a logarithmic singularity without mass there
    height = post.pdf(x)
    drawn = axes(ax, (6.4, 3.4))
    for rank, j in enumerate(order):
        colour = sign_colour(post.mean[j])
        shade = 1 - 0.13 * min(rank, 6)
        style = LINES[rank % len(LINES)]
        name = caption(explanation.features[j], 24)
        drawn.plot(x[:, j], height[:, j], style, color=colour, alpha=shade, label=name)
        drawn.fill_between(x[:, j], height[:, j], color=colour, alpha=0.12 * shade, linewidth=0)
    drawn.axvline(0, color=INK, linewidth=0.8, zorder=0)
    drawn.set_ylim(bottom=0)
    drawn.set_xlabel(axis_label(explanation))
    drawn.set_ylabel("posterior density")
    legend_below(drawn)
    title(drawn, explanation)
    clean(drawn)
    return drawn


def ranks(explanation: Explanation, *, top: int = 12, ax: Axes | None = None) -> Axes:
    """Probability of each rank for the leading features: one row per feature, one column per rank.

    Ranks are about the importances in the linear surrogate. A certain rank means that the fit is
    well determined, not that the model looks at the right thing.

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> rows = np.random.default_rng(0).random((50, 3))
    >>> e = eblime.TabularExplainer(lambda table: table[:, 0], rows, n_masks=50).explain(rows[0])
    >>> ax = eblime.plot.ranks(e)
    >>> ax.get_xlabel()
    'rank by |importance|'
    """
    check_count("top", top)
    post = explanation.posterior
    order = post.ranking().order[:top]
    chance = post.rank_probability()[order][:, : len(order)]
    names = [caption(explanation.features[j]) for j in order]
    width = 1.3 + 0.36 * len(order) + 0.08 * max(map(len, names))
    drawn = axes(ax, (max(5.2, width), 1.4 + 0.3 * len(order)))
    field = drawn.imshow(chance, cmap="viridis", vmin=0, vmax=1, aspect="auto")
    drawn.set_xticks(range(len(order)), [str(r + 1) for r in range(len(order))])
    drawn.set_yticks(range(len(order)), names)
    drawn.set_xlabel("rank by |importance|")
    for row, column in zip(*np.nonzero(chance >= 0.05), strict=True):
        value = chance[row, column]
        colour = "white" if value < 0.6 else INK
        drawn.text(
            column,
            row,
            f"{value:.2f}".lstrip("0"),
            ha="center",
            va="center",
            fontsize="x-small",
            color=colour,
        )
    drawn.figure.colorbar(field, ax=drawn, label="probability")
    title(drawn, explanation)
    return drawn


def ridge(explanation: Explanation, *, ax: Axes | None = None) -> Axes:
    """Posterior of the ridge parameter lambda on a log scale, and BayesLIME's fixed value of 1.

    A method without a ridge parameter is refused.

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> rows = np.random.default_rng(0).random((50, 3))
    >>> e = eblime.TabularExplainer(lambda table: table[:, 0], rows, n_masks=50).explain(rows[0])
    >>> ax = eblime.plot.ridge(e)
    >>> ax.get_xlabel()
    'ridge parameter λ'
    """
    law = explanation.posterior.lam
    drawn = axes(ax, (6.4, 3.0))
    low, middle, high = law.quantile([0.001, 0.5, 0.999])
    if low < high:
        x = np.geomspace(low, high, 201)
        chance = np.diff(law.cdf(x)) / np.diff(np.log(x))
        centre = np.sqrt(x[1:] * x[:-1])
        drawn.plot(centre, chance, color=FAVOUR)
        drawn.fill_between(centre, chance, color=FAVOUR, alpha=0.2, linewidth=0)
        drawn.set_ylim(bottom=0)
    drawn.axvline(middle, color=FAVOUR, linewidth=1.2, label=f"median {middle:.2g}")
    drawn.axvline(1, color=NEUTRAL, linestyle="--", linewidth=1.2, label="1, as in BayesLIME")
    log_ticks(drawn)
    drawn.set_xlabel("ridge parameter λ")
    drawn.set_ylabel("density of log λ")
    drawn.legend(frameon=False, fontsize="small")
    title(drawn, explanation)
    clean(drawn)
    return drawn


def convergence(
    explanation: Explanation, *, top: int = 4, method: Method | None = None, ax: Axes | None = None
) -> Axes:
    """How the 95 % intervals of the leading features narrow as masks are added, in their order.

    The explanation's own method is fitted to more and more of the answers; `method` takes another
    one. A point estimate is drawn as lines without intervals.

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> rows = np.random.default_rng(0).random((50, 3))
    >>> e = eblime.TabularExplainer(lambda table: table[:, 0], rows, n_masks=50).explain(rows[0])
    >>> ax = eblime.plot.convergence(e)
    >>> ax.get_xlabel()
    'number of masks'
    """
    check_count("top", top)
    order = explanation.posterior.order()[:top]
    counts, fitted = _refits(explanation, method)
    drawn = axes(ax, (6.4, 3.6))
    for rank, j in enumerate(order):
        colour, style = COLOURS[rank % len(COLOURS)], LINES[rank % len(LINES)]
        mean = [post.mean[j] for post in fitted]
        if fitted[-1].has_spread:
            ends = np.array([post.interval()[j] for post in fitted])
            drawn.fill_between(counts, *ends.T, color=colour, alpha=0.25, linewidth=0)
            drawn.vlines(counts[-1], *ends[-1], color=colour, alpha=0.5)
        name = caption(explanation.features[j], 24)
        drawn.plot(counts, mean, style, color=colour, label=name)
        drawn.plot(counts[-1], mean[-1], "o", color=colour, markersize=4)
    drawn.axhline(0, color=INK, linewidth=0.8, zorder=0)
    log_ticks(drawn)
    drawn.set_xlabel("number of masks")
    level = "(95 %)" if fitted[-1].has_spread else ""
    drawn.set_ylabel(axis_label(explanation, level, longest=30))
    legend_below(drawn)
    title(drawn, explanation)
    clean(drawn)
    return drawn


def _refits(explanation: Explanation, method: Method | None) -> tuple[IntArray, list[Posterior]]:
    """Numbers of masks, and the method fitted to that many of the answers.

    The last fit of the explanation's own method is the explanation itself.
    """
    rows = np.flatnonzero(explanation.weights > 0)
    if explanation.exhaustive:  # all masks in counting order: shuffle them
        rows = np.random.default_rng(0).permutation(rows)
    counts = np.unique(np.geomspace(min(len(rows), 20), len(rows), 12).astype(int))
    rng, chosen = np.random.default_rng(0), explanation.method if method is None else method
    wanted = counts[:-1] if method is None else counts
    fitted = [chosen.fit(rng, explanation.answers.take(rows[:n])) for n in wanted]
    return counts, [*fitted, explanation.posterior] if method is None else fitted
