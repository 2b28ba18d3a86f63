"""Bars and curves: importances with their intervals, densities, ranks, and comparisons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from eblime._checks import check_count, check_level
from eblime._types import FloatArray, IntArray
from eblime.methods.regression import fit_each
from eblime.plot import style
from eblime.posterior import Posterior
from eblime.results.explanation import Explanation
from eblime.results.indices import own_width, posteriors_by_width

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from eblime.measures import DetectionCurve

# of several explanations, which also differ in shape
_PALETTE = (*style.COLOURS, style.INK, style.NEUTRAL)
_DOT = 5  # points across a dot
_MARKERS = ("o", "s", "D", "^", "v", "P", "X", "*")


def intervals(explanation: Explanation, *, top: int = 15, ax: Axes | None = None) -> Axes:
    """The most important features with mean, 50 % and 95 % intervals, as in the paper.

    Green raises the score and orange lowers it; grey where the 95 % interval contains zero.

    Examples
    --------
    >>> import eblime
    >>> e = eblime.TextExplainer(lambda texts: [len(t) for t in texts]).explain("one or three")
    >>> ax = eblime.plot.intervals(e, top=3)
    >>> ax.get_yticklabels()[-1].get_text()  # the most important feature is on top
    "word 'three'"
    """
    drawn, order, post = _ranked(explanation, top, ax)
    rows, (low, high) = range(len(order)), (ends := post.interval(0.95)).T
    colours = [style.sign_colour(sign) for sign in np.where(low > 0, 1, np.where(high < 0, -1, 0))]
    drawn.hlines(rows, *ends.T, color=colours, linewidth=1.6)
    drawn.hlines(rows, *post.interval(0.5).T, color=colours, linewidth=5)
    drawn.plot(
        post.mean, rows, "o", color="white", markeredgecolor=style.INK, markersize=_DOT, zorder=3
    )
    drawn.set_xlabel(style.axis_label(explanation, "(bars: 50 % and 95 %)"))
    _say_if_small(drawn, np.ptp(ends, axis=1) / 2)
    return _finish(drawn, explanation)


def _say_if_small(drawn: Axes, halves: FloatArray) -> None:
    """Write below the axis how wide intervals are that the dots hide."""
    low, high = drawn.get_xlim()
    width: float = 72 * drawn.bbox.width / drawn.figure.dpi  # in points
    if halves.max() > 0 and halves.max() / (high - low) * width < _DOT / 2:
        words = f"intervals smaller than the dots:\n±{halves.max():.1g} at most"
        drawn.set_xlabel(f"{drawn.get_xlabel()}\n{words}")


def means(explanation: Explanation, *, top: int = 15, ax: Axes | None = None) -> Axes:
    """The most important features as bars from zero, with 95 % whiskers where there are intervals.

    Examples
    --------
    >>> import eblime
    >>> e = eblime.TextExplainer(lambda texts: [len(t) for t in texts]).explain("one or three")
    >>> ax = eblime.plot.means(e, top=3)
    >>> ax.get_yticklabels()[-1].get_text()  # the most important feature is on top
    "word 'three'"
    """
    drawn, order, post = _ranked(explanation, top, ax)
    rows, colours = range(len(order)), list(map(style.sign_colour, post.mean))
    drawn.barh(rows, post.mean, color=colours, height=0.62, alpha=0.85)
    if post.has_spread:
        drawn.hlines(rows, *post.interval().T, color=style.INK, linewidth=1.6)
    drawn.set_xlabel(style.axis_label(explanation, "(whiskers: 95 %)" if post.has_spread else ""))
    return _finish(drawn, explanation)


def waterfall(explanation: Explanation, *, top: int = 10, ax: Axes | None = None) -> Axes:
    """From the fit's score with everything hidden to its score for the input, step by step.

    A bar is what a feature adds, with its 95 % interval at the end; the features beyond the `top`
    are one bar. A dashed line is the prediction.

    Examples
    --------
    >>> import eblime
    >>> e = eblime.TextExplainer(lambda texts: [len(t) for t in texts]).explain("one or three")
    >>> ax = eblime.plot.waterfall(e)
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['fit, all hidden', "word 'or'", "word 'one'", "word 'three'", 'fit, all shown']
    """
    check_count("top", top)
    post = explanation.posterior
    order, rest = post.order()[:top][::-1], post.order()[top:]
    steps, names = post.mean[order], [style.caption(explanation.features[j]) for j in order]
    spread = (post.interval() - post.mean[:, None])[order] if post.has_spread else None
    if len(rest):
        steps, names = np.append(post.mean[rest].sum(), steps), [f"{len(rest)} others", *names]
        if spread is not None:
            half = 1.96 * np.sqrt(max(post.cov[np.ix_(rest, rest)].sum(), 0.0))
            spread = np.concatenate([[[-half, half]], spread])
    ends = post.intercept + np.concatenate([[0.0], np.cumsum(steps)])
    rows = np.arange(1, len(steps) + 1)
    drawn = style.axes(ax, (6.4, 1.5 + 0.28 * len(steps)))
    drawn.use_sticky_edges = False
    drawn.barh(rows, steps, left=ends[:-1], height=0.62, color=list(map(style.sign_colour, steps)))
    places = np.arange(len(ends))
    drawn.vlines(ends, places - 0.31, places + 1.31, color=style.NEUTRAL, linewidth=0.8)
    if spread is not None:
        drawn.hlines(rows, *(ends[1:, None] + spread).T, color=style.INK, linewidth=1.6)
    drawn.plot(ends[[0, -1]], [0, len(steps) + 1], "o", color=style.INK, markersize=5)
    shown = f"prediction {explanation.prediction:.3g}"
    drawn.axvline(explanation.prediction, color=style.MARK, linestyle="--", label=shown)
    drawn.set_yticks(range(len(steps) + 2), ["fit, all hidden", *names, "fit, all shown"])
    drawn.set_xlabel(style.axis_label(explanation, "(whiskers: 95 %)", what="score"))
    drawn.legend(frameon=False, fontsize="small")
    return _finish(drawn, explanation)


def fit(explanation: Explanation, *, ax: Axes | None = None) -> Axes:
    """The model's answers against the fit's prediction for every mask that was asked.

    Points on the line are predicted exactly; the band has 95 % of single scores.

    Examples
    --------
    >>> import eblime
    >>> e = eblime.TextExplainer(lambda texts: [len(t) for t in texts]).explain("one or three")
    >>> eblime.plot.fit(e).get_ylabel()
    "the model's answer"
    """
    answers = explanation.answers
    found = explanation.predict(answers.masks)
    order = np.argsort(found.mean, kind="stable")
    drawn = style.axes(ax, (4.6, 4.2))
    drawn.fill_between(
        found.mean[order], found.low[order], found.high[order], color=style.MARK, alpha=0.15, lw=0
    )
    drawn.plot(found.mean, answers.scores, ".", color=style.INK, alpha=0.5, markersize=4)
    ends = found.mean[order[[0, -1]]]
    drawn.plot(ends, ends, color=style.MARK, linewidth=1.2)
    drawn.set(xlabel="the fit's prediction", ylabel="the model's answer")
    return _finish(drawn, explanation)


def _ranked(
    explanation: Explanation, top: int, ax: Axes | None
) -> tuple[Axes, IntArray, Posterior]:
    """Axes with a row for each of the `top` features, their order from below, and their law."""
    check_count("top", top)
    order = explanation.posterior.order()[:top][::-1]
    return style.feature_axes(ax, explanation, order), order, explanation.posterior.select(order)


def compare(
    explanations: Mapping[str, Explanation],
    *,
    top: int = 10,
    prob: float = 0.95,
    ax: Axes | None = None,
) -> Axes:
    """Named explanations of the same features: means and intervals, one below the other.

    The `top` features have the largest mean of any explanation. A point estimate has no interval.

    Examples
    --------
    >>> import eblime
    >>> e = eblime.TextExplainer(lambda texts: [len(t) for t in texts]).explain("one or three")
    >>> ax = eblime.plot.compare({"EBLIME": e, "BayesLIME": e.refit("bayeslime")})
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['EBLIME', 'BayesLIME']
    """
    check_count("top", top)
    check_level("prob", prob)
    first, *others = explanations.values()
    for other in others:
        if list(first.features) != list(other.features):
            raise ValueError(
                "The explanations must have the same features; got "
                f"{len(first.features)} and {len(other.features)} features that differ."
            )
    means = np.array([entry.posterior.mean for entry in explanations.values()])
    order = np.argsort(-np.abs(means).max(axis=0), kind="stable")[:top][::-1]
    drawn = style.feature_axes(ax, first, order, row=0.12 + 0.12 * len(means))
    shifts = 0.32 * np.linspace(1, -1, len(means)) * (1 - 1 / len(means))
    halves = [np.zeros(1)]
    for k, (name, entry) in enumerate(explanations.items()):
        colour, marker = _PALETTE[k % len(_PALETTE)], _MARKERS[k % len(_MARKERS)]
        rows = np.arange(len(order)) + shifts[k]
        if entry.posterior.has_spread:
            ends = entry.posterior.select(order).interval(prob)
            drawn.hlines(rows, *ends.T, color=colour, linewidth=2)
            halves.append(np.ptp(ends, axis=1) / 2)
        drawn.plot(
            means[k, order], rows, marker, color=colour, markersize=_DOT, label=style.caption(name)
        )
    drawn.set_xlabel(f"importance (bars: {100 * prob:g} %)")
    _say_if_small(drawn, np.concatenate(halves))
    style.legend_below(drawn)
    labels = dict.fromkeys(style.heading(entry.label, 44) for entry in explanations.values())
    drawn.set_title(" and\n".join(labels), fontsize="medium", loc="left")
    style.clean(drawn)
    return drawn


def _finish(drawn: Axes, explanation: Explanation) -> Axes:
    style.title(drawn, explanation)
    style.clean(drawn)
    return drawn


_POINTS = 300  # of a density


def densities(explanation: Explanation, *, top: int = 5, ax: Axes | None = None) -> Axes:
    """Marginal posterior densities of the most important features.

    Examples
    --------
    >>> import eblime
    >>> e = eblime.TextExplainer(lambda texts: [len(t) for t in texts]).explain("one or three")
    >>> eblime.plot.densities(e).get_xlabel()
    'importance for output'
    """
    check_count("top", top)
    post = explanation.posterior
    order = post.order()[:top]
    low, high = post.quantile([1e-4, 1 - 1e-4])
    x = np.linspace(low, high, _POINTS)  # (points, p)
    x[x == 0] = 1e-12 * np.ptp(x)  # the density has a logarithmic singularity without mass there
    height = post.pdf(x)
    drawn = style.axes(ax, (6.4, 3.4))
    for rank, j in enumerate(order):
        colour = style.sign_colour(post.mean[j])
        shade = 1 - 0.13 * min(rank, 6)
        dashes = style.LINES[rank % len(style.LINES)]
        name = style.caption(explanation.features[j], 24)
        drawn.plot(x[:, j], height[:, j], dashes, color=colour, alpha=shade, label=name)
        drawn.fill_between(x[:, j], height[:, j], color=colour, alpha=0.12 * shade, linewidth=0)
    drawn.axvline(0, color=style.INK, linewidth=0.8, zorder=0)
    drawn.set(ylim=(0, None), xlabel=style.axis_label(explanation), ylabel="posterior density")
    style.legend_below(drawn)
    return _finish(drawn, explanation)


def ranks(explanation: Explanation, *, top: int = 12, ax: Axes | None = None) -> Axes:
    """Probability of each rank for the leading features: one row per feature, one column per rank.

    Ranks are about the importances in the linear surrogate. A certain rank means that the fit is
    well determined, not that the model looks at the right thing.

    Examples
    --------
    >>> import eblime
    >>> e = eblime.TextExplainer(lambda texts: [len(t) for t in texts]).explain("one or three")
    >>> eblime.plot.ranks(e).get_xlabel()
    'rank by |importance|'
    """
    check_count("top", top)
    post = explanation.posterior
    order = post.ranking().order[:top]
    chance = post.rank_probability()[order][:, : len(order)]
    names = [style.caption(explanation.features[j]) for j in order]
    width = 1.3 + 0.36 * len(order) + 0.08 * max(map(len, names))
    drawn = style.axes(ax, (max(5.2, width), 1.4 + 0.3 * len(order)))
    field = drawn.imshow(chance, cmap="viridis", vmin=0, vmax=1, aspect="auto")
    drawn.set_xticks(range(len(order)), [str(r + 1) for r in range(len(order))])
    drawn.set_yticks(range(len(order)), names)
    drawn.set_xlabel("rank by |importance|")
    for row, column in zip(*np.nonzero(chance >= 0.05), strict=True):
        value = chance[row, column]
        text, colour = f"{value:.2f}".lstrip("0"), "white" if value < 0.6 else style.INK
        drawn.text(column, row, text, ha="center", va="center", fontsize="x-small", color=colour)
    drawn.figure.colorbar(field, ax=drawn, label="probability")
    style.title(drawn, explanation)
    return drawn


def ridge(explanation: Explanation, *, ax: Axes | None = None) -> Axes:
    """Posterior of the ridge parameter lambda on a log scale, and BayesLIME's fixed value of 1.

    A method without a ridge parameter is refused.

    Examples
    --------
    >>> import eblime
    >>> e = eblime.TextExplainer(lambda texts: [len(t) for t in texts]).explain("one or three")
    >>> eblime.plot.ridge(e).get_xlabel()
    'ridge parameter λ'
    """
    law = explanation.posterior.lam
    drawn = style.axes(ax, (6.4, 3.0))
    low, middle, high = law.quantile([0.001, 0.5, 0.999])
    if low < high:
        x = np.geomspace(low, high, 201)
        chance = np.diff(law.cdf(x)) / np.diff(np.log(x))
        centre = np.sqrt(x[1:] * x[:-1])
        drawn.plot(centre, chance, color=style.FAVOUR)
        drawn.fill_between(centre, chance, color=style.FAVOUR, alpha=0.2, linewidth=0)
        drawn.set_ylim(bottom=0)
    drawn.axvline(middle, color=style.FAVOUR, linewidth=1.2, label=f"median {middle:.2g}")
    drawn.axvline(1, color=style.NEUTRAL, linestyle="--", linewidth=1.2, label="1, as in BayesLIME")
    style.log_ticks(drawn)
    drawn.set(xlabel="ridge parameter λ", ylabel="density of log λ")
    drawn.legend(frameon=False, fontsize="small")
    return _finish(drawn, explanation)


def convergence(explanation: Explanation, *, top: int = 4, ax: Axes | None = None) -> Axes:
    """How the 95 % intervals of the leading features narrow as masks are added, in their order.

    The explanation's method is fitted to more and more of the answers. A point estimate is drawn as
    lines without intervals.

    Examples
    --------
    >>> import eblime
    >>> e = eblime.TextExplainer(lambda texts: [len(t) for t in texts]).explain("one or three")
    >>> eblime.plot.convergence(e).get_xlabel()
    'number of masks'
    """
    drawn = _along(explanation, *_refits(explanation), top, ax, marker="o")
    drawn.set_xlabel("number of masks")
    return _finish(drawn, explanation)


def _along(
    explanation: Explanation,
    x: Sequence[float] | IntArray,
    fitted: Sequence[Posterior],
    top: int,
    ax: Axes | None,
    marker: str = "",
) -> Axes:
    """Means of the leading features along x, with their intervals as bands."""
    check_count("top", top)
    drawn, means = style.axes(ax, (6.4, 3.7)), np.array([post.mean for post in fitted])
    ends = np.array([post.interval() for post in fitted]) if fitted[-1].has_spread else None
    for rank, j in enumerate(explanation.posterior.order()[:top]):
        colour = style.COLOURS[rank % len(style.COLOURS)]
        dashes = style.LINES[rank % len(style.LINES)]
        if ends is not None:
            drawn.fill_between(x, *ends[:, j].T, color=colour, alpha=0.25, linewidth=0)
        name = style.caption(explanation.features[j], 24)
        drawn.plot(x, means[:, j], dashes + marker, color=colour, markersize=3, label=name)
    drawn.axhline(0, color=style.INK, linewidth=0.8, zorder=0)
    style.log_ticks(drawn)
    drawn.set_ylabel(style.axis_label(explanation, "" if ends is None else "(95 %)", longest=30))
    style.legend_below(drawn)
    return drawn


def _refits(explanation: Explanation) -> tuple[IntArray, list[Posterior]]:
    """Numbers of masks, and the method fitted to that many; the last is the explanation itself."""
    rows, rng = np.flatnonzero(explanation.weights > 0), np.random.default_rng(0)
    if explanation.exhaustive:  # all masks in counting order: shuffle them
        rows = np.random.default_rng(0).permutation(rows)
    counts = np.unique(np.geomspace(min(len(rows), 20), len(rows), 12).astype(int))
    some = [explanation.answers.take(rows[:n]) for n in counts[:-1]]
    fitted = [fit_each(explanation.method, rng, [answers])[0] for answers in some]
    return counts, [*fitted, explanation.posterior]


_WIDTHS, _RANGE = 21, 4.0  # from a quarter of the width used to four times it


def by_width(
    explanation: Explanation,
    *,
    top: int = 4,
    widths: Sequence[float] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """The importances of the leading features against the kernel width, with 95 % bands.

    All widths come from one fit of `Quadrature` to the answers, without a model call. Flat lines:
    the choice of the width does not matter. A line that crosses others or zero: it does.

    Parameters
    ----------
    explanation
        With an `ExponentialKernel`; its distance stays.
    top
        Number of features.
    widths
        In lime's convention; None is from a quarter of the width used to four times it.
    ax
        Where to draw; None makes a new figure.

    Examples
    --------
    >>> import eblime
    >>> score = lambda texts: [len(set(t.split())) / 4 for t in texts]
    >>> e = eblime.TextExplainer(score, n_masks=40).explain("to be or not to be")
    >>> ax = eblime.plot.by_width(e, top=2, widths=[0.5, 1.0, 2.0])
    >>> ax.get_xlabel()
    'width of the kernel'
    """
    used = own_width(explanation)
    if widths is None:
        widths = np.geomspace(used / _RANGE, used * _RANGE, _WIDTHS).tolist()
    widths = np.sort(np.asarray(widths, dtype=float)).tolist()
    drawn = _along(explanation, widths, posteriors_by_width(explanation, widths), top, ax)
    looks: Any = {"color": style.NEUTRAL, "linestyle": "--", "linewidth": 1.2}
    drawn.axvline(used, label=f"{used:.3g}, used", **looks)
    drawn.set(xlim=(widths[0], widths[-1]), xlabel="width of the kernel")
    style.legend_below(drawn)
    return _finish(drawn, explanation)


def detection(
    curve: DetectionCurve, *, label: str = "", colour: str = style.FAVOUR, ax: Axes | None = None
) -> Axes:
    """Probability of detection against size, its bounds, and the share found at each size.

    Lines go down from .9 at a90 and, dashed, at a90/95. Several curves can share axes, each with
    its own label and colour.

    Examples
    --------
    >>> import eblime
    >>> found = eblime.measures.probability_of_detection([1, 1, 2, 2, 4, 4], [0, 1, 0, 1, 1, 1])
    >>> ax = found.plot()  # or eblime.plot.detection(found)
    >>> ax.get_xlabel()
    'size'
    """
    drawn = style.axes(ax, (6.4, 4.2))
    last = curve.sizes[-1] * (2 if curve.a90_95 > curve.sizes[-1] else 1)
    at = np.geomspace(curve.sizes[0], last, 80)  # dense enough on either scale
    middle, low, high = curve.curve(at).T
    named = [f"{value:.3g}" if value < np.inf else "unknown" for value in (curve.a90, curve.a90_95)]
    name = f"{style.caption(label)}: " * bool(label)
    drawn.fill_between(at, low, high, color=colour, alpha=0.18, linewidth=0)
    drawn.plot(at, middle, color=colour, linewidth=2, label=f"{name}a90 = {named[0]}")
    shares = curve.found / curve.counts
    drawn.plot(curve.sizes, shares, "o", color=colour, markersize=4, alpha=0.6)
    for size, dashes, words in (
        (curve.a90, "-", ""),
        (curve.a90_95, "--", f"{name}a90/95 = {named[1]}"),
    ):
        ends = ([size] * 2, [0, 0.9]) if size <= last else ([last], [0])
        drawn.plot(*ends, dashes, color=colour, linewidth=1.2, label=words)
    drawn.axhline(0.9, color=style.NEUTRAL, linewidth=0.8, zorder=0)
    drawn.set(ylim=(-0.03, 1.03), xlabel="size", ylabel="probability of detection")
    if curve.scale == "log":
        style.log_ticks(drawn)
    style.legend_below(drawn)
    style.clean(drawn)
    return drawn
