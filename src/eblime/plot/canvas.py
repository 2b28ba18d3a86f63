"""A photo and its superpixels at screen resolution, for maps to draw on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eblime._types import FloatArray
from eblime.plot.style import needs_domain
from eblime.results.explanation import Explanation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

__all__ = ["Canvas", "canvas"]

_LONGEST = 1000  # pixels drawn along the longer side


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Canvas:
    """A photo and its labels, both reduced by integer factors; coordinates are the image's."""

    photo: FloatArray  # (h, w, 3) in [0, 1]
    labels: NDArray[np.intp]  # (h, w)
    steps: tuple[int, int]  # rows and columns of the image per pixel of the canvas
    full: NDArray[np.intp]  # (H, W) labels of the image itself

    @property
    def height(self) -> int:
        """Rows of the image."""
        return int(self.full.shape[0])

    @property
    def width(self) -> int:
        """Columns of the image."""
        return int(self.full.shape[1])

    @property
    def size(self) -> tuple[float, float]:
        """Inches of a figure with this image and a colour bar, larger for a long image."""
        ratio = self.height / self.width
        width = min(4.1 / ratio**0.5, 9.0, 8.0 / ratio)
        return max(width + 1.1, 4.0), max(width * ratio + 0.5, 2.0)

    @property
    def grey(self) -> FloatArray:
        """The photo in grey, (h, w)."""
        return np.asarray(self.photo.mean(axis=-1))

    def show(self, drawn: Axes, pixels: Any, **settings: Any) -> AxesImage:
        """Draw an array of the canvas' size in the coordinates of the image."""
        rows, columns = self.labels.shape
        extent = (-0.5, columns * self.steps[1] - 0.5, rows * self.steps[0] - 0.5, -0.5)
        return drawn.imshow(pixels, extent=extent, **settings)

    def edges(self) -> FloatArray:
        """White lines between superpixels, (h, w, 4)."""
        edges = np.zeros(self.labels.shape, dtype=bool)
        edges[:, 1:] |= self.labels[:, 1:] != self.labels[:, :-1]
        edges[1:] |= self.labels[1:] != self.labels[:-1]
        line = np.zeros((*self.labels.shape, 4))
        line[edges] = (1, 1, 1, 0.6)
        return line

    def outline(self, drawn: Axes, j: int, colour: str) -> None:
        """Draw the border of a superpixel, unless it is too small to be visible."""
        inside = np.pad(self.labels == j, 1)
        if not inside.any():
            return
        down, across = (
            step * (np.arange(-1, count + 1) + 0.5) - 0.5
            for step, count in zip(self.steps, self.labels.shape, strict=True)
        )
        drawn.contour(across, down, inside, levels=[0.5], colors=[colour], linewidths=1.6)

    def inside(self, j: int) -> tuple[float, float]:
        """Column and row of the image deepest inside a superpixel."""
        from scipy import ndimage

        inside = self.labels == j
        if not inside.any():  # smaller than a pixel of the canvas
            row, column = np.argwhere(self.full == j)[0]
            return float(column), float(row)
        box = ndimage.find_objects(inside.astype(np.int8))[0]
        depth = ndimage.distance_transform_edt(np.pad(inside[box], 1))[1:-1, 1:-1]
        row, column = np.unravel_index(depth.argmax(), depth.shape)
        down, across = self.steps
        return (
            float(across * (box[1].start + column + 0.5) - 0.5),
            float(down * (box[0].start + row + 0.5) - 0.5),
        )


def canvas(explanation: Explanation) -> Canvas:
    """The explained image, its longer side reduced to at most 1,000 pixels."""
    scene: Any = explanation.scene
    needs_domain(explanation, "image", "A map")
    labels = np.asarray(scene.labels)
    photo = np.asarray(scene.photo(_LONGEST))
    down, across = (
        full // small for full, small in zip(labels.shape, photo.shape[:2], strict=True)
    )
    rows, columns = photo.shape[:2]
    reduced = labels[down // 2 :: down, across // 2 :: across][:rows, :columns]
    return Canvas(photo=photo, labels=reduced, steps=(down, across), full=labels)
