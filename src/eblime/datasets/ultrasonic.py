"""Ultrasonic B-scans of printed polymer blocks, simulated from their physics.

The 123 scans of the paper are not public. These simulated scans are a substitute.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eblime._types import FloatArray
from eblime.datasets.echoes import Block, block_image
from eblime.datasets.scan_network import ScanNetwork

__all__ = [
    "LABELS",
    "Block",
    "Scan",
    "endless_scans",
    "sample_scans",
    "scan",
    "scans",
    "ultrasonic_network",
]

LABELS = ["no defect", "with defect"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scan:
    """A scan and its pores."""

    image: NDArray[np.uint8]  # (pixels, pixels), depth downwards
    defect: NDArray[np.bool_]  # mask of the pores
    pores: FloatArray  # (k, 3) position, depth and radius

    @property
    def has_defect(self) -> bool:
        """Whether there is a pore."""
        return len(self.pores) > 0


def scan(rng: np.random.Generator, *, defect: bool, block: Block | None = None) -> Scan:
    """One scan of a new block; speckle, pores and noise are drawn from `rng`.

    Examples
    --------
    >>> import numpy as np
    >>> from eblime.datasets import scan
    >>> made = scan(np.random.default_rng(0), defect=True)
    >>> made.image.shape, made.has_defect
    ((128, 128), True)
    """
    made = Block() if block is None else block
    pores = _pores(rng, made) if defect else np.empty((0, 3))
    image = block_image(rng, made, pores)
    return Scan(image=image, defect=_inside(pores, made), pores=pores)


def scans(count: int = 123, defects: int = 69, seed: int = 0) -> list[Scan]:
    """A set like the paper's: 123 scans, of which 69 have a defect, in random order.

    Examples
    --------
    >>> from eblime.datasets import scans
    >>> sum(made.has_defect for made in scans(count=3, defects=2))
    2
    """
    order = np.random.default_rng(seed).permutation(count)
    return [
        scan(np.random.default_rng([seed, k]), defect=bool(order[k] < defects))
        for k in range(count)
    ]


def endless_scans(seed: int = 0) -> Iterator[Scan]:
    """An endless stream of scans, every second one with a defect; none of them is in `scans`.

    Examples
    --------
    >>> from itertools import islice
    >>> from eblime.datasets import endless_scans
    >>> [made.has_defect for made in islice(endless_scans(), 2)]
    [True, False]
    """
    k = 0
    while True:
        yield scan(np.random.default_rng([1_000_003, seed, k]), defect=k % 2 == 0)
        k += 1


def ultrasonic_network() -> ScanNetwork:
    """The five-layer network that detects defects in scans; it is part of the package.

    Examples
    --------
    >>> from eblime.datasets import sample_scans, ultrasonic_network
    >>> images, _ = sample_scans()
    >>> ultrasonic_network()(images)[:, 1].round(1)  # probability of a defect
    array([1., 1., 1., 0.])
    """
    with _asset("ultrasonic.npz") as path:
        return ScanNetwork.load(path)


def sample_scans() -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Four scans from the package and masks of their defects; the last one has no defect.

    Examples
    --------
    >>> from eblime.datasets import sample_scans
    >>> images, defects = sample_scans()
    >>> images.shape, defects.any(axis=(1, 2)).tolist()
    ((4, 128, 128), [True, True, True, False])
    """
    with _asset("scans.npz") as path, np.load(path, allow_pickle=False) as few:
        return few["images"], few["defects"]


def _asset(name: str) -> AbstractContextManager[Path]:
    """A file of the package, while the context is open."""
    return resources.as_file(resources.files("eblime.datasets").joinpath("assets", name))


def _pores(rng: np.random.Generator, block: Block) -> FloatArray:
    """One to three pores next to each other, as a printing fault causes them."""
    centre = np.array([rng.uniform(6, block.width - 6), rng.uniform(5, block.depth - 4)])
    count = int(rng.integers(1, 4))
    shift = rng.normal(0, [1.1, 0.5], size=(count, 2))
    radius = rng.uniform(0.6, 1.4, size=count)
    return np.column_stack([centre + shift, radius])


def _inside(pores: FloatArray, block: Block) -> NDArray[np.bool_]:
    """Pixels inside a pore."""
    x = (np.arange(block.pixels) + 0.5) * block.width / block.pixels
    z = (np.arange(block.pixels) + 0.5) * block.span / block.pixels
    found = np.zeros((block.pixels, block.pixels), dtype=bool)
    for centre, depth, radius in pores:
        found |= (x[None, :] - centre) ** 2 + (z[:, None] - depth) ** 2 <= radius**2
    return found
