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
from eblime.core.spectrum import effective_size
from eblime.designs.masks import as_design, is_exhaustive
from eblime.domains.hiding import HIDES, Hide
from eblime.domains.image import Channels, read_image
from eblime.domains.segmentation import Segmentation, check_segmentation
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
        _check_targets(targets, self.labels)
        masks = _designed(as_design(self.design, self.n_masks, p)(generator, self.n_masks, p), p)
        weights = check_weights(as_kernel(self.kernel)(masks), len(masks))
        counting = min(int(np.count_nonzero(weights)), round(effective_size(weights)))
        if counting < p:
            warnings.warn(
                f"There are more features ({p}) than masks that count ({counting}): expect wide "
                "intervals. Ask for more masks, cut the input into fewer features, or take a "
                "wider kernel.",
                stacklevel=4,
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
            "seed": int(rng) if isinstance(rng, (int, np.integer)) else rng and "a generator",
            "model_calls": asked.calls,
            "batch_size": int(asked.batch_size),
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

    def __post_init__(self) -> None:
        """Refuse settings that cannot work, before any image is seen."""
        check_count("n_masks", self.n_masks)
        if self.batch_size is not None:
            check_count("batch_size", self.batch_size)
        check_choice("channels", self.channels, ("auto", "first", "last"))
        check_segmentation(self.segmentation)
        if isinstance(self.hide, str):
            check_choice("hide", self.hide, HIDES)
        if not (isinstance(self.progress, bool) or callable(self.progress)):
            raise TypeError(f"`progress` must be True, False or a function; got {self.progress!r}.")
        _check_labels(self.labels)
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


def _designed(masks: Any, p: int) -> FloatArray:
    """Masks of a design, which may be the user's: (N, p) zeros and ones, not to be written to."""
    checked = check_masks(masks).copy()
    if checked.shape[1] != p or not np.isin(checked, (0, 1)).all():
        raise ValueError(
            f"`design` must return zeros and ones of shape (N, {p}); got shape {checked.shape} "
            f"with values from {checked.min():g} to {checked.max():g}."
        )
    checked.flags.writeable = False
    return checked


def _check_labels(labels: Any) -> None:
    """Refuse labels that are no names."""
    if labels is None:
        return
    names = list(labels.values()) if isinstance(labels, Mapping) else labels
    keys = list(labels) if isinstance(labels, Mapping) else []
    if (
        isinstance(labels, str)
        or not isinstance(names, (list, tuple))
        or not all(isinstance(name, str) for name in names)
        or not all(isinstance(key, (int, np.integer)) for key in keys)
    ):
        raise TypeError(
            "`labels` must be a list of names, or a dictionary from column number to name; "
            f"got {labels!r:.80}."
        )


def _check_targets(targets: Any, labels: Labels | None) -> None:
    """Refuse what no model can have as a target, before it is asked anything."""
    if isinstance(targets, str) or not isinstance(targets, (int, np.integer, list, tuple)):
        raise TypeError(f"`targets` must be a number or a list of targets; got {targets!r}.")
    if isinstance(targets, (list, tuple)):
        for target in targets:
            _column(target, 1 << 62, labels)


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
    if target < 0:
        raise ValueError(f"`target` must be >= 0; got {target}.")
    if target >= outputs:
        raise ValueError(
            f"`target` must be < {outputs}, the number of outputs of the model; got {target}."
        )
    return int(target)


def _column_of_name(name: str, labels: Labels | None) -> int:
    """The column of that name; names that hold the word asked for are suggested."""
    if labels is None:
        raise ValueError(
            f"`target` must be a number where the explainer has no `labels`; got {name!r}."
        )
    named = labels.items() if isinstance(labels, Mapping) else enumerate(labels)
    columns = [(int(column), label) for column, label in named]
    found = [column for column, label in columns if label == name]
    if len(found) > 1:
        raise ValueError(f"`target` {name!r} names several outputs, {found}; give the number.")
    if not found:
        near = [label for _, label in columns if name.lower() in label.lower()][:5]
        hint = f" Did you mean {', '.join(map(repr, near))}?" if near else ""
        raise ValueError(f"`target` must be among `labels`; got {name!r}.{hint}")
    return found[0]


def _name(column: int, outputs: int, labels: Labels | None) -> str:
    """What people call an output."""
    plain = "output" if outputs == 1 else f"output {column}"
    if labels is None:
        return plain
    return str(labels.get(column, plain) if isinstance(labels, Mapping) else labels[column])
