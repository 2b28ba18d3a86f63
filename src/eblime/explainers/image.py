"""`ImageExplainer`: images, by superpixels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from eblime._checks import check_text
from eblime._repr import describe
from eblime._types import FloatArray
from eblime._warn import warn_user
from eblime.domains.arrays import Channels, Hide, Segmentation, check_spacing, usual_hide
from eblime.domains.image import photo
from eblime.domains.image.scene import SEGMENTER, as_pixels, read_image
from eblime.domains.masked import MaskedSubject
from eblime.engine.calls import Caller, model_error
from eblime.engine.explain import Source, source_of
from eblime.engine.settings import LoopSettings
from eblime.engine.targets import class_number
from eblime.explainers.base import BaseExplainer, spend
from eblime.models.adapt import with_reader
from eblime.models.conversion import on_cpu
from eblime.results.explanation import Explanation
from eblime.scores import Reader, Score, restore_score, score_record, scores_of


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ImageExplainer(BaseExplainer):
    """Explains a model's prediction for an image, by superpixels.

    Parameters
    ----------
    model
        Anything that scores a batch of images: a function, a scikit-learn-like object, a
        `torch.nn.Module`, an ONNX file, ... (see `as_model`). It gets images of the shape, layout
        and dtype of the explained one.
    segmentation
        How to cut the image: "slic", "quickshift", "felzenszwalb" or "grid"; one of them with
        parameters, ("slic", {"n_segments": 100}); labels, (H, W); or a function that returns them.
        Photos of more than 512 pixels are cut on a smaller copy.
    hide
        What a hidden superpixel shows: its "mean" colour, a "blur", a number or a colour in the
        image's range, another image, or a function of the image, (H, W, C), that returns one.
        "auto" is a blur for grey images, and the mean for those in colour.
    channels
        The channel axis of an array with three axes: "first", "last", or "auto", by its shape.
    bits, window
        How to scale pixels to floats in [0, 1], for images of more than 8 bits: `bits=12` divides
        by 4095, and `window=(low, high)` turns these two numbers into 0 and 1 and clips others.
        With None, a network gets the grey pixels of a 16-bit file divided by 65535, and uint8
        divided by 255; other whole numbers are refused. A function gets the pixels as they are.
    spacing, unit
        Size of a pixel, or its height and width, and the unit. Results then have positions and
        areas in this unit as well as in pixels.
    n_masks, design, kernel, method, progress, labels, calls, cache
        See `eblime.explainers.base.BaseExplainer`.

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> image = np.zeros((8, 8))
    >>> image[:4, :4] = 1.0
    >>> corner = lambda batch: batch[:, :4, :4].mean(axis=(1, 2))
    >>> grid = ("grid", {"rows": 2, "columns": 2})
    >>> e = eblime.ImageExplainer(corner, segmentation=grid, hide=0.0).explain(image)
    >>> abs(e.posterior.mean).round(2), e.exhaustive
    (array([1., 0., 0., 0.]), True)
    """

    segmentation: Segmentation = "slic"
    hide: Hide = "auto"
    channels: Channels = "auto"
    bits: int | None = None
    window: tuple[float, float] | None = None
    spacing: float | Sequence[float] | None = None
    unit: str = "mm"

    domain = "image"
    about = ("segmentation", "hide")

    def __post_init__(self) -> None:
        SEGMENTER.check(self.segmentation, self.hide, self.channels)
        check_spacing(self.spacing, 2)
        check_text("unit", self.unit)
        photo.check_scaling(self.bits, self.window)
        self._make_loop()

    def subject(self, x: Any) -> MaskedSubject:
        """Read and segment an image.

        Parameters
        ----------
        x
            An array (H, W), (H, W, C) or (C, H, W), a PIL image, or the path of an image file. PIL
            images and files are rotated as their EXIF data says, and become grey or RGB.
        """
        cut = {name: value for name, value in self.own.items() if name not in ("bits", "window")}
        return MaskedSubject(scene=read_image(self._picture(x), **cut))

    def _picture(self, x: Any) -> photo.Picture:
        """The pixels of an image, scaled as the model takes them."""
        if isinstance(x, photo.Picture):
            return x
        from_file = not isinstance(x, np.ndarray) and photo.is_photo(x)
        opened = photo.open_photo(x) if from_file else x
        pixels, network = as_pixels(opened), getattr(self.model, "scales_uint8", False)
        deep = pixels.dtype != np.uint8 and pixels.dtype.kind in ("iuf" if from_file else "iu")
        if self.bits or self.window or (network and deep):
            depth = opened.info.get("bits") if from_file and self.window is None else None
            bits = self.bits or depth
            pixels, words = photo.scale_pixels(pixels, bits, self.window, from_file=from_file)
            return photo.Picture(pixels=pixels, about={"pixels": words})
        if network:
            _warn_unscaled(self.model, pixels)
        return photo.Picture(pixels=pixels, about={})

    def prepare(
        self, x: Any, targets: Any, settings: LoopSettings
    ) -> tuple[LoopSettings, MaskedSubject, Any]:
        """Read an image; boxes and regions among the targets become the outputs of the model."""
        picture = self._picture(x)
        subject, scores = self.subject(picture), scores_of(targets, settings.labels)
        axis, shown = subject.scene.channel_axis, subject.scene.shown
        stacked = shown[..., None] if axis is None else np.moveaxis(shown, axis, -1)
        hide = describe(usual_hide(stacked, "image", self.hide))
        settings = replace(settings, about={**settings.about, **picture.about, "hide": hide})
        if not scores:
            return settings, subject, targets
        settings, scene = _with_scores(settings, subject.scene, scores)
        return settings, replace(subject, scene=scene), list(range(len(scores)))

    def source_of(self, explanation: Explanation, x: object) -> Source:
        """Where a loaded explanation of the image comes from; for `Explanation.more`."""
        scene: Any = explanation.scene
        targets = [restore_score(score) for score in scene.scores]
        settings, subject, _ = self.prepare(x, targets, self.loop)
        return source_of(settings, subject, explanation)


def _with_scores(
    settings: LoopSettings, scene: Any, scores: Sequence[Score]
) -> tuple[LoopSettings, object]:
    """Settings whose model returns the scores of boxes and regions, and the scene with them.

    The model is asked about the input once: its answer has the form of the output, and the boxes,
    regions and activations that the user has not given.
    """
    shape = scene.labels.shape
    for score in scores:
        score.check(shape)
    find = partial(class_number, labels=settings.labels)
    output = _output_of(settings, scene.shown)
    reader = Reader(*zip(*(score.settle(output, shape, find) for score in scores), strict=True))
    for score, value in zip(reader.scores, np.ravel(on_cpu(reader(output, 1))), strict=True):
        if value == 0:
            warn_user(f"The model finds no {score.name} in the input: the score is 0.")
    settings = replace(
        spend(settings, 1),
        model=with_reader(settings.model, reader),
        labels=[score.name for score in reader.scores],
        about={**settings.about, "score": "; ".join(score.words for score in reader.scores)},
    )
    return settings, replace(scene, scores=[*map(score_record, reader.scores)])


def _output_of(settings: LoopSettings, image: np.ndarray) -> Any:
    """All that the model returns for an image, in the model's own form."""
    found: list[Any] = []

    def keep(output: Any, n: int) -> FloatArray:
        found[:] = [output]
        return np.zeros((n, 1))

    try:
        Caller(with_reader(settings.model, keep), settings.calls).answer(image[None].copy(), 1)
    except Exception as error:
        raise model_error(1, error) from error
    return found[0]


def _warn_unscaled(model: object, pixels: np.ndarray) -> None:
    """Warn about an image that looks like 0 to 255 if the model, which scales only uint8 images."""
    if pixels.dtype in (np.uint8, bool):
        return
    low, high = pixels.min(), pixels.max()
    if low >= 0 and high > 2:  # standardised images have negative numbers
        warn_user(
            f"{type(model).__name__} divides uint8 images by 255 and takes others as they are; "
            f"this image of {pixels.dtype} has numbers from {low:g} to {high:g}. If the network "
            "expects 0 to 1, pass the image as uint8, or divide it by the largest possible number."
        )
