"""The assembly: scene, masks, scores, posterior, in the order of the paper."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from eblime._checks import check_choice, check_count, check_masks, check_weights
from eblime._types import FloatArray, RNGLike
from eblime._version import __version__
from eblime.designs.masks import as_design, is_exhaustive
from eblime.domains.hiding import Hide
from eblime.domains.image import Channels, read_image
from eblime.domains.segmentation import Segmentation
from eblime.explanation import Explanation
from eblime.kernels import as_kernel
from eblime.methods.regression import as_method
from eblime.models.adapt import as_model
from eblime.protocols import Design, Kernel, Method, Scene
from eblime.query import Progress, ask, scorer_of

__all__ = ["ImageExplainer"]

Target = int | str | None
Labels = Sequence[str] | Mapping[int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inquiry:
    """How any scene is asked about, weighed and inferred: what every explainer shares."""

    model: Any
    n_masks: int
    design: str | Design
    kernel: str | Kernel | None
    method: str | Method
    batch_size: int | None
    progress: Progress
    labels: Labels | None

    def explain(self, scene: Scene, targets: Any, rng: RNGLike) -> dict[int, Explanation]:
        """Explain one scene: section 2 of the paper perturbs, section 3 infers."""
        start = time.perf_counter()
        generator = np.random.default_rng(rng)
        p = scene.n_features
        masks = check_masks(as_design(self.design, self.n_masks, p)(generator, self.n_masks, p))
        weights = check_weights(as_kernel(self.kernel)(masks), len(masks))
        if len(masks) < p:
            warnings.warn(
                f"There are more features ({p}) than masks ({len(masks)}): expect wide intervals. "
                "Ask for more masks or cut the input into fewer features.",
                stacklevel=3,
            )
        with scorer_of(as_model(self.model), scene) as scorer:
            asked = ask(
                scorer,
                masks,
                lambda original: _columns(targets, original, self.labels),
                batch_size=self.batch_size,
                progress=self.progress,
            )
        original = asked.original
        method = as_method(self.method)
        posteriors = method.fit(generator, masks, asked.scores, weights)
        provenance = {
            "method": repr(method),
            "design": self.design if isinstance(self.design, str) else repr(self.design),
            "kernel": repr(as_kernel(self.kernel)),
            "seed": rng if rng is None or isinstance(rng, int) else "a generator of the caller's",
            "model_calls": asked.calls,
            "batch_size": asked.batch_size,
            "seconds": time.perf_counter() - start,
            "versions": {
                "eblime": __version__,
                "numpy": np.__version__,
                "scipy": scipy.__version__,
            },
        }
        return {
            column: Explanation(
                posterior=posterior,
                scene=scene,
                target=column,
                label=_name(column, len(original), self.labels),
                prediction=float(original[column]),
                masks=masks,
                scores=scores,
                weights=weights,
                exhaustive=is_exhaustive(masks),
                provenance=provenance,
            )
            for column, scores, posterior in zip(
                asked.columns, asked.scores.T, posteriors, strict=True
            )
        }


@dataclass(frozen=True, slots=True)
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

    def __post_init__(self) -> None:
        """Refuse settings that cannot work, before any image is seen."""
        check_count("n_masks", self.n_masks)
        if self.batch_size is not None:
            check_count("batch_size", self.batch_size)
        check_choice("channels", self.channels, ("auto", "first", "last"))
        as_method(self.method)
        as_kernel(self.kernel)
        as_design(self.design, self.n_masks, 2)
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
        inquiry = Inquiry(
            model=self.model,
            n_masks=self.n_masks,
            design=self.design,
            kernel=self.kernel,
            method=self.method,
            batch_size=self.batch_size,
            progress=self.progress,
            labels=self.labels,
        )
        return inquiry.explain(scene, targets, rng)


def _columns(targets: Any, original: FloatArray, labels: Labels | None) -> list[int]:
    """Columns of the model's output: the k highest for a number, else those listed."""
    outputs = len(original)
    if labels is not None and not isinstance(labels, Mapping) and len(labels) != outputs:
        raise ValueError(
            f"`labels` must name each of the model's {outputs} outputs; got {len(labels)} names."
        )
    if isinstance(targets, (int, np.integer)):
        check_count("targets", int(targets))
        order = np.argsort(-original, kind="stable")
        return [int(column) for column in order[: int(targets)]]
    chosen = [_column(target, outputs, labels) for target in targets]
    if not chosen or len(set(chosen)) < len(chosen):
        raise ValueError(f"`targets` must list at least one output, each once; got {targets!r}.")
    return chosen


def _column(target: Any, outputs: int, labels: Labels | None) -> int:
    """One column, by number or by name."""
    if isinstance(target, str):
        target = _column_of_name(target, labels)
    if isinstance(target, bool) or not isinstance(target, (int, np.integer)):
        raise TypeError(f"`target` must be a whole number, a name or None; got {target!r}.")
    if not 0 <= target < outputs:
        raise ValueError(
            f"`target` must be >= 0 and < {outputs}, the number of outputs of the model; "
            f"got {target}."
        )
    return int(target)


def _column_of_name(name: str, labels: Labels | None) -> int:
    """The column of that name; names that hold the word asked for are suggested."""
    if labels is None:
        raise ValueError(
            f"`target` must be a number where the explainer has no `labels`; got {name!r}."
        )
    named = labels.items() if isinstance(labels, Mapping) else enumerate(labels)
    columns = {label: column for column, label in named}
    if name not in columns:
        near = [label for label in columns if name.lower() in label.lower()][:5]
        hint = f" Did you mean {', '.join(map(repr, near))}?" if near else ""
        raise ValueError(f"`target` must be among `labels`; got {name!r}.{hint}")
    return columns[name]


def _name(column: int, outputs: int, labels: Labels | None) -> str:
    """What people call an output."""
    plain = "output" if outputs == 1 else f"output {column}"
    if labels is None:
        return plain
    return str(labels.get(column, plain) if isinstance(labels, Mapping) else labels[column])
