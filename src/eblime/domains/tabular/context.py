"""A row next to its background: the data that perturbed rows are drawn from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eblime.domains.tabular.background import Background, Feature
from eblime.domains.tabular.frame import Frame

__all__ = ["RowContext", "standardise"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowContext:
    """One row and the background it is compared with."""

    background: Background  # with the features of this row
    frame: Frame  # the rows of the background, and then the row itself
    values: Sequence[Any]  # of the row, by column
    same: NDArray[np.bool_]  # (p, n + 1) whether a row of `frame` is in the row's bins
    continuous: bool  # numbers are standardised; otherwise a feature is in the row's bin or not

    @property
    def n_features(self) -> int:
        """Number of features, p."""
        return len(self.background.features)

    @property
    def itself(self) -> int:
        """Position of the row in `frame`."""
        return self.background.n_rows

    def number(self, feature: Feature) -> float:
        """The row's number for a feature that is a single column of numbers."""
        return float(self.values[feature.columns[0]])


def standardise(values: Any, feature: Feature) -> Any:
    """Numbers minus the mean of their column, divided by its standard deviation."""
    mean, sd = feature.scale or (0.0, 1.0)
    return (values - mean) / sd
