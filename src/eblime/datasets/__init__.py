"""Example inputs and models: a photo with an ImageNet classifier, and ultrasonic scans."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eblime._lazy import lazy_names

if TYPE_CHECKING:
    from eblime.datasets.imagenet import class_names as class_names
    from eblime.datasets.imagenet import coffee as coffee
    from eblime.datasets.imagenet import efficientnet_lite0 as efficientnet_lite0
    from eblime.datasets.ultrasonic import sample_scans as sample_scans
    from eblime.datasets.ultrasonic import ultrasonic_network as ultrasonic_network

_HOMES = {  # module -> its names
    "imagenet": ("class_names", "coffee", "efficientnet_lite0"),
    "ultrasonic": ("sample_scans", "ultrasonic_network"),
}

__all__ = [name for names in _HOMES.values() for name in names]

__getattr__, __dir__ = lazy_names(__name__, _HOMES, ("imagenet", "ultrasonic"))
