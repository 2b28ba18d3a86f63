"""Images: superpixels as features."""

from __future__ import annotations

from eblime.domains.image.scene import IMAGE

__all__ = ["IMAGE"]
