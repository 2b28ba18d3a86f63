"""Magnetic tiles with pixel masks of their defects (Huang et al. 2018), and a network."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from studies.data.files import find
from studies.data.networks import cached_network, scan_layers, train_classifier

if TYPE_CHECKING:
    from eblime.models.torch import TorchModel

__all__ = ["Tiles", "tile_network", "tiles"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tiles:
    """Grey images of 128 x 128 pixels, masks of their defects, and the kinds of defects."""

    images: NDArray[np.uint8]  # (n, 128, 128)
    defects: NDArray[np.bool_]  # (n, 128, 128)
    kinds: list[str]

    @property
    def faulty(self) -> NDArray[np.intp]:
        """Numbers of the tiles that have a defect."""
        return np.flatnonzero([kind != "free" for kind in self.kinds])


@lru_cache(maxsize=1)
def tiles() -> Tiles:
    """300 tiles in one prepared file; the originals on GitHub must be cropped by hand.

    Examples
    --------
    >>> from studies.data.tiles import tiles
    >>> found = tiles()  # doctest: +SKIP
    >>> found.images.shape, found.kinds[found.faulty[0]]  # doctest: +SKIP
    ((300, 128, 128), 'blowhole')
    """
    path = find("magnetic_tile/magnetic_tile.npz")
    with np.load(path, allow_pickle=False) as stored:
        kinds = [str(kind) for kind in stored["labels"]]
        return Tiles(
            images=stored["images"].astype(np.uint8), defects=stored["masks"] > 0, kinds=kinds
        )


@lru_cache(maxsize=1)
def tile_network() -> TorchModel:
    """A network that detects faulty tiles, trained on all of them."""

    def train(layers: Any) -> None:
        found = tiles()
        labels = np.array([kind != "free" for kind in found.kinds], dtype=np.int64)
        train_classifier(layers, found.images, labels, epochs=60)

    return cached_network("magnetic-tiles", tiles().images, scan_layers, train)
