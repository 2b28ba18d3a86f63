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
        exp = self._listed(label)
        if positive_only and negative_only:
            raise ValueError("`positive_only` and `negative_only` must not both be True.")
        picture = np.zeros_like(self.image) if hide_rest else self.image.copy()
        mask = np.zeros(self.segments.shape, self.segments.dtype)
        if positive_only or negative_only:
            sign = 1 if positive_only else -1
            exp = [(j, weight) for j, weight in exp if sign * weight > max(min_weight, 0)]
        for j, weight in exp[:num_features]:
            if abs(weight) < min_weight:
                continue
            inside = self.segments == j
            picture[inside] = self.image[inside]
            mask[inside] = 1
            if not (positive_only or negative_only):
                mask[inside] = -1 if weight < 0 else 1
                picture[inside, 0 if weight < 0 else 1] = np.max(self.image)
        return picture, mask
