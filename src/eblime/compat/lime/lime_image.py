"""Explanations of images, with lime's names, settings and draws."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from eblime._checks import check_count
from eblime._progress import progress_reporter
from eblime._types import FloatArray
from eblime.compat.lime._explain import LimeExplainer
from eblime.compat.lime.explanation import Result
from eblime.compat.lime.wrappers.scikit_image import SegmentationAlgorithm
from eblime.domains.arrays import three_channels
from eblime.domains.image.scene import SEGMENTER, ImageScene, as_pixels
from eblime.protocols import Method

Classifier = Callable[[np.ndarray], ArrayLike]


@dataclass(eq=False, repr=False)
class ImageExplanation(Result):
    """The explanation of an image, (H, W, C); `segments` has the superpixel of each pixel.

    Examples
    --------
    `LimeImageExplainer` returns one. Programs can also fill one in themselves:

    >>> import numpy as np
    >>> from eblime.compat.lime.lime_image import ImageExplanation
    >>> exp = ImageExplanation(np.ones((1, 4, 3)), np.array([[0, 0, 1, 1]]))
    >>> exp.local_exp[1] = [(1, 0.5), (0, -0.1)]
    >>> exp.get_image_and_mask(1)[1]
    array([[0, 0, 1, 1]])
    """

    image: np.ndarray
    segments: np.ndarray

    def get_image_and_mask(
        self,
        label: int,
        positive_only: bool = True,
        negative_only: bool = False,
        hide_rest: bool = False,
        num_features: int = 5,
        min_weight: float = 0.0,
    ) -> tuple[np.ndarray, np.ndarray]:
        """The image and a mask of its most important superpixels, (H, W, C) and (H, W).

        With neither `positive_only` nor `negative_only`, superpixels that raise the score are
        painted green and have 1 in the mask, the others red and -1.
        """
        listed, sign = self._weights_of(label), int(positive_only) - int(negative_only)
        if positive_only and negative_only:
            raise ValueError("`positive_only` and `negative_only` must not both be True.")
        picture = np.zeros_like(self.image) if hide_rest else self.image.copy()
        mask = np.zeros(self.segments.shape, self.segments.dtype)
        if sign:
            listed = [(j, weight) for j, weight in listed if sign * weight > max(min_weight, 0)]
        for j, weight in listed[:num_features]:
            inside = (self.segments == j) & (abs(weight) >= min_weight)
            picture[inside], mask[inside] = self.image[inside], 1
            if not sign:
                mask[inside] = -1 if weight < 0 else 1
                picture[inside, 0 if weight < 0 else 1] = np.max(self.image)
        return picture, mask


@dataclass(eq=False)
class LimeImageExplainer(LimeExplainer):
    """Explains predictions for images; parameters are those of lime.

    Besides them, `method` is how the linear model is fitted: "eblime" (default) gives posteriors,
    "lime" gives lime's numbers; any method of this library.

    Examples
    --------
    >>> import numpy as np
    >>> from eblime.compat.lime import LimeImageExplainer
    >>> image = np.arange(8)[:, None] // 4 * np.ones((3, 8, 1))  # only the right half is bright
    >>> settings = {"hide_color": 0, "segmentation_fn": lambda image: image[..., 0].astype(int)}
    >>> bright = lambda batch: batch.mean(axis=(1, 2, 3))[:, None]
    >>> exp = LimeImageExplainer(random_state=0).explain_instance(image, bright, **settings)
    >>> [(superpixel, round(weight, 1) + 0.0) for superpixel, weight in exp.local_exp[0]]
    [(1, 0.5), (0, 0.0)]
    """

    kernel_width: float = 0.25
    kernel: Callable[..., FloatArray] | None = None
    verbose: bool = False
    feature_selection: str = "auto"
    random_state: Any = None
    _: KW_ONLY
    method: str | Method = "eblime"

    def explain_instance(
        self,
        image: object,
        classifier_fn: Classifier,
        labels: Sequence[int] = (1,),
        hide_color: Any = None,
        top_labels: int | None = 5,
        num_features: int = 100000,
        num_samples: int = 1000,
        batch_size: int = 10,
        segmentation_fn: Classifier | None = None,
        distance_metric: str | Callable[..., float] = "cosine",
        model_regressor: object = None,
        random_seed: int | None = None,
        progress_bar: bool = False,
    ) -> ImageExplanation:
        """Explain the prediction for an image, (H, W, C), or (H, W), which gets three channels.

        The labels of `segmentation_fn` are renumbered 0 .. p - 1, so that every superpixel is
        hidden in some images; None is quickshift, which sees the first three channels.
        """
        from sklearn.metrics import pairwise_distances

        check_count("num_samples", num_samples)
        check_count("batch_size", batch_size)
        pairwise_distances(np.eye(2), metric=distance_metric)  # refuses an unknown one
        pixels = as_pixels(image)
        pixels = np.stack([pixels] * 3, axis=-1) if pixels.ndim == 2 else pixels
        if random_seed is None:
            random_seed = int(self.random_state.randint(0, high=1000))
        if segmentation_fn is None:
            settings = {"kernel_size": 4, "max_dist": 200, "ratio": 0.2, "random_seed": random_seed}
            found = SegmentationAlgorithm("quickshift", **settings)(three_channels(pixels))
        else:
            found = np.asarray(segmentation_fn(pixels))
        segments = SEGMENTER.segment(pixels, found)
        hidden = np.array(pixels)
        if hide_color is not None:
            hidden[:] = hide_color
        for j in range(segments.max() + 1 if hide_color is None else 0):
            hidden[segments == j] = [channel.mean() for channel in pixels[segments == j].T]
        asked = pixels, hidden, segments, classifier_fn, num_samples, batch_size
        bar: Any = {"progress_bar": True} if progress_bar else {}  # subclasses may not know it
        data, scores = self.data_labels(*asked, **bar)
        masks = np.asarray(data, dtype=np.float64)
        result = ImageExplanation(pixels, segments)
        scene = ImageScene(shown=pixels, hidden=hidden, labels=segments, channel_axis=2)
        how = labels, top_labels, num_features, distance_metric, model_regressor
        self._fill(result, scene, masks, lambda: scores, *how, batch_size=batch_size)
        return result

    def data_labels(
        self,
        image: np.ndarray,
        fudged_image: np.ndarray,
        segments: np.ndarray,
        classifier_fn: Classifier,
        num_samples: int,
        batch_size: int = 10,
        progress_bar: bool = False,
    ) -> tuple[FloatArray, FloatArray]:
        """Masks of superpixels and what the model answers, (N, p) and (N, classes).

        A subclass may replace it, to draw or ask in its own way.
        """
        shown, hidden = np.ascontiguousarray(image), np.ascontiguousarray(fudged_image)
        labels = SEGMENTER.segment(shown, segments)
        scene = ImageScene(shown=shown, hidden=hidden, labels=labels, channel_axis=2)
        p, renderer = scene.n_features, scene.renderer()
        masks = self.random_state.randint(0, 2, num_samples * p).reshape(-1, p).astype(np.float64)
        masks[0] = 1
        scores = []
        with progress_reporter(progress_bar, num_samples, unit="image") as report:
            for begin in range(0, num_samples, batch_size):
                rows = masks[begin : begin + batch_size]
                batch = scene.batch(len(rows))
                renderer.render(rows, batch)
                scores.append(np.asarray(classifier_fn(batch)))
                report(begin + len(rows))
        return masks, np.concatenate(scores)
