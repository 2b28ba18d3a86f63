"""The result for an image."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from eblime.compat.lime._result import Result

__all__ = ["ImageExplanation"]


class ImageExplanation(Result):
    """The explanation of an image.

    Parameters
    ----------
    image
        The image, (H, W, C).
    segments
        The superpixel of each pixel, (H, W), numbered as the features are: 0 .. p - 1.

    Examples
    --------
    `LimeImageExplainer` returns one:

    >>> import numpy as np
    >>> from eblime.compat.lime import LimeImageExplainer
    >>> image = np.zeros((8, 8, 3))
    >>> image[:, 4:] = 1.0
    >>> halves = lambda image: (np.arange(8) >= 4).astype(int) * np.ones((8, 1), dtype=int)
    >>> bright = lambda batch: np.column_stack([1 - batch.mean((1, 2, 3)), batch.mean((1, 2, 3))])
    >>> exp = LimeImageExplainer(random_state=0).explain_instance(
    ...     image, bright, hide_color=0, num_samples=50, segmentation_fn=halves
    ... )
    >>> _, mask = exp.get_image_and_mask(1, num_features=1)
    >>> mask[0]
    array([0, 0, 0, 0, 1, 1, 1, 1])
    """

    def __init__(self, image: NDArray[Any], segments: NDArray[Any]) -> None:
        Result.__init__(self)
        self.image = image
        self.segments = segments

    def get_image_and_mask(
        self,
        label: int,
        positive_only: bool = True,
        negative_only: bool = False,
        hide_rest: bool = False,
        num_features: int = 5,
        min_weight: float = 0.0,
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """The image and a mask of its most important superpixels.

        Parameters
        ----------
        label
            The label.
        positive_only, negative_only
            Take only superpixels that raise, or that lower, the score. With neither, those that
            raise it are painted green and have 1 in the mask, the others red and -1.
        hide_rest
            Whether all other superpixels are black.
        num_features
            How many superpixels to take.
        min_weight
            The smallest weight, in size, to take.

        Returns
        -------
        image, mask
            (H, W, C) and (H, W).
        """
        listed = self._listed(label)
        if positive_only and negative_only:
            raise ValueError("`positive_only` and `negative_only` must not both be True.")
        picture = np.zeros_like(self.image) if hide_rest else self.image.copy()
        mask = np.zeros(self.segments.shape, self.segments.dtype)
        if positive_only or negative_only:
            sign = 1 if positive_only else -1
            listed = [(j, weight) for j, weight in listed if sign * weight > max(min_weight, 0)]
        for j, weight in listed[:num_features]:
            if abs(weight) < min_weight:
                continue
            inside = self.segments == j
            picture[inside] = self.image[inside]
            mask[inside] = 1
            if not (positive_only or negative_only):
                mask[inside] = -1 if weight < 0 else 1
                picture[inside, 0 if weight < 0 else 1] = np.max(self.image)
        return picture, mask
