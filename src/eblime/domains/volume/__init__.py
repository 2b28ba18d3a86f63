"""Volumes: blocks or regions of voxels as features."""

from eblime.domains.volume.scene import VOLUME as VOLUME
from eblime.domains.volume.scene import VolumeScene as VolumeScene
