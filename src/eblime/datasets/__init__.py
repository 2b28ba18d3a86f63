"""Example inputs and models, and those of the paper."""

from __future__ import annotations

from eblime._lazy import lazy_modules

__getattr__ = lazy_modules(
    __name__,
    (
        *("drilled", "imagenet", "mnist", "networks", "stored", "tabular", "text", "tiles"),
        "ultrasonic",
    ),
)
