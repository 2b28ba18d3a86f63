"""Real inputs and models to try eblime on, and those of the paper."""

from __future__ import annotations

from eblime._lazy import lazy_modules

__getattr__ = lazy_modules(
    __name__, ("drilled", "imagenet", "mnist", "networks", "tabular", "text", "tiles", "ultrasonic")
)
