"""The seams of the library, one page: what a part must offer to take its place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from eblime._types import FloatArray

if TYPE_CHECKING:
    from eblime.core.posterior import Posterior

__all__ = ["Method"]


class Method(Protocol):
    """A way to turn answered masks into importances."""

    @property
    def name(self) -> str:
        """How tables and reports call the method."""
        ...

    def fit(
        self,
        rng: np.random.Generator,
        masks: FloatArray,
        scores: FloatArray,
        weights: FloatArray,
    ) -> tuple[Posterior, ...]:
        """Fit every target, shape (N, T), from one decomposition of the masks: T posteriors."""
        ...
