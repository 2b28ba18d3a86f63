"""Maps of images: which superpixels matter, how much, and how certainly; maps of interactions.

Large photos are drawn at screen resolution; the axes keep the pixel coordinates of the image.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eblime._checks import check_choice, check_count
from eblime._types import BoolArray, FloatArray, IntArray
from eblime.plot import style
from eblime.posterior import Posterior
from eblime.results.explanation import Explanation
from eblime.results.indices import Interactions

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

_DOTTED = (("#000000", "solid"), ("#ffffff", "dotted"))  # visible on dark and on bright parts
_EQUAL = 0.9  # ratio of the smallest sd to the largest above which a map of them shows nothing


def importance_map(
    explanation: Explanation,
    *,
    of: str = "importance",
    top: int = 5,
    numbered: int | None = None,
    truth: BoolArray | None = None,
    original: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """The superpixels of an image, coloured by their importance, or by what is known about it.

    A picture in which nothing is certain says so, and also one with a held-out R^2 below 0.2, or
    of scores that barely move.

    Parameters
    ----------
    explanation
        Of an image.
    of
        "importance": the `top` superpixels by absolute mean, green if they raise the score, orange
        if they lower it. The colour is stronger where the importance is larger, and weaker where
        its 95 % interval is wide; a superpixel whose interval contains zero stays grey. "mean":
        the posterior means of all. "uncertainty": their standard deviations, on a scale that
        starts at zero; if all are about equal, "top_k". "variance": scaled from its minimum to its
        maximum, as in the paper. "sign": the probability that the importance is positive. "top_k":
        the probability to be among the `top` most important to the surrogate, which is not about
        what is there.
    top
        Number of superpixels of "importance" and "top_k".
    numbered
        How many superpixels show their number; None is the `top`, as in tables.
    truth
        A mask of the image's size, (H, W), such as the known place of a defect: it is outlined, and
        its share under the `top` superpixels is written below.
    original
        Whether the untouched image is on the left of a map of importances.
    ax
        Where to draw; None makes new axes.

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> e = eblime.ImageExplainer(lambda batch: batch[:, 0, 0], hide=0).explain(np.eye(8))
    >>> eblime.plot.importance_map(e).get_title("left")
    'output: top 5'
    >>> eblime.plot.importance_map(e, of="mean").get_title("left")
    'output: posterior mean'
    """
    check_choice("of", of, ("importance", "mean", "uncertainty", "variance", "sign", "top_k"))
    check_count("top", top)
    drawing, post = canvas(explanation), explanation.posterior
    below = list[str]()
    if of == "uncertainty" and post.sd.min() > _EQUAL * post.sd.max():
        of, below = "top_k", [f"shown because all sds are about {np.median(post.sd):.1g}"]
    width, height = drawing.size
    original &= of == "importance"
    order, drawn = post.order(), style.axes(ax, (width * (1 + original), height))
    panels, marked = [drawn], order[:top] if of == "importance" else None
    if marked is not None:
        title = f"top {len(marked)}"
        if original and (left := style.beside(drawn)) is not None:
            panels.append(left)
            drawing.show(left, drawing.photo)
            left.set_title("input", fontsize="medium", loc="left")
        overlay(drawn, drawing, style.signed_shares(explanation), marked)
        if not style.uncertain(explanation).all():
            style.sign_bar(drawn, post)
    else:  # the photo stays visible in grey
        values, title, ends, label = _numbers_of(post, of, top)
        drawing.show(drawn, drawing.photo.mean(axis=-1), cmap="gray", vmin=0, vmax=1)
        shown = np.ma.masked_invalid(values[drawing.labels])
        scale: object = style.diverging() if of in ("mean", "sign") else "viridis"
        field = drawing.show(drawn, shown, cmap=scale, vmin=ends[0], vmax=ends[1], alpha=0.72)
        drawing.show(drawn, drawing.edges())
        drawn.figure.colorbar(field, ax=drawn, shrink=0.8, label=label)
    if of in ("importance", "mean"):
        _numbers(drawn, drawing, order[: top if numbered is None else numbered])
    style.write_cautions(drawn, explanation)
    below += remarks(explanation, marked)
    below += ["about the fit, not about what is there"] * (of == "top_k")
    if truth is not None:
        truth = check_truth(explanation, truth)
        below += ["dotted: the truth", truth_share(explanation, truth, top)]
        for panel, (colour, line) in itertools.product(panels, _DOTTED):
            drawing.outline(panel, drawing.reduce(truth), colour, linestyles=line)
    return _finish(panels, drawing, explanation, title, below)


def truth_share(explanation: Explanation, truth: BoolArray, top: int) -> str:
    """How much of a known mask is under the superpixels that raise the score most, in words."""
    under = explanation.mask(top)[check_truth(explanation, truth)].mean()
    return f"{100 * under:.0f} % of it is under the top {min(top, explanation.scene.n_features)}"


def check_truth(explanation: Explanation, truth: object) -> BoolArray:
    """A mask of the image's size that is True somewhere; anything else is refused."""
    shape = explanation.segments.shape
    found: BoolArray = np.asarray(truth) != 0
    if found.shape != shape or not found.any():
        raise ValueError(
            f"`truth` must be a mask {shape} that is True somewhere; got {found.shape}, "
            f"{np.count_nonzero(found)} True."
        )
    return found


def _numbers_of(
    post: Posterior, of: str, top: int
) -> tuple[FloatArray, str, tuple[float, float], str]:
    """One number per superpixel; what it is, the ends of its colours, and the label of the bar."""
    if of == "mean":
        most = float(np.abs(post.mean).max()) or 1.0
        return post.mean, "posterior mean", (-most, most), "importance"
    if of == "uncertainty":
        most = float(post.sd[np.isfinite(post.sd)].max(initial=0.0)) or 1.0
        return post.sd, "posterior sd", (0, most), "sd of the importance"
    if of == "variance":
        above = post.sd**2 - (post.sd**2).min()
        return above / (above.max() or 1.0), "variance, min-max scaled", (0, 1), ""
    if of == "sign":
        return post.prob_positive(), "P(importance > 0)", (0, 1), ""
    chance = post.top_k_probability(min(top, post.n_features))
    return chance, f"P(among the top {top})", (0, 1), ""


def overlay(
    drawn: Axes, drawing: Canvas, shares: FloatArray, top: IntArray, **settings: object
) -> None:
    """Draw the photo in grey, some superpixels in the colour of their share, with outlines."""
    chosen = np.where(np.isin(np.arange(len(shares)), top), shares, 0.0)
    drawing.show(drawn, tinted(drawing.photo, drawing.labels, chosen), **settings)
    for j in top:
        line = 0.6 + 1.6 * abs(shares[j])
        drawing.outline(drawn, drawing.labels == j, style.sign_colour(shares[j]), linewidths=line)


def tinted(photo: FloatArray, labels: IntArray, shares: FloatArray) -> FloatArray:
    """A photo in grey below translucent colours of the shares, (h, w, 3).

    Over grey, what a colour adds is the same on dark and on bright parts.
    """
    share = shares[labels][..., None]
    strength = style.STRONGEST * np.abs(share)
    colour = np.where(share > 0, style.rgb(style.FAVOUR), style.rgb(style.AGAINST))
    mixed = (1 - strength) * photo.mean(axis=-1, keepdims=True) + strength * colour
    return np.asarray(mixed.clip(0, 1))


def posterior_maps(explanation: Explanation) -> Figure:
    """Posterior means of all superpixels beside their standard deviations, as in the paper.

    If these are about equal, P(among the top 5) is shown instead.

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> e = eblime.ImageExplainer(lambda batch: batch[:, 0, 0], hide=0).explain(np.eye(8))
    >>> figure = eblime.plot.posterior_maps(e)
    >>> [ax.get_title("left") for ax in figure.axes[:2]]
    ['output: posterior mean', 'output: P(among the top 5)']
    """
    width, height = canvas(explanation).size
    figure = style.new_figure((2 * width - 0.2, height))
    left, right = figure.subplots(1, 2)
    importance_map(explanation, of="mean", ax=left)
    importance_map(explanation, of="uncertainty", ax=right)
    return figure


def _numbers(drawn: Axes, drawing: Canvas, numbered: IntArray) -> None:
    """Write the numbers of some superpixels, with a thin edge that hides little below."""
    from matplotlib.patheffects import withStroke

    looks: Any = {"ha": "center", "va": "center", "fontsize": "small", "color": "black"}
    for j in numbered:
        if place := drawing.inside(int(j)):
            edge = withStroke(linewidth=2, foreground="white")
            drawn.text(*place, str(j), path_effects=[edge], **looks)


def target_mask(explanation: Explanation) -> BoolArray | None:
    """The pixels of the box or the region whose score is explained; None without one."""
    scene: Any = explanation.scene
    if explanation.target >= len(scene.scores):
        return None
    score = scene.scores[explanation.target]
    if score["kind"] == "region":
        return np.asarray(score["mask"], dtype=bool)
    inside = np.zeros(scene.labels.shape, dtype=bool)
    x0, y0, x1, y1 = np.round(score["box"]).astype(int).clip(0)
    inside[y0:y1, x0:x1] = True
    return inside


def _finish(
    panels: Sequence[Axes], drawing: Canvas, explanation: Explanation, title: str, below: list[str]
) -> Axes:
    """Remove the ticks, show the whole image, set the title; in two lines above a narrow image."""
    target, drawn, unit = target_mask(explanation), panels[0], drawing.unit
    for panel in panels:
        if target is not None:
            dashed = {"linewidths": 2.0, "linestyles": "dashed"}
            drawing.outline(panel, drawing.reduce(target), style.MARK, **dashed)
        if unit is None:
            panel.set(xticks=[], yticks=[])
        down, across = drawing.pixel
        panel.set(xlim=np.array([-0.5, drawing.width - 0.5]) * across)
        panel.set(ylim=np.array([drawing.height - 0.5, -0.5]) * down)
    gap = "\n" if drawing.height > 2 * drawing.width else " "
    name = style.heading(explanation.label, 32)
    drawn.set_title(f"{name}:{gap}{title}", fontsize="medium", loc="left")
    drawn.set_xlabel("\n".join(below if unit is None else [unit, *below]), fontsize="small")
    return drawn


def remarks(explanation: Explanation, top: IntArray | None = None) -> list[str]:
    """What is written below a map: that some `top` are uncertain."""
    unsure = top is not None and style.uncertain(explanation)[top].any()
    return ["grey outline: the 95 % interval contains zero"] if unsure else []


_LONGEST = 1000  # pixels drawn along the longer side


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Canvas:
    """A photo and its labels, both reduced by integer factors; coordinates are the image's."""

    photo: FloatArray  # (h, w, 3) in [0, 1]
    labels: NDArray[np.intp]  # (h, w)
    steps: tuple[float, float]  # height and width of a pixel of the canvas
    height: int  # of the image
    width: int
    pixel: tuple[float, float] = (1.0, 1.0)  # height and width of a pixel of the image
    unit: str | None = None  # of these, if it is drawn

    @property
    def size(self) -> tuple[float, float]:
        """Inches of a figure with this image and a colour bar, larger for a long image."""
        ratio = self.height * self.pixel[0] / (self.width * self.pixel[1])
        width = min(4.1 / ratio**0.5, 9.0, 8.0 / ratio)
        return max(width + 1.1, 4.0), max(width * ratio + 0.5, 2.0)

    def extent(self, around: int = 0) -> tuple[float, float, float, float]:
        """The ends of the canvas in the image, with some pixels of the canvas around it."""
        (rows, columns), (down, across) = self.labels.shape, self.steps
        left, top = -0.5 * self.pixel[1], -0.5 * self.pixel[0]
        right, bottom = left + (columns + around) * across, top + (rows + around) * down
        return (left - around * across, right, bottom, top - around * down)

    def show(self, drawn: Axes, pixels: Any, **settings: Any) -> AxesImage:
        """Draw an array of the canvas' size in the coordinates of the image."""
        return drawn.imshow(pixels, extent=self.extent(), **settings)

    def edges(self) -> FloatArray:
        """White lines between superpixels, (h, w, 4)."""
        edges = np.zeros(self.labels.shape, dtype=bool)
        edges[:, 1:] |= self.labels[:, 1:] != self.labels[:, :-1]
        edges[1:] |= self.labels[1:] != self.labels[:-1]
        return np.asarray(edges[..., None] * np.array([1, 1, 1, 0.6]))

    def reduce(self, pixels: np.ndarray) -> np.ndarray:
        """An array of the image's size at the resolution of the canvas."""
        rows, columns = self.photo.shape[:2]
        down, across = self.height // rows, self.width // columns
        return pixels[down // 2 :: down, across // 2 :: across][:rows, :columns]

    def outline(self, drawn: Axes, inside: BoolArray, colour: str, **looks: object) -> None:
        """Draw the border of some pixels of the canvas, unless there are none."""
        if inside.any():
            settings: Any = {"origin": "upper", "extent": self.extent(1), "linewidths": 1.6}
            drawn.contour(np.pad(inside, 1), levels=[0.5], colors=[colour], **settings | looks)

    def inside(self, j: int) -> tuple[float, float] | None:
        """Column and row of the image deepest inside a superpixel; None if it is not drawn."""
        from scipy import ndimage

        inside = self.labels == j
        if not inside.any():  # smaller than a pixel of the canvas
            return None
        box = ndimage.find_objects(inside.astype(np.int8))[0]
        depth = ndimage.distance_transform_edt(np.pad(inside[box], 1))[1:-1, 1:-1]
        row, column = np.unravel_index(depth.argmax(), depth.shape)
        down, across = self.steps
        return (
            float(across * (box[1].start + column + 0.5) - 0.5 * self.pixel[1]),
            float(down * (box[0].start + row + 0.5) - 0.5 * self.pixel[0]),
        )


def canvas(explanation: Explanation) -> Canvas:
    """The explained image, its longer side reduced to at most 1,000 pixels."""
    scene: Any = explanation.scene
    style.needs_domain(explanation, "image", "A map")
    labels, photo = np.asarray(scene.labels), np.asarray(scene.photo(_LONGEST))
    (height, width), (rows, columns) = labels.shape, photo.shape[:2]
    down, across = pixel = tuple(scene.spacing or (1.0, 1.0))
    steps, unit = (height // rows * down, width // columns * across), scene.spacing and scene.unit
    size: Any = {"height": height, "width": width, "pixel": pixel, "unit": unit}
    found = Canvas(photo=photo, labels=labels, steps=steps, **size)
    return replace(found, labels=found.reduce(labels))


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
    post = interactions.posterior
    sure = np.abs(2 * post.prob_positive() - 1) if post.has_spread else np.ones(post.n_features)
    mean, certain = interactions.matrix(), interactions.matrix(sure)  # signs: 0 (either) to 1
    order = np.sort(np.argsort(-np.abs(mean * certain).max(axis=1), kind="stable")[:top])
    mean, certain = mean[np.ix_(order, order)], certain[np.ix_(order, order)]
    size = 2.4 + 0.36 * len(order)
    drawn = style.axes(ax, (size + 1.2, size))
    shown = style.diverging()((mean / (np.abs(post.mean).max() or 1.0) + 1) / 2)
    shown[..., :3] = 1 - (1 - shown[..., :3]) * certain[..., None]
    shown[np.diag_indices(len(order))] = (*style.rgb("#ECECEC"), 1.0)
    drawn.imshow(shown)
    cells = np.argwhere(certain >= 0.95) if len(mean) <= _NUMBERED else ()
    for row, column in cells:
        text = f"{mean[row, column]:.2g}".replace("0.", ".").replace("-", "\N{MINUS SIGN}")
        drawn.text(column, row, text, ha="center", va="center", fontsize="x-small", color=style.INK)
    names = [style.caption(interactions.features[j], 18) for j in order]
    drawn.set_xticks(range(len(order)), names, rotation=60, ha="right", rotation_mode="anchor")
    drawn.set_yticks(range(len(order)), names)
    drawn.tick_params(length=0, labelsize="small")
    style.sign_bar(drawn, post, "interaction (faded: sign uncertain)", 1.0, two_way=False)
    what = f"{style.caption(interactions.label, 30)}: " if interactions.label else ""
    heading = f"{what}{post.estimand}\n{post.fit_label(2, 'R²')}, {post.n_masks} masks"
    drawn.set_title(heading, fontsize="medium", loc="left")
    return drawn
