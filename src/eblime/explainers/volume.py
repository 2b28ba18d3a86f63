"""`VolumeExplainer`: volumes, by blocks or regions of voxels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from eblime._checks import as_floats, check_names, check_text
from eblime.domains.arrays import Channels, Hide, Segmentation, check_spacing
from eblime.domains.masked import MaskedSubject
from eblime.domains.readers import VOLUME_ENDINGS
from eblime.domains.volume.scene import SEGMENTER, read_volume
from eblime.explainers.base import BaseExplainer


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class VolumeExplainer(BaseExplainer):
    """Explains a model's prediction for a volume, by blocks or regions of voxels.

    Parameters
    ----------
    model
        Anything that scores a batch of volumes: a function, a `torch.nn.Module`, an ONNX file, ...
        (see `as_model`). It gets volumes of the shape, layout and dtype of the explained one.
    segmentation
        What the features are: "slic", about 50 regions of similar voxels; "blocks", four along each
        axis; one of them with parameters, such as ("slic", {"n_segments": 100}), ("blocks",
        {"n": 6}) or ("blocks", {"n": (2, 8, 8)}); an array of labels (D, H, W); or a function
        from the volume, as floats in [0, 1] with channels last, to such labels.
    hide
        What a hidden region shows: its "mean", a "blur", a number or one per channel, another
        volume of the same shape, or a function from the volume to one.
    spacing, unit
        Size of a voxel along each of the three axes, and its unit. Results then have positions and
        sizes in this unit as well as in voxels. None takes the spacing from the file, if it has it.
    origin
        Position of the first voxel's centre in this unit; None is 0 along each axis.
    channels
        The channel axis of a volume with four axes: "auto", "first" or "last".
    key
        Name of the array in a .npz, .mat or HDF5 file that has several.
    axes
        Names of the three axes, such as ("time", "x", "y"); None takes those of the file.
    n_masks, design, kernel, method, progress, labels, calls, cache
        See `eblime.explainers.base.BaseExplainer`.

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> volume = np.zeros((8, 8, 8), dtype=np.float32)
    >>> volume[:4, :4, 4:] = 1.0
    >>> mean = lambda batch: batch.mean(axis=(1, 2, 3))
    >>> halves = ("blocks", {"n": 2})
    >>> explainer = eblime.VolumeExplainer(mean, segmentation=halves, hide=0, spacing=(2, 1, 1))
    >>> e = explainer.explain(volume)
    >>> [(name, round(mean, 3)) for name, mean in e.as_list(top=1)]
    [('block (0, 0, 1)', 0.125)]
    >>> e.scene.details()["centre_z_mm"][1]
    3.0
    """

    segmentation: Segmentation = "slic"
    hide: Hide = "mean"
    spacing: float | Sequence[float] | None = None
    channels: Channels = "auto"
    unit: str = "mm"
    key: str | None = None
    axes: Sequence[str] | None = None
    origin: Sequence[float] | None = None

    domain = "volume"
    about = ("segmentation", "hide")
    endings: ClassVar[tuple[str, ...]] = VOLUME_ENDINGS  # of the files of a run

    def __post_init__(self) -> None:
        SEGMENTER.check(self.segmentation, self.hide, self.channels)
        check_spacing(self.spacing, 3)
        if self.origin is not None and as_floats("origin", self.origin).shape != (3,):
            raise ValueError(f"`origin` must be three numbers; got {self.origin!r:.60}.")
        check_text("unit", self.unit)
        if self.axes is not None:
            check_names("axes", self.axes, 3)
        self._make_loop()

    def subject(self, x: Any) -> MaskedSubject:
        """Read and cut a volume.

        Parameters
        ----------
        x
            An array (D, H, W), (D, H, W, C) or (C, D, H, W), or the path of a .npy, .npz, .tif,
            .mat, .h5, .nii or .dcm file.
        """
        return MaskedSubject(scene=read_volume(x, **self.own))
