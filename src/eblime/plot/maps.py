"""Pictures over the picture: which superpixels matter, and how sure that is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eblime._checks import check_count
from eblime._types import FloatArray
from eblime.plot.style import AGAINST, FAVOUR, axes, caption
from eblime.results.explanation import Explanation

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["importance_map", "sign_map", "top_k_map", "uncertainty_map"]


def importance_map(explanation: Explanation, *, top: int = 5, ax: Axes | None = None) -> Axes:
    """The `top` superpixels by size, green in favour and orange against: the paper's Fig. 2."""
    check_count("top", top)
    photo, labels = _photo(explanation), _labels(explanation)
    mean = explanation.posterior.mean
    chosen = np.argsort(-np.abs(mean), kind="stable")[:top]
    grey = photo.mean(axis=-1, keepdims=True).repeat(3, axis=-1)
    shown = 0.35 * grey + 0.65  # faded, so that what is chosen stands out
    for j in chosen:
        inside = labels == j
        tint = np.array(_rgb(FAVOUR if mean[j] > 0 else AGAINST))
        shown[inside] = 0.55 * photo[inside] + 0.45 * tint
    drawn = axes(ax, (4.4, 4.6))
    drawn.imshow(np.clip(shown, 0, 1))
    for j in chosen:
        colour = FAVOUR if mean[j] > 0 else AGAINST
        outline = np.pad(labels == j, 1)
        places = (np.arange(-1, labels.shape[1] + 1), np.arange(-1, labels.shape[0] + 1))
        drawn.contour(*places, outline, levels=[0.5], colors=[colour], linewidths=1.6)
        _number(drawn, labels == j, str(j))
    title = f"{caption(explanation.label)}: top {len(chosen)}, green for, orange against"
    drawn.set_xlim(-0.5, labels.shape[1] - 0.5)
    drawn.set_ylim(labels.shape[0] - 0.5, -0.5)
    return _finish(drawn, title)


def uncertainty_map(
    explanation: Explanation, *, scaled: bool = True, ax: Axes | None = None
) -> Axes:
    """Posterior variance of each superpixel; `scaled` from 0 to 1 as in the paper, or as it is."""
    variance = explanation.posterior.sd**2
    if scaled:
        span = np.ptp(variance)
        variance = (variance - variance.min()) / span if span > 0 else variance * 0
    title = "posterior variance, min-max scaled" if scaled else "posterior variance"
    return _field(explanation, variance, title, ax, colours="viridis")


def top_k_map(explanation: Explanation, *, top: int = 5, ax: Axes | None = None) -> Axes:
    """Probability of each superpixel to be among the `top` most important."""
    chance = explanation.posterior.top_k_probability(min(top, explanation.scene.n_features))
    return _field(explanation, chance, f"P(among the top {top})", ax, limits=(0, 1))


def sign_map(explanation: Explanation, *, ax: Axes | None = None) -> Axes:
    """Probability of each superpixel to speak in favour."""
    from matplotlib.colors import LinearSegmentedColormap

    signs = LinearSegmentedColormap.from_list("signs", [AGAINST, "#f7f7f7", FAVOUR])
    chance = explanation.posterior.prob_positive()
    return _field(explanation, chance, "P(importance > 0)", ax, colours=signs, limits=(0, 1))


def _field(
    explanation: Explanation,
    values: FloatArray,
    title: str,
    ax: Axes | None,
    *,
    colours: Any = "viridis",
    limits: tuple[float | None, float | None] = (None, None),
) -> Axes:
    """A number for each superpixel as a colour, the edges of the photo still seen through it."""
    labels = _labels(explanation)
    drawn = axes(ax, (5.2, 4.6))
    drawn.imshow(_photo(explanation).mean(axis=-1), cmap="gray", vmin=0, vmax=1)
    field = drawn.imshow(values[labels], cmap=colours, vmin=limits[0], vmax=limits[1], alpha=0.72)
    edges = np.zeros(labels.shape, dtype=bool)
    edges[:, 1:] |= labels[:, 1:] != labels[:, :-1]
    edges[1:] |= labels[1:] != labels[:-1]
    line = np.zeros((*labels.shape, 4))
    line[edges] = (1, 1, 1, 0.6)
    drawn.imshow(line)
    drawn.figure.colorbar(field, ax=drawn, shrink=0.8)
    return _finish(drawn, title)


def _photo(explanation: Explanation) -> FloatArray:
    """The image as (H, W, 3) floats in [0, 1]."""
    scene: Any = explanation.scene
    if not hasattr(scene, "photo"):
        raise TypeError("Maps are for images; this explanation is of something else.")
    return np.asarray(scene.photo())


def _labels(explanation: Explanation) -> NDArray[np.intp]:
    """The superpixel of each pixel."""
    scene: Any = explanation.scene
    return np.asarray(scene.labels)


def _rgb(colour: str) -> tuple[float, float, float]:
    """A hexadecimal colour as three numbers."""
    return tuple(int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))  # type: ignore[return-value]


def _number(drawn: Any, inside: NDArray[np.bool_], text: str) -> None:
    """Write a superpixel's number at the pixel deepest inside it."""
    from scipy import ndimage

    depth = ndimage.distance_transform_edt(np.pad(inside, 1))[1:-1, 1:-1]
    row, column = np.unravel_index(depth.argmax(), depth.shape)
    box = {"boxstyle": "round,pad=0.2", "facecolor": "white", "alpha": 0.85, "linewidth": 0}
    drawn.text(column, row, text, ha="center", va="center", fontsize="small", bbox=box)


def _finish(drawn: Any, title: str) -> Axes:
    """No ticks, a title."""
    drawn.set_xticks([])
    drawn.set_yticks([])
    drawn.set_title(title, fontsize="medium", loc="left")
    return drawn  # type: ignore[no-any-return]
