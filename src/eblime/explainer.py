"""The explainers: one input read into a scene, and the inquiry that all of them share."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from eblime._checks import check_choice
from eblime._repr import settings_repr
from eblime._types import RNGLike
from eblime.domains.hiding import HIDES, Hide
from eblime.domains.image import Channels, ImageScene, read_image, warn_unscaled
from eblime.domains.segmentation import Segmentation, check_segmentation
from eblime.domains.text import TextScene, Tokens, read_text
from eblime.explainer_table import TabularExplainer
from eblime.explanation import Explanation
from eblime.inquiry import Inquiry, inquiry_of
from eblime.models.adapt import as_model, output_names
from eblime.protocols import Design, Kernel, Method
from eblime.query import Progress
from eblime.targets import Labels, Target

__all__ = ["ImageExplainer", "TabularExplainer", "TextExplainer"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ImageExplainer:
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
    design: str | Design = "bernoulli"
    kernel: str | Kernel | None = None
    method: str | Method = "eblime"
    batch_size: int | None = None
    progress: Progress = None
    labels: Labels | None = None
    channels: Channels = "auto"
    _about: ClassVar = ("segmentation", "hide")

    def __post_init__(self) -> None:
        """Refuse settings that cannot work, before any image is seen."""
        check_choice("channels", self.channels, ("auto", "first", "last"))
        check_segmentation(self.segmentation)
        if isinstance(self.hide, str):
            check_choice("hide", self.hide, HIDES)
        if self.labels is None:
            object.__setattr__(self, "labels", output_names(self.model))
        inquiry_of(self).check()
        object.__setattr__(self, "model", as_model(self.model))

    def explain(self, image: Any, target: Target = None, rng: RNGLike = 0) -> Explanation:
        """Explain one output of the model for an image.

        Parameters
        ----------
        image
            An array (H, W), (H, W, C) or (C, H, W), a PIL image, or the path of an image file. PIL
            images and files are rotated as their EXIF data says, and become grey or RGB.
        target
            Column number of the model's output, or its label as a string; None is the highest. A
            number that is one output's column and another output's label is refused.
        rng
            Seed or generator: the same seed gives the same masks and the same answer.
        """
        targets = 1 if target is None else [target]
        return next(iter(self._inquire(image, targets, rng).values()))

    def explain_targets(
        self, image: Any, targets: int | Sequence[int | str] = 3, rng: RNGLike = 0
    ) -> dict[int, Explanation]:
        """Explain several outputs from one set of model calls: the k highest, or those listed."""
        return self._inquire(image, targets, rng)

    def _inquire(self, image: Any, targets: Any, rng: RNGLike) -> dict[int, Explanation]:
        return self.inquiry.explain(self.scene(image), targets, rng)

    def __repr__(self) -> str:
        """The model and the settings that differ from the defaults."""
        return settings_repr(self)

    @property
    def inquiry(self) -> Inquiry:
        """What this explainer shares with the others."""
        return inquiry_of(self)

    def scene(self, image: Any) -> ImageScene:
        """An image, read and cut."""
        found = read_image(
            image, segmentation=self.segmentation, hide=self.hide, channels=self.channels
        )
        if getattr(self.model, "scales_uint8", False):
            warn_unscaled(found.shown, type(self.model).__name__)
        return found


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TextExplainer:
    """Explains what a model says of a text, by its words, sentences or characters.

    Parameters
    ----------
    model
        Anything that scores a list of texts: a scikit-learn pipeline, a Hugging Face pipeline, a
        function.
    tokens
        "word", "sentence", "char", a regular expression that matches tokens, or a function from
        the text to tokens, as strings in their order or as (start, end).
    bag
        All occurrences of a token are one feature (as in lime); otherwise each is one.
    hide
        What stands for a hidden token, such as "[MASK]"; nothing by default.
    most
        A text of more features than that is cut into sentences instead, or into chunks of about 20
        tokens where it has no usable sentences, with a warning.
    n_masks, design, kernel, method, batch_size, progress, labels
        As for `ImageExplainer`; the design and the kernel are lime's for texts.

    Examples
    --------
    >>> shouts = lambda texts: [text.count("!") / 3 + ("good" in text) for text in texts]
    >>> e = TextExplainer(shouts).explain("a good, good film")
    >>> print(e.features[1], e.posterior.mean[1].round(2))
    word 'good' x2 1.0
    """

    model: Any
    tokens: Tokens = "word"
    bag: bool = True
    hide: str = ""
    most: int | None = 500
    n_masks: int = 1000
    design: str | Design = "sizes"
    kernel: str | Kernel | None = "cosine"
    method: str | Method = "eblime"
    batch_size: int | None = None
    progress: Progress = None
    labels: Labels | None = None
    _about: ClassVar = ("tokens", "bag", "hide")

    def __post_init__(self) -> None:
        """Refuse settings that cannot work, before any text is seen."""
        if not isinstance(self.hide, str):
            raise TypeError(f"`hide` must be a string; got {self.hide!r}.")
        if not (isinstance(self.tokens, (str, re.Pattern)) or callable(self.tokens)):
            raise TypeError(
                f"`tokens` must be a word, a regular expression or a function; got {self.tokens!r}."
            )
        if self.labels is None:
            object.__setattr__(self, "labels", output_names(self.model))
        inquiry_of(self).check()
        object.__setattr__(self, "model", as_model(self.model))

    def explain(self, text: str, target: Target = None, rng: RNGLike = 0) -> Explanation:
        """Explain one output of the model for a text; `target` and `rng` as for images."""
        targets = 1 if target is None else [target]
        return next(iter(self._inquire(text, targets, rng).values()))

    def explain_targets(
        self, text: str, targets: int | Sequence[int | str] = 3, rng: RNGLike = 0
    ) -> dict[int, Explanation]:
        """Explain several outputs from one set of model calls: the k highest, or those listed."""
        return self._inquire(text, targets, rng)

    def _inquire(self, text: str, targets: Any, rng: RNGLike) -> dict[int, Explanation]:
        return self.inquiry.explain(self.scene(text), targets, rng)

    def __repr__(self) -> str:
        """The model and the settings that differ from the defaults."""
        return settings_repr(self)

    @property
    def inquiry(self) -> Inquiry:
        """What this explainer shares with the others."""
        return inquiry_of(self)

    def scene(self, text: str) -> TextScene:
        """A text, read and cut."""
        return read_text(text, tokens=self.tokens, bag=self.bag, hide=self.hide, most=self.most)
