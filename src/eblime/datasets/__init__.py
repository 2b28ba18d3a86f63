"""Example inputs and models, and those of the paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eblime._lazy import lazy_names

if TYPE_CHECKING:
    from eblime.datasets.drilled import drilled_patches as drilled_patches
    from eblime.datasets.echoes import Block as Block
    from eblime.datasets.imagenet import coffee as coffee
    from eblime.datasets.imagenet import efficientnet_lite0 as efficientnet_lite0
    from eblime.datasets.imagenet import photo_set as photo_set
    from eblime.datasets.tabular import compas as compas
    from eblime.datasets.tabular import german as german
    from eblime.datasets.text import rt_polarity as rt_polarity
    from eblime.datasets.ultrasonic import endless_scans as endless_scans
    from eblime.datasets.ultrasonic import sample_scans as sample_scans
    from eblime.datasets.ultrasonic import scan as scan
    from eblime.datasets.ultrasonic import scans as scans
    from eblime.datasets.ultrasonic import ultrasonic_network as ultrasonic_network

_HOMES = {
    "drilled_patches": "drilled",
    "coffee": "imagenet",
    "efficientnet_lite0": "imagenet",
    "photo_set": "imagenet",
    "compas": "tabular",
    "german": "tabular",
    "rt_polarity": "text",
    "Block": "echoes",
    "endless_scans": "ultrasonic",
    "sample_scans": "ultrasonic",
    "scan": "ultrasonic",
    "scans": "ultrasonic",
    "ultrasonic_network": "ultrasonic",
}
_MODULES = (
    *("drilled", "imagenet", "mnist", "networks", "stored", "tabular", "text"),
    *("tiles", "ultrasonic"),
)

__all__ = [*_HOMES]

__getattr__, __dir__ = lazy_names(__name__, _HOMES, _MODULES)
