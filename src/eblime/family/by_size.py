"""The designs of GLIME and of stratified LIME: masks drawn by how many features they show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from eblime.answers import Proposal
from eblime.core.indices import log_subsets
from eblime.designs.masks import masks_of_sizes
from eblime.kernels import size_weights


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelLaw:
    """Masks drawn by the law of the kernel, so that all have weight one: GLIME (Tan et al., 2023).

    With a narrow kernel, most evenly drawn masks have a weight near zero. Drawn by the kernel, no
    mask is wasted, and a ridge penalty does not depend on the width of the kernel.

    Parameters
    ----------
    kernel
        A kernel whose weights depend on the number of shown features only. Explainers set their
        own; None is the default kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from eblime.family import KernelLaw
    >>> drawn = KernelLaw(kernel="cosine")(np.random.default_rng(0), 1000, 20)
    >>> int(np.median(drawn.masks.sum(axis=1)))
    11
    """

    kernel: Any = None

    def __call__(self, rng: np.random.Generator, n_masks: int, p: int) -> Proposal:
        """The masks, and the inverse of the kernel as the weights that correct for the draws."""
        kernel = size_weights(self.kernel, p)
        with np.errstate(divide="ignore"):
            logs = log_subsets(p) + np.log(kernel)
        chances = np.exp(logs - logs.max())
        shown = rng.choice(p + 1, size=n_masks, p=chances / chances.sum())
        shown[0] = p
        return Proposal(masks=masks_of_sizes(rng, shown, p), sampling_weights=1 / kernel[shown])

    def for_kernel(self, kernel: Any) -> KernelLaw:
        """The design for an explainer's kernel, unless it has its own."""
        return self if self.kernel is not None else KernelLaw(kernel=kernel)


GLIME = KernelLaw()


def stratified_lime(rng: np.random.Generator, n_masks: int, p: int) -> Proposal:
    """All numbers of shown features equally likely: stratified LIME (Rashid et al., 2024).

    Evenly drawn masks show about half of the features, and a model may score all of them near zero.
    Here every size is asked, and weights correct for it. `leverage` has the same sizes, in
    complementary pairs and without repeating a mask.

    Examples
    --------
    >>> import numpy as np
    >>> from eblime.family import stratified_lime
    >>> drawn = stratified_lime(np.random.default_rng(0), 4000, 3)
    >>> np.bincount(drawn.masks.sum(axis=1).astype(int)) // 100
    array([ 9,  9,  9, 10])
    """
    shown = rng.integers(0, p + 1, size=n_masks)
    shown[0] = p
    weights = np.exp(log_subsets(p)[shown] - p * np.log(2) + np.log(p + 1))
    weights[0] = 1.0
    return Proposal(masks=masks_of_sizes(rng, shown, p), sampling_weights=weights)
