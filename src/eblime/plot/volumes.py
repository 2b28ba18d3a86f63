"""Volumes: three slices through a voxel, or three maximum projections, as maps of images.

`Sections` cuts the panels, for plots, pages and thumbnails alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eblime._checks import check_count
from eblime._types import FloatArray, IntArray
from eblime.plot import style
from eblime.plot.maps import Canvas, overlay, remarks
from eblime.results.explanation import Explanation

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PLANES = ((1, 2), (0, 2), (1, 0))  # the axes that go down and across in the slice along each axis
_LONGEST = 256  # voxels drawn along an axis
_VOXELS = 300_000  # of a region, whose centre is found from so many
_FLATTEST = 0.3  # of the longest axis: the shortest that an axis is drawn
_BEAMS = ("time", "ultrasound", "beam")  # names of the axis along which sound travels


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sections:
    """A volume in grey, reduced by integer factors, and what its axes are."""

    grey: FloatArray  # (d, h, w) in [0, 1]
    labels: NDArray[np.intp]  # (d, h, w)
    full: NDArray[np.intp]  # (D, H, W)
    steps: tuple[int, ...]  # voxels of the volume per voxel drawn, along each axis
    sizes: tuple[float, ...]  # of a voxel, along each axis
    lengths: tuple[float, ...]  # how long each axis is drawn
    axes: tuple[str, ...]
    unit: str
    origin: tuple[float, ...]
    signed: bool  # whether the volume has negative values

    def slice(self, axis: int, position: int) -> Canvas:
        """The slice at a position along an axis."""
        k = min(position // self.steps[axis], self.grey.shape[axis] - 1)
        return self._canvas(axis, self.grey.take(k, axis), self.labels.take(k, axis))

    def projection(self, axis: int, order: IntArray) -> Canvas:
        """The largest value along an axis, and of the features there the first of `order`."""
        rank = np.empty(len(order), dtype=np.intp)
        rank[order] = np.arange(len(order))
        values = np.abs(2 * self.grey - 1) if self.signed else self.grey
        return self._canvas(axis, values.max(axis=axis), order[rank[self.labels].min(axis=axis)])

    def _canvas(self, axis: int, grey: FloatArray, labels: IntArray) -> Canvas:
        """Arrays of the two other axes as a photo, in the order of `PLANES`."""
        down, across = PLANES[axis]
        if down > across:
            grey, labels = grey.T, labels.T
        return Canvas(
            photo=np.repeat(grey[..., None], 3, axis=-1),
            labels=labels,
            steps=(self.steps[down] * self.sizes[down], self.steps[across] * self.sizes[across]),
            height=self.full.shape[down],
            width=self.full.shape[across],
            pixel=(self.sizes[down], self.sizes[across]),
        )

    def name(self, axis: int) -> str:
        """What a slice along an axis is called: by its axes, or C-scan, B-scan and D-scan."""
        beam = [k for k, word in enumerate(self.axes) if word.lower() in _BEAMS]
        if len(beam) == 1:
            scans = [k for k in range(3) if k != beam[0]]
            return "C-scan" if axis == beam[0] else "B-scan" if axis == scans[0] else "D-scan"
        down, across = PLANES[axis]
        return f"{self.axes[down]}-{self.axes[across]}"

    def place(self, axis: int, position: float) -> str:
        """A position along an axis in words: `z = 12.5 mm`."""
        found = position * self.sizes[axis] + self.origin[axis]
        return f"{self.axes[axis]} = {found:.4g} {self.unit}".rstrip()

    def centre(self, j: int) -> tuple[int, ...]:
        """The voxel of a feature that is nearest to its mean position."""
        places = np.flatnonzero(self.labels == j)
        if not len(places):  # smaller than a voxel that is drawn
            return tuple(int(k) for k in np.argwhere(self.full == j)[0])
        some = places[:: -(-len(places) // _VOXELS)]
        inside = np.stack(np.unravel_index(some, self.labels.shape), axis=1)
        nearest = inside[((inside - inside.mean(axis=0)) ** 2).sum(axis=1).argmin()]
        return tuple(int(k * step + step // 2) for k, step in zip(nearest, self.steps, strict=True))


def sections_of(explanation: Explanation, kind: str = "slices") -> Sections:
    """The explained volume, each axis reduced to at most 256 voxels."""
    style.needs_domain(explanation, "volume", f'plot("{kind}")')
    scene: Any = explanation.scene
    steps = tuple(-(-n // _LONGEST) for n in scene.labels.shape)
    drawn = tuple(slice(step // 2, None, step) for step in steps)
    low, high = float(scene.shown.min()), float(scene.shown.max())
    signed = low < 0 < high
    if signed:
        low, high = -max(-low, high), max(-low, high)
    channel = scene.channel_axis
    values = scene.shown[None] if channel is None else np.moveaxis(scene.shown, channel, 0)
    grey = values[(slice(None), *drawn)].mean(axis=0, dtype=np.float32)
    grey = (grey - low) / max(high - low, 1e-30)
    sizes = tuple(scene.spacing or (1.0, 1.0, 1.0))
    lengths = np.array(scene.labels.shape) * sizes
    return Sections(
        grey=grey,
        labels=scene.labels[drawn],
        full=scene.labels,
        steps=steps,
        sizes=sizes,
        lengths=tuple(np.maximum(lengths, _FLATTEST * lengths.max()).tolist()),
        axes=tuple(scene.axes),
        unit="voxels" if scene.spacing is None else scene.unit,
        origin=tuple(scene.origin or (0.0, 0.0, 0.0)),
        signed=signed,
    )


def slices(
    explanation: Explanation,
    *,
    voxel: Sequence[int] | None = None,
    top: int = 5,
    ax: Axes | None = None,
) -> Axes:
    """Three slices through a voxel, the centre of the most important feature by default.

    The `top` features are coloured as on the map of an image: green raises the score, orange
    lowers it. Lines show where the other two slices are.

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> corner = lambda batch: batch[:, :4, :4, :4].mean(axis=(1, 2, 3))
    >>> explainer = eblime.VolumeExplainer(corner, segmentation=("blocks", {"n": 2}), hide=0)
    >>> e = explainer.explain(np.ones((8, 8, 8)), rng=0)
    >>> print(eblime.plot.slices(e, top=1).get_title("left"))
    output: top 1
    """
    cut = sections_of(explanation)
    first = int(explanation.posterior.order()[0])
    chosen = cut.centre(first) if voxel is None else tuple(voxel)
    shape = cut.full.shape
    inside = [k in range(n) for k, n in zip(chosen, shape, strict=False)]  # 1.5 is not
    if len(chosen) != 3 or not all(inside):
        raise ValueError(
            f"`voxel` must be three whole numbers, a position in a volume {shape}; got {voxel!r}."
        )
    chosen = tuple(map(int, chosen))
    panels = {
        f"{cut.name(axis)}, {cut.place(axis, k)}": cut.slice(axis, k)
        for axis, k in enumerate(chosen)
    }
    return _draw(explanation, cut, panels, top=top, ax=ax, cross=chosen)


def projections(explanation: Explanation, *, top: int = 5, ax: Axes | None = None) -> Axes:
    """The largest values along each axis, and the `top` features, seen through the volume.

    Where features are behind each other, the most important one is shown.

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> corner = lambda batch: batch[:, :4, :4, :4].mean(axis=(1, 2, 3))
    >>> explainer = eblime.VolumeExplainer(corner, segmentation=("blocks", {"n": 2}), hide=0)
    >>> e = explainer.explain(np.ones((8, 8, 8)), rng=0)
    >>> eblime.plot.projections(e, top=1).get_title("left")
    'output: top 1, projections'
    """
    cut, order = sections_of(explanation, "projections"), explanation.posterior.order()
    panels = {
        f"{cut.name(axis)}, along {cut.axes[axis]}": cut.projection(axis, order)
        for axis in range(3)
    }
    return _draw(explanation, cut, panels, top=top, ax=ax)


def _tick(origin: float, at: float, _: int) -> str:
    return f"{origin + at:.6g}"


def _draw(
    explanation: Explanation,
    cut: Sections,
    panels: dict[str, Canvas],
    *,
    top: int,
    ax: Axes | None,
    cross: tuple[int, ...] | None = None,
) -> Axes:
    """Three panels inside one pair of axes: below and on the right of the first, the others."""
    check_count("top", top)
    post = explanation.posterior
    order, shares = post.order(), style.signed_shares(explanation)
    deep, high, wide = cut.lengths
    gap = 0.16 * max(cut.lengths)
    total, tall = wide + gap + deep, high + gap + deep
    scale = 7.6 / max(total, tall)
    drawn = style.axes(ax, (scale * total + 1.6, scale * tall + 0.9))
    drawn.set(xlim=(0, total), ylim=(0, tall), aspect="equal")
    above = deep + gap
    places = [(0, above, wide, high), (0, 0, wide, deep), (wide + gap, above, deep, high)]
    for (down, across), name, place in zip(PLANES, panels, places, strict=True):
        panel, inset = panels[name], drawn.inset_axes(place, transform=drawn.transData)
        overlay(inset, panel, shares, order[:top], aspect="auto")
        inset.set_title(style.caption(name), fontsize="small", loc="left", pad=3)
        inset.axis(panel.extent())
        for axis, k in ((inset.xaxis, across), (inset.yaxis, down)):
            axis.set_label_text(style.caption(f"{cut.axes[k]} ({cut.unit})", 24), size="x-small")
            axis.set_major_formatter(partial(_tick, cut.origin[k]))
        inset.locator_params(nbins=4)
        inset.tick_params(labelsize="x-small", length=2)
        if cross is not None:
            inset.axhline(cross[down] * cut.sizes[down], color=style.MARK, lw=0.8, ls=":")
            inset.axvline(cross[across] * cut.sizes[across], color=style.MARK, lw=0.8, ls=":")
    drawn.set_axis_off()
    style.sign_bar(drawn, post)
    words = f"top {min(top, len(order))}" + ("" if cross is not None else ", projections")
    title = f"{style.heading(explanation.label, 44)}: {words}"
    style.write_cautions(drawn, explanation)
    lines = [title, *remarks(explanation, order[:top])]
    drawn.set_title("\n".join(lines), fontsize="medium", loc="left", pad=18)
    return drawn
