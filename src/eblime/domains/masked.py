"""Perturbed inputs that follow from masks alone: images, texts, series."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from eblime._types import BoolArray, FloatArray, IntArray
from eblime.protocols import masks_at


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MaskedSubject:
    """An input whose perturbed versions follow from masks alone."""

    scene: Any  # a `Scene`
    exact: bool = True  # whether the model always gives the same score to the same input
    whole: object = None  # a scene with more features, if there is one
    fixed: BoolArray | None = None  # which of these are the same in all perturbed inputs

    def neighbourhood(self, rng: np.random.Generator) -> MaskedNeighbourhood:
        """No perturbed inputs yet."""
        none = np.empty((0, self.scene.n_features))
        return MaskedNeighbourhood(scene=self.scene, masks=none, exact=self.exact)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MaskedNeighbourhood:
    """Perturbed inputs given by their masks."""

    scene: Any  # with `inputs(masks)` and `sizes`, or one that renders
    masks: FloatArray  # (N, p)
    exact: bool = True  # a mask determines the score

    @property
    def sizes(self) -> Sequence[int]:
        """Batch sizes worth trying, as the scene says."""
        sizes: Sequence[int] = self.scene.sizes
        return sizes

    def affordable(self, n_inputs: int) -> int:
        """How many masks can be asked with so many inputs, the input itself among them."""
        cost: int = getattr(self.scene, "cost", 1)  # inputs for one mask
        return (n_inputs - 1) // cost + 1

    def extend(self, rng: np.random.Generator, wanted: FloatArray | int) -> MaskedNeighbourhood:
        """Add one perturbed input per mask."""
        if isinstance(wanted, (int, np.integer)):
            raise ValueError(
                f"`design` must return masks for a {self.scene.domain}; it returned {wanted}."
            )
        masks = np.concatenate([self.masks, wanted]) if len(self.masks) else wanted
        return replace(self, masks=masks)

    def inputs(self, rows: IntArray) -> Any:
        """A batch of perturbed inputs by number."""
        return self.scene.inputs(masks_at(self.masks, rows))

    def keys(self, rows: IntArray) -> list[bytes]:
        """The masks, packed into bits."""
        bits = np.packbits(masks_at(self.masks, rows) > 0.5, axis=1)
        keys: list[bytes] = bits.view(f"V{bits.shape[1]}").ravel().tolist()
        return keys
