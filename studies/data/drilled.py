"""Real ultrasonic scans of drilled holes: patches with a hole and patches without one.

The data are an immersion scan of an acrylic block on an aluminium block (M. H. Skjelvareid's
synaptus), with 111 x 40 positions one millimetre apart. Four holes were drilled into each block
from below. Their positions are known from migration. A patch is part of a vertical section, 32 mm
wide and 5 us high. It shows the envelope of the echoes on a logarithmic scale.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import io, ndimage, signal

from eblime._types import FloatArray
from studies.data.files import find
from studies.data.networks import cached_network, scan_layers, train_classifier

if TYPE_CHECKING:
    from eblime.models.torch import TorchModel

__all__ = ["Echo", "Patches", "drilled_network", "drilled_patches", "echo_positions"]

# position along and across the scan, and depth in the block, in millimetres
_ACRYLIC = ((79, 12, 8.3), (59, 12, 14.0), (38, 12, 20.2), (18, 12, 25.3))
_ALUMINIUM = ((89, 23, 11.7), (69, 23, 21.7), (48, 23, 31.7), (27, 23, 40.8))
_WIDE, _HIGH, _SIZE = 32, 64, 128  # of a patch: millimetres, samples, pixels
_PER_HOLE = 24  # patches of each hole

Echo = tuple[float, float, float]  # position along the scan, position across it, and sample
Patch = tuple[NDArray[np.uint8], NDArray[np.bool_], int]  # image, mask of the echo, and hole


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Patches:
    """Images of 128 x 128 pixels, masks of the hole's echo, and the number of the hole."""

    images: NDArray[np.uint8]  # (n, 128, 128)
    defects: NDArray[np.bool_]  # (n, 128, 128) empty if there is no hole
    holes: NDArray[np.intp]  # (n,) 0 .. 7, -1 for none


@lru_cache(maxsize=1)
def drilled_patches() -> Patches:
    """Patches with each of the eight holes at several positions, and as many without a hole.

    Examples
    --------
    >>> from studies.data.drilled import drilled_patches
    >>> patches = drilled_patches()  # doctest: +SKIP
    >>> patches.images.shape, int((patches.holes >= 0).sum())  # doctest: +SKIP
    ((384, 128, 128), 192)
    """
    path = find("ultrasonic/PlaneScan3D_PlexiAluFBH.mat")
    stored: Any = io.loadmat(path)
    level = _level(stored["ptxy"])
    echoes = echo_positions(stored)
    rng = np.random.default_rng(0)
    found: list[Patch] = []
    for number in range(len(echoes)):
        found += _of_hole(rng, level, echoes, number)
    found += _without_hole(rng, level, echoes, len(found))
    images, defects, holes = zip(*found, strict=True)
    return Patches(
        images=np.array(images), defects=np.array(defects), holes=np.array(holes, dtype=np.intp)
    )


def _of_hole(
    rng: np.random.Generator, level: FloatArray, echoes: list[Echo], number: int
) -> list[Patch]:
    """Patches that show one hole, and no part of another."""
    x, y, t = echoes[number]
    others = [echo for k, echo in enumerate(echoes) if k != number]
    found: list[Patch] = []
    while len(found) < _PER_HOLE:
        row = int(np.clip(y + rng.integers(-2, 3), 0, level.shape[2] - 1))
        left = int(np.clip(x - rng.integers(6, _WIDE - 6), 0, level.shape[1] - _WIDE))
        top = int(np.clip(t - rng.integers(16, _HIGH - 16), 0, len(level) - _HIGH))
        if any(_shows(echo, top, left) for echo in others):
            continue  # or a network could be trained on a hole that it must not know
        found.append((_patch(level, top, left, row), _box(t - top, x - left), number))
    return found


def _without_hole(
    rng: np.random.Generator, level: FloatArray, echoes: list[Echo], count: int
) -> list[Patch]:
    """Patches that show no part of any hole."""
    found: list[Patch] = []
    while len(found) < count:
        row, left = int(rng.integers(0, 40)), int(rng.integers(0, level.shape[1] - _WIDE))
        top = int(rng.integers(60, len(level) - _HIGH))
        if not any(_near(echo, top, left, row) for echo in echoes):
            none = np.zeros((_SIZE, _SIZE), dtype=bool)
            found.append((_patch(level, top, left, row), none, -1))
    return found


@lru_cache(maxsize=8)
def drilled_network(without: int) -> TorchModel:
    """A network that detects holes in patches; it was not trained on the hole `without`."""

    def train(layers: Any) -> None:
        found = drilled_patches()
        seen = found.holes != without
        labels = (found.holes[seen] >= 0).astype(np.int64)
        train_classifier(layers, found.images[seen], labels, epochs=20)

    return cached_network(
        f"drilled-without-{without}", drilled_patches().images, scan_layers, train
    )


def _level(echoes: FloatArray) -> FloatArray:
    """Envelopes on a logarithmic scale: 50 decibels are mapped to 0 to 1, with a constant gain."""
    envelope = np.abs(signal.hilbert(echoes, axis=0))
    decibels = 20 * np.log10(envelope / envelope.max() + 1e-6)
    return np.asarray(np.clip(1 + decibels / 50, 0, 1))


def echo_positions(stored: Any) -> list[Echo]:
    """Position along the scan, position across it, and sample of each hole's echo."""
    rate, start = float(stored["fs"].item()), float(stored["tDelay"].item())
    water, acrylic, aluminium = stored["cc"].ravel()
    thick = stored["thick"].ravel()
    surface = 2 * thick[0] / water
    below = surface + 2 * thick[1] / acrylic
    found = []
    for holes, begin, speed in ((_ACRYLIC, surface, acrylic), (_ALUMINIUM, below, aluminium)):
        for x, y, z in holes:
            found.append((float(x), float(y), (begin + 2e-3 * z / speed - start) * rate))
    return found


def _patch(level: FloatArray, top: int, left: int, row: int) -> NDArray[np.uint8]:
    """Part of a vertical section as an image."""
    piece = level[top : top + _HIGH, left : left + _WIDE, row]
    large = ndimage.zoom(piece, (_SIZE / _HIGH, _SIZE / _WIDE), order=1)
    return np.asarray(np.round(255 * large), dtype=np.uint8)


def _box(t: float, x: float) -> NDArray[np.bool_]:
    """Mask of a hole's echo in a patch: 3 mm to each side, 10 samples up and down."""
    rows = np.arange(_SIZE)[:, None] * _HIGH / _SIZE
    columns = np.arange(_SIZE)[None, :] * _WIDE / _SIZE
    return np.asarray((np.abs(rows - t) <= 10) & (np.abs(columns - x) <= 3))


def _shows(echo: Echo, top: int, left: int) -> bool:
    """Whether a patch at this position, on any section, shows the centre of a hole's echo."""
    x, _, t = echo
    return left - 4 <= x <= left + _WIDE + 4 and top - 10 <= t <= top + _HIGH + 10


def _near(echo: Echo, top: int, left: int, row: int) -> bool:
    """Whether a patch may show part of a hole's echo."""
    x, y, t = echo
    along = left - 6 <= x <= left + _WIDE + 6
    return bool(abs(row - y) <= 12 and along and top - 14 <= t <= top + _HIGH + 14)
