"""Images of parts with a known defect, and the networks that should see it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eblime._types import IntArray

__all__ = ["PARTS", "FaultyPart", "FaultyParts", "faulty_parts"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FaultyPart:
    """An image of a part with a defect, and the model that should see it."""

    image: NDArray[np.uint8]
    defect: NDArray[np.bool_]
    number: int  # of the part; several images may show the same one
    model: Any


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FaultyParts:
    """All images of a dataset that show a defect."""

    images: NDArray[np.uint8]  # (n, H, W)
    defects: NDArray[np.bool_]  # (n, H, W) masks of the defects
    numbers: IntArray  # (n,) the part that each image shows
    network: Callable[[int], Any]  # from the number of a part to the model that is explained

    def part(self, index: int) -> FaultyPart:
        """One image, with its model."""
        number = int(self.numbers[index])
        return FaultyPart(
            image=self.images[index],
            defect=self.defects[index],
            number=number,
            model=self.network(number),
        )


@lru_cache(maxsize=3)
def faulty_parts(dataset: str) -> FaultyParts:
    """The images of a dataset that show a defect; the dataset is one of `PARTS`."""
    return _LOADERS[dataset]()


def _ultrasonic() -> FaultyParts:
    """The simulated scans of printed blocks."""
    from eblime.datasets.ultrasonic import ultrasonic_network
    from studies.data.scans import scans

    faulty = [made for made in scans() if made.has_defect]
    return FaultyParts(
        images=np.array([made.image for made in faulty]),
        defects=np.array([made.defect for made in faulty]),
        numbers=np.arange(len(faulty)),
        network=lambda number: ultrasonic_network(),
    )


def _tiles() -> FaultyParts:
    """Real magnetic tiles."""
    from studies.data.tiles import tile_network, tiles

    found = tiles()
    images, defects = found.images[found.faulty], found.defects[found.faulty]
    return FaultyParts(
        images=images,
        defects=defects,
        numbers=np.arange(len(images)),
        network=lambda number: tile_network(),
    )


def _drilled() -> FaultyParts:
    """Real scans of drilled holes; each hole's network was not trained on that hole."""
    from studies.data.drilled import drilled_network, drilled_patches

    patches = drilled_patches()
    with_hole = patches.holes >= 0
    return FaultyParts(
        images=patches.images[with_hole],
        defects=patches.defects[with_hole],
        numbers=patches.holes[with_hole],
        network=drilled_network,
    )


_LOADERS = {"ultrasonic": _ultrasonic, "tiles": _tiles, "drilled": _drilled}
PARTS = tuple(_LOADERS)
