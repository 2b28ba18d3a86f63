"""Explanations of images, with lime's names, settings and draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eblime._checks import check_count
from eblime._progress import progress_reporter
from eblime._types import FloatArray
from eblime.compat.lime._distances import (
    check_metric,
    describe_kernel,
    distances_to_first,
    exponential_kernel,
)
from eblime.compat.lime._image_result import ImageExplanation
from eblime.compat.lime._random import as_random_state
from eblime.compat.lime._record import Sample, top_classes
from eblime.compat.lime._result import fill
from eblime.compat.lime.lime_base import Asked, LimeBase, check_settings, fit_asked
from eblime.compat.lime.wrappers.scikit_image import SegmentationAlgorithm
from eblime.domains.image.scene import ImageScene
from eblime.domains.image.segmentation import three_channels
from eblime.protocols import Method

__all__ = ["ImageExplanation", "LimeImageExplainer"]


class LimeImageExplainer:
    """Explains predictions for images; the parameters are those of lime.

    Parameters
    ----------
    kernel_width, kernel
        Width of the kernel, and the kernel: a function (distances, kernel_width) -> weights.
    verbose
        Whether to print the intercept and both predictions of each fit.
    feature_selection
        "auto", "forward_selection", "highest_weights", "lasso_path" or "none".
    random_state
        Seed or `RandomState`; None is NumPy's global one.
    method
        "eblime" (default) gives posteriors, "lime" gives lime's numbers; any method of this
        library.

    Examples
    --------
    The model returns how bright an image is, and only its right half is:

    >>> import numpy as np
    >>> from eblime.compat.lime import LimeImageExplainer
    >>> image = np.zeros((8, 8, 3))
    >>> image[:, 4:] = 1.0
    >>> halves = lambda image: (np.arange(8) >= 4).astype(int) * np.ones((8, 1), dtype=int)
    >>> bright = lambda batch: np.column_stack([1 - batch.mean((1, 2, 3)), batch.mean((1, 2, 3))])
    >>> exp = LimeImageExplainer(random_state=0).explain_instance(
    ...     image, bright, hide_color=0, num_samples=50, segmentation_fn=halves
    ... )
    >>> superpixel, weight = exp.local_exp[1][0]
    >>> superpixel, round(weight, 1)
    (1, 0.5)
    """

    def __init__(
        self,
        kernel_width: float = 0.25,
        kernel: Callable[..., Any] | None = None,
        verbose: bool = False,
        feature_selection: str = "auto",
        random_state: Any = None,
        *,
        method: str | Method = "eblime",
    ) -> None:
        check_settings(1, 1, feature_selection)
        self.random_state = as_random_state(random_state)
        self.feature_selection = feature_selection
        kernel_fn = partial(kernel or exponential_kernel, kernel_width=float(kernel_width))
        self.base = LimeBase(kernel_fn, verbose, self.random_state, method=method)

    @property
    def method(self) -> str | Method:
        """How the linear model is fitted."""
        return self.base.method

    def explain_instance(
        self,
        image: Any,
        classifier_fn: Callable[[NDArray[Any]], Any],
        labels: Sequence[int] = (1,),
        hide_color: Any = None,
        top_labels: int | None = 5,
        num_features: int = 100000,
        num_samples: int = 1000,
        batch_size: int = 10,
        segmentation_fn: Callable[[NDArray[Any]], Any] | None = None,
        distance_metric: str | Callable[..., Any] = "cosine",
        model_regressor: Any = None,
        random_seed: int | None = None,
        progress_bar: bool = False,
    ) -> ImageExplanation:
        """Explain the prediction for an image.

        Parameters
        ----------
        image
            (H, W, C), or (H, W), which the model gets as three equal channels.
        classifier_fn
            From a batch of images to class probabilities, (n, classes).
        labels
            Columns of the model's output to explain, if `top_labels` is None.
        hide_color
            Colour of hidden superpixels; None is the mean colour of each.
        top_labels
            How many of the most likely classes to explain.
        num_features
            How many superpixels to list, at most.
        num_samples
            How many perturbed images to ask about, with the image itself.
        batch_size
            Images per model call.
        segmentation_fn
            From the image to the label of each pixel; None is quickshift, which sees the first
            three channels. The labels are renumbered 0 .. p - 1, so that every superpixel is
            hidden in some images.
        distance_metric
            How far a perturbed image is from the image, as a mask of superpixels.
        model_regressor
            A linear regressor of scikit-learn to use instead of `method`.
        random_seed
            For quickshift; since scikit-image 0.21 it has no effect.
        progress_bar
            Whether to show a progress bar.
        """
        check_settings(num_features, num_samples, self.feature_selection)
        check_count("batch_size", batch_size)
        pixels = _as_colour(image)
        if random_seed is None:
            random_seed = int(self.random_state.randint(0, high=1000))
        segments = _segments(pixels, segmentation_fn, random_seed)
        scene = _scene(pixels, segments, hide_color)
        check_metric(distance_metric, scene.n_features)
        more = {"progress_bar": True} if progress_bar else {}  # subclasses may not take it
        masks, scores = self.data_labels(
            pixels,
            scene.hidden,
            segments,
            classifier_fn,
            num_samples,
            batch_size=batch_size,
            **more,
        )
        result = ImageExplanation(pixels, segments)
        chosen = result._choose(scores[0], labels, top_labels)
        distances = distances_to_first(np.asarray(masks, dtype=float), distance_metric)
        asked = Asked(
            data=masks, scores=scores, distances=distances, labels=chosen, features=scene.features
        )
        answers, fits = fit_asked(
            self.base, asked, num_features, self.feature_selection, model_regressor
        )
        about = {
            "kernel": describe_kernel(self.base, distance_metric),
            "top_classes": top_classes(scores[0], None),
            "batch_size": batch_size,
        }
        sample = Sample.of(answers[0], scene, about)
        fill(result, dict(zip(chosen, fits, strict=True)), sample, scores, None)
        return result

    def data_labels(
        self,
        image: Any,
        fudged_image: Any,
        segments: Any,
        classifier_fn: Callable[[NDArray[Any]], Any],
        num_samples: int,
        batch_size: int = 10,
        progress_bar: bool = False,
    ) -> tuple[FloatArray, FloatArray]:
        """Masks of superpixels and what the model answers, (N, p) and (N, classes).

        `explain_instance` calls it, so that a subclass may draw or ask in its own way.
        """
        scene = ImageScene(
            shown=np.ascontiguousarray(image),
            hidden=np.ascontiguousarray(fudged_image),
            labels=_renumbered(segments),
            channel_axis=2,
        )
        masks = self._masks(num_samples, scene.n_features)
        return masks, _ask(scene, masks, classifier_fn, batch_size, progress_bar)

    def _masks(self, n: int, p: int) -> FloatArray:
        """Which superpixels each perturbed image shows: all in the first, half in the others."""
        masks = self.random_state.randint(0, 2, n * p).reshape(n, p).astype(np.float64)
        masks[0] = 1
        return masks


def _as_colour(image: Any) -> NDArray[Any]:
    """The image with a channel axis; a grey one gets three equal channels."""
    pixels = np.asarray(image)
    if pixels.ndim == 2:
        pixels = np.stack([pixels] * 3, axis=-1)
    if pixels.ndim != 3 or pixels.dtype.kind not in "buif":
        raise ValueError(
            "`image` must be numbers of shape (H, W, C) or (H, W); got shape "
            f"{pixels.shape} and dtype {pixels.dtype}."
        )
    return np.ascontiguousarray(pixels)


def _segments(
    image: NDArray[Any], function: Callable[[NDArray[Any]], Any] | None, seed: int
) -> NDArray[np.intp]:
    """The superpixel of each pixel, 0 .. p - 1."""
    if function is None:
        settings = {"max_dist": 200, "ratio": 0.2, "random_seed": seed}
        function = SegmentationAlgorithm("quickshift", kernel_size=4, **settings)
        found = np.asarray(function(three_channels(image)))
    else:
        found = np.asarray(function(image))
    if found.shape != image.shape[:2]:
        raise ValueError(
            f"`segmentation_fn` must return a label per pixel, shape {image.shape[:2]}; "
            f"got shape {found.shape}."
        )
    return _renumbered(found)


def _renumbered(labels: Any) -> NDArray[np.intp]:
    """The same superpixels, numbered 0 .. p - 1 in the order of their labels."""
    array = np.asarray(labels)
    return np.unique(array, return_inverse=True)[1].reshape(array.shape).astype(np.intp)


def _scene(image: NDArray[Any], segments: NDArray[np.intp], hide_color: Any) -> ImageScene:
    """The image and its hidden version; means are cut to whole numbers for whole numbers."""
    hidden = image.copy()
    if hide_color is None:
        order = np.argsort(segments, axis=None, kind="stable")
        pixels = image.reshape(-1, image.shape[2])
        ends = np.cumsum(np.bincount(segments.ravel()))
        for inside in np.split(order, ends[:-1]):
            hidden.reshape(pixels.shape)[inside] = [column.mean() for column in pixels[inside].T]
    else:
        hidden[:] = hide_color
    return ImageScene(shown=image, hidden=hidden, labels=segments, channel_axis=2)


def _ask(
    scene: ImageScene,
    masks: FloatArray,
    function: Callable[[NDArray[Any]], Any],
    batch_size: int,
    progress: bool,
) -> FloatArray:
    """The model's scores of all perturbed images, (N, classes)."""
    renderer, found = scene.renderer(), []
    with progress_reporter(progress, len(masks), unit="image") as report:
        for start in range(0, len(masks), batch_size):
            chosen = masks[start : start + batch_size]
            batch = scene.batch(len(chosen))
            renderer.render(chosen, batch)
            scores = np.asarray(function(batch), dtype=np.float64)
            if scores.ndim != 2 or len(scores) != len(chosen):
                raise ValueError(
                    f"`classifier_fn` must return scores of shape ({len(chosen)}, classes); "
                    f"got shape {scores.shape}."
                )
            found.append(scores)
            report(start + len(chosen))
    return np.concatenate(found)
