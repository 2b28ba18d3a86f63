"""Images: superpixels as features."""

from __future__ import annotations

from eblime.domains.image.scene import IMAGE, ImageScene, read_image

__all__ = ["IMAGE", "ImageScene", "read_image"]
