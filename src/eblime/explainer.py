"""The explainers: one input read into a scene, and the inquiry that all of them share."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from eblime._checks import check_choice
from eblime._types import RNGLike
from eblime.domains.background import Background, TableSettings, prepare
from eblime.domains.frames import as_frame
from eblime.domains.hiding import HIDES, Hide
from eblime.domains.image import Channels, read_image
from eblime.domains.segmentation import Segmentation, check_segmentation
from eblime.domains.sparse_frame import SparseFrame
from eblime.domains.tabular import PERTURB, REPRESENTATIONS, open_row
from eblime.domains.tabular_user import UserPerturb
from eblime.domains.text import Tokens, read_text
from eblime.explanation import Explanation
from eblime.inquiry import Inquiry, Labels, Target
from eblime.models.adapt import as_model, output_names
from eblime.protocols import Design, Kernel, Method
from eblime.query import Progress

__all__ = ["ImageExplainer", "TabularExplainer", "TextExplainer"]


@dataclass(frozen=True, slots=True, eq=False)
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
        True for a bar, or a function that is told (done, total).
    labels
        Names of the model's outputs, to print and to choose targets by: one for each, or a
        dictionary from column to name.
    channels
        Where the channels of the image are: "auto", "first" or "last".

    Examples
    --------
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
    progress: Progress = False
    labels: Labels | None = None
    channels: Channels = "auto"
    _about: ClassVar = ("segmentation", "hide")

    def __post_init__(self) -> None:
        """Refuse settings that cannot work, before any image is seen."""
        check_choice("channels", self.channels, ("auto", "first", "last"))
        check_segmentation(self.segmentation)
        if isinstance(self.hide, str):
            check_choice("hide", self.hide, HIDES)
        _inquiry(self).check()
        object.__setattr__(self, "model", as_model(self.model))

    def explain(self, image: Any, target: Target = None, rng: RNGLike = 0) -> Explanation:
        """Explain one output of the model for an image.

        Parameters
        ----------
        image
            An array (H, W), (H, W, C) or (C, H, W), a PIL image, or the path of an image file.
        target
            Column of the model's output, or its name among `labels`; None is the highest.
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
        scene = read_image(
            image, segmentation=self.segmentation, hide=self.hide, channels=self.channels
        )
        return _inquiry(self).explain(scene, targets, rng)


@dataclass(frozen=True, slots=True, eq=False)
class TabularExplainer:
    """Explains what a model says of a row of a table, by its columns.

    Parameters
    ----------
    model
        Anything that scores rows: a scikit-learn pipeline, a gradient booster, a function, ... It
        is asked with tables of the background's kind: same columns, order and dtypes.
    background
        Rows that say what is usual, such as the training data: a pandas or polars frame, an array
        or a sparse matrix (whose features are the columns where the row is not zero).
    categorical
        Columns of numbers that are really categories, by name or number. Strings, booleans and
        categories are known by their dtype.
    representation
        "binary": is the feature in the same bin as the row's? "continuous": how far a number is
        from its mean, in standard deviations; categories stay binary.
    bins
        "quartile", "decile", "entropy" (needs `background_labels`), a list of edges for all columns
        of numbers, or a dictionary from column to edges or name.
    perturb
        How other values are drawn: "bins", each feature from the background by itself; "normal",
        the same with normals inside the bins, as lime does; "rows", whole rows of the background,
        which keeps correlations; or a function of (rng, n, row) that returns n rows.
    groups
        Columns that move together as one feature, such as dummies: {"job": ["job_a", "job_b"]}.
    around
        With "continuous": sample around the row (True) or around the mean, as lime does (False).
    names
        Names of the columns, where the background is an array.
    background_labels
        A label for each row of the background, for entropy bins.
    n_masks, kernel, method, batch_size, progress, labels
        As for `ImageExplainer`; the names of a classifier's classes are taken from it.
    design
        None lets chance decide which features stay in their bin, as lime does (but "bernoulli" for
        sparse matrices); a name or function says which are hidden, and those that are not keep the
        row's own values.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> people = np.column_stack([rng.integers(18, 80, 500), rng.random(500)])
    >>> older = lambda rows: (rows[:, 0] > 40).astype(float)
    >>> e = TabularExplainer(older, people, names=["age", "luck"]).explain([25, 0.5])
    >>> print(e.features[0], e.posterior.mean[0].round(1))
    age <= 34 -0.9
    """

    model: Any
    background: Any
    categorical: Sequence[str | int] | None = None
    representation: str = "binary"
    bins: str | Sequence[float] | Mapping[str, Any] = "quartile"
    perturb: str | UserPerturb = "bins"
    groups: Mapping[str, Sequence[str | int]] | None = None
    around: bool = True
    names: Sequence[str] | None = None
    background_labels: Any = None
    n_masks: int = 1000
    design: str | Design | None = None
    kernel: str | Kernel | None = None
    method: str | Method = "eblime"
    batch_size: int | None = None
    progress: Progress = False
    labels: Labels | None = None
    _about: ClassVar = ("representation", "bins", "perturb")
    _settings: TableSettings = field(init=False, repr=False)
    _table: Background | SparseFrame = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Refuse settings that cannot work, and cut the background into bins, once."""
        check_choice("representation", self.representation, REPRESENTATIONS)
        if isinstance(self.perturb, str):
            check_choice("perturb", self.perturb, PERTURB)
        elif not callable(self.perturb):
            raise TypeError(f"`perturb` must be a name or a function; got {self.perturb!r}.")
        if self.design is not None and (
            self.representation == "continuous" or not isinstance(self.perturb, str)
        ):
            raise ValueError(
                "`design` must be None with representation='continuous' or a function as "
                "`perturb`: there chance decides."
            )
        if self.labels is None:
            object.__setattr__(self, "labels", output_names(self.model))
        _inquiry(self).check()
        known = None if self.background_labels is None else np.asarray(self.background_labels)
        settings = TableSettings(
            categorical=self.categorical, bins=self.bins, groups=self.groups, labels=known
        )
        frame = as_frame(self.background, self.names)
        if isinstance(frame, SparseFrame) and not isinstance(self.perturb, str):
            raise TypeError("`perturb` must be a name where the background is a sparse matrix.")
        if isinstance(frame, SparseFrame) and self.design is None:
            binary = self.representation == "binary"  # what is rarely not zero would not be seen
            object.__setattr__(self, "design", "bernoulli" if binary else None)
        table = frame if isinstance(frame, SparseFrame) else prepare(frame, settings)
        object.__setattr__(self, "_settings", settings)
        object.__setattr__(self, "_table", table)
        object.__setattr__(self, "model", as_model(self.model))

    def explain(self, row: Any, target: Target = None, rng: RNGLike = 0) -> Explanation:
        """Explain one output of the model for a row.

        Parameters
        ----------
        row
            A dictionary, a pandas series, a frame of one row, or values in the columns' order.
        target
            Column of the model's output, or its name; None is the highest.
        rng
            Seed or generator: the same seed gives the same rows and the same answer.
        """
        targets = 1 if target is None else [target]
        return next(iter(self._inquire(row, targets, rng).values()))

    def explain_targets(
        self, row: Any, targets: int | Sequence[int | str] = 3, rng: RNGLike = 0
    ) -> dict[int, Explanation]:
        """Explain several outputs from one set of model calls: the k highest, or those listed."""
        return self._inquire(row, targets, rng)

    def _inquire(self, row: Any, targets: Any, rng: RNGLike) -> dict[int, Explanation]:
        source = open_row(
            row,
            self._table,
            self._settings,
            representation=self.representation,
            around=self.around,
            perturb=self.perturb,
        )
        return _inquiry(self).explain(source, targets, rng)


@dataclass(frozen=True, slots=True, eq=False)
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
        A text of more features than that is cut into sentences instead, with a warning.
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
    progress: Progress = False
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
        _inquiry(self).check()
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
        scene = read_text(text, tokens=self.tokens, bag=self.bag, hide=self.hide, most=self.most)
        return _inquiry(self).explain(scene, targets, rng)


def _inquiry(explainer: ImageExplainer | TabularExplainer | TextExplainer) -> Inquiry:
    """The settings that every explainer has."""
    return Inquiry(
        model=explainer.model,
        n_masks=explainer.n_masks,
        design=explainer.design,
        kernel=explainer.kernel,
        method=explainer.method,
        batch_size=explainer.batch_size,
        progress=explainer.progress,
        labels=explainer.labels,
        about={name: getattr(explainer, name) for name in explainer._about},
    )
