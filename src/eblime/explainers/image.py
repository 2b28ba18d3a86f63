"""`ImageExplainer`: images, by superpixels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from eblime._checks import check_choice
from eblime._progress import Progress
from eblime._repr import settings_repr
from eblime.domains.image.hiding import HIDES, Hide
from eblime.domains.image.scene import Channels, read_image, warn_unscaled
from eblime.domains.image.segmentation import Segmentation, check_segmentation
from eblime.engine.neighbourhood import MaskedSubject
from eblime.engine.targets import Labels
from eblime.explainers.base import BaseExplainer
from eblime.models.adapt import as_model, output_names
from eblime.protocols import Kernel, Method

__all__ = ["ImageExplainer"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ImageExplainer(BaseExplainer):
    """Explains what a model says of an image, by superpixels.

    Parameters
    ----------
    model
        Anything that scores a batch of images: a function, a scikit-learn-like object, a
        `torch.nn.Module`, an ONNX file, ... (see `as_model`). It is asked with images of the shape,
        layout and dtype of the one explained.
    segmentation
        How to cut the image: "slic", "quickshift", "felzenszwalb" or "grid", one of them with
        parameters, ("slic", {"n_segments": 100}), an array of labels, or a function.
    hide
        What a hidden superpixel shows: its "mean" colour, a "blur", a number or a colour, a
        background image, or a function of the image.
    n_masks
        How many masks to ask about; all 2^p where that is no more.
    design
        Which: "bernoulli", "paired", "exhaustive", or a function of (rng, n_masks, p).
    kernel
        How much a mask counts: None is lime's for tables, width 0.75 sqrt(p) on Euclidean distance;
        "cosine" is lime's for images; "uniform"; an object such as `ExponentialKernel(theta=3.0)`.
    method
        How to infer: "eblime", "eblime-paper", "bayeslime", "lime", or an object.
    batch_size
        Images a model call; None finds the fastest while asking.
    progress
        None shows a bar on a terminal when the work takes longer than a second; True always, False
        never; or a function of (done, total).
    labels
        Names of the model's outputs, to print and to choose targets by: one for each, or a
        dictionary from column to name. None takes them from the model if it has `classes_` or a
        Hugging Face `config.id2label`.
    channels
        Where the channels of the image are: "auto", "first" or "last".

    Examples
    --------
    >>> import numpy as np
    >>> image = np.zeros((8, 8)); image[:4, :4] = 1.0
    >>> corner = lambda batch: batch[:, :4, :4].mean(axis=(1, 2))
    >>> grid = ("grid", {"rows": 2, "columns": 2})
    >>> e = ImageExplainer(corner, segmentation=grid, hide=0.0).explain(image)
    >>> abs(e.posterior.mean).round(2), e.exhaustive
    (array([1., 0., 0., 0.]), True)
    """

    model: Any
    segmentation: Segmentation = "slic"
    hide: Hide = "mean"
    n_masks: int = 1000
    design: Any = "bernoulli"
    kernel: str | Kernel | None = None
    method: str | Method = "eblime"
    batch_size: int | None = None
    progress: Progress = None
    labels: Labels | None = None
    channels: Channels = "auto"

    about = ("segmentation", "hide")

    def __post_init__(self) -> None:
        """Refuse settings that cannot work, before any image is seen."""
        check_choice("channels", self.channels, ("auto", "first", "last"))
        check_segmentation(self.segmentation)
        if isinstance(self.hide, str):
            check_choice("hide", self.hide, HIDES)
        if self.labels is None:
            object.__setattr__(self, "labels", output_names(self.model))
        self.check()
        object.__setattr__(self, "model", as_model(self.model))

    def __repr__(self) -> str:
        """The model and the settings that differ from the defaults."""
        return settings_repr(self)

    @property
    def domain(self) -> str:
        """The name of the domain: "image"."""
        return "image"

    def subject(self, x: Any) -> MaskedSubject:
        """Read and segment an image.

        An array (H, W), (H, W, C) or (C, H, W), a PIL image, or the path of an image file. PIL
        images and files are rotated as their EXIF data says, and become grey or RGB.
        """
        scene = read_image(
            x, segmentation=self.segmentation, hide=self.hide, channels=self.channels
        )
        if getattr(self.model, "scales_uint8", False):
            warn_unscaled(scene.shown, type(self.model).__name__)
        return MaskedSubject(scene=scene)
