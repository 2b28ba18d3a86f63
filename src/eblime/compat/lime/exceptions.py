"""The error class of lime."""

from __future__ import annotations

__all__ = ["LimeError"]


class LimeError(ValueError):
    """A setting that no explanation can have."""
