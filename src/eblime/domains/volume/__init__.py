"""Volumes: blocks or regions of voxels as features."""

from __future__ import annotations

from eblime.domains.volume.scene import VOLUME, VolumeScene, read_volume

__all__ = ["VOLUME", "VolumeScene", "read_volume"]
