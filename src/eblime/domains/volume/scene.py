"""Volumes: blocks or regions of voxels as features, and what hidden ones show instead."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from eblime import _field_checks as checks
from eblime._types import Columns
from eblime.domains import arrays
from eblime.domains.arrays import Channels, Hide, Labels, Segmentation
from eblime.domains.readers import check_memory, read_scan
from eblime.domains.record import Domain

_MOST_VOXELS = 96**3  # of the copy that SLIC cuts


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class VolumeScene(arrays.ArrayScene):
    """A volume cut into blocks or regions, in the layout and dtype that the model gets."""

    features: Sequence[str]  # "block (2, 0, 3)" or "region 12"
    axes: Sequence[str]  # names of the three axes of `labels`

    domain: ClassVar[str] = "volume"

    def details(self) -> Columns:
        """Centre, bounding box and number of voxels of each feature; with a spacing in its unit.

        Positions in voxels count from 0, and `stop` is one beyond the last voxel. Those in units
        are distances from `origin`, or the first voxel's centre; `extent` is that of the box.
        """
        return self.positions(self.axes, "voxels", "volume")


def blocks(volume: np.ndarray, n: int | Sequence[int] | None = None) -> Labels:
    """Equal blocks: n along each axis, or one number per axis; four where there is room."""
    return arrays.even_blocks(volume.shape[:-1], block_counts(volume.shape[:-1], n))


def block_counts(sides: Sequence[int], n: int | Sequence[int] | None = None) -> list[int]:
    """Blocks along each axis; more than there are voxels are refused."""
    if n is None:
        return [min(4, length) for length in sides]
    wanted = [n] * len(sides) if isinstance(n, (int, np.integer)) else list(n)
    if len(wanted) != len(sides) or np.greater(wanted, sides).any():
        raise ValueError(
            f"The parameter 'n' of 'blocks' must be one number or {len(sides)}, and no larger than "
            f"the sides of the volume, {tuple(sides)}; got {n!r}."
        )
    return [int(count) for count in wanted]


SEGMENTATIONS: dict[str, Callable[..., Labels]] = {"slic": arrays.slic, "blocks": blocks}
SEGMENTER = arrays.Segmenter(
    kind="volume",
    features="regions",
    axes=3,
    sides="(D, H, W)",
    known=SEGMENTATIONS,
    regular="blocks",
    factor=lambda sides: int(np.ceil(np.cbrt(np.prod(sides, dtype=float) / _MOST_VOXELS) - 1e-9)),
)


def read_volume(
    volume: object,
    *,
    segmentation: Segmentation,
    hide: Hide,
    channels: Channels = "auto",
    spacing: float | Sequence[float] | None = None,
    unit: str = "mm",
    origin: Sequence[float] | None = None,
    key: str | None = None,
    axes: Sequence[str] | None = None,
) -> VolumeScene:
    """Cut a volume into blocks or regions; the settings are those of `VolumeExplainer`."""
    scan = read_scan(volume, key)
    if spacing is None and scan.spacing is not None:
        spacing, unit = scan.spacing, scan.unit or unit
    if isinstance(scan.values, np.ndarray):
        check_memory(scan.values.shape, scan.values.dtype)
    shapes = "(D, H, W), (D, H, W, C) or (C, D, H, W)"
    numbers = arrays.as_numbers("volume", scan.values, (3, 4), shapes, "or a path")
    cut, params = arrays.name_and_parameters(segmentation)
    how = cut if isinstance(cut, str) else ""
    if how == "slic" and spacing is not None:  # so that its regions are round in space
        steps = np.array(arrays.per_axis(spacing, 3))
        segmentation = how, {"spacing": steps / steps.min(), **params}
    parts = SEGMENTER.read(numbers, segmentation, hide, channels)
    features = [f"region {j}" for j in range(int(parts["labels"].max()) + 1)]
    if how == "blocks":
        counts = block_counts(parts["labels"].shape, **params)
        features = [f"block {place}" for place in np.ndindex(*counts)]
    return VolumeScene(
        **parts,
        features=features,
        axes=list(axes or scan.axes),
        spacing=arrays.per_axis(spacing, 3),
        unit=unit,
        origin=arrays.per_axis(origin, 3),
    )


_FIELDS = {
    **arrays.field_checks(3),
    "features": checks.NAMES,
    "axes": checks.list_of(checks.text(40), "axes", most=3),
}
_RULES = {
    **arrays.RULES,
    "a name for each feature": lambda scene: len(scene.features) == scene.n_features,
    "three different names of axes": lambda scene: len(set(scene.axes)) == 3,
}

VOLUME = Domain(
    name="volume",
    feature="region",
    scene=VolumeScene,
    check_scene=lambda scene: checks.check_object(scene, _FIELDS, _RULES),
    picture="slices",
)
