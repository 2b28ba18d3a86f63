"""Boosters of XGBoost, in its own interface."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["XgboostModel"]


@dataclass(frozen=True, slots=True, kw_only=True)
class XgboostModel:
    """An `xgboost.Booster`, which needs a DMatrix; images are flattened to rows."""

    booster: Any

    def __call__(self, batch: Any) -> NDArray[Any]:
        """Score a batch of rows: an array, a sparse matrix or a data frame."""
        import xgboost

        if isinstance(batch, np.ndarray):
            batch = batch.reshape(len(batch), -1)
        has_names = hasattr(batch, "columns")  # a data frame of any library
        names = None if has_names else self.booster.feature_names
        rows = xgboost.DMatrix(batch, feature_names=names, enable_categorical=True)
        return np.asarray(self.booster.predict(rows))
