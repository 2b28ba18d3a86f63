"""scikit-learn estimators, and objects that look like them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["SklearnModel", "wrap_predict"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SklearnModel:
    """A method such as `predict_proba` as a model; images are flattened to rows.

    Parameters
    ----------
    predict
        The method: rows, texts or a data frame in, scores or class names out.
    classes
        Class names, for a classifier that has only `predict`.
    regressor
        Whether it is a regressor; then the largest output is not "the prediction".
    """

    predict: Callable[[Any], Any]
    classes: tuple[Any, ...] | None = None
    regressor: bool = False

    def __call__(self, batch: Any) -> NDArray[Any]:
        """Score a batch; the result has one column if the model returns one number per input.

        The columns of a classifier with several outputs follow each other. A classifier that
        returns class names gets score 1 for that class and 0 for the others.
        """
        images = isinstance(batch, np.ndarray) and batch.ndim > 2
        scores = self.predict(batch.reshape(len(batch), -1) if images else batch)
        if isinstance(scores, list) and scores and np.ndim(scores[0]) > 1:
            scores = np.concatenate(scores, axis=1)
        found = np.asarray(scores)
        if self.classes is not None and found.ndim == 1:
            return np.stack([found == name for name in self.classes], axis=1).astype(np.float64)
        return found[:, None] if found.ndim == 1 else found


def wrap_predict(model: Any) -> SklearnModel:
    """Wrap an estimator that has only `predict`: a regressor, or a classifier of class names."""
    classes = getattr(model, "classes_", None)
    named = None if classes is None else tuple(classes)
    return SklearnModel(
        predict=model.predict,
        classes=named or None,  # CatBoost's regressors have `classes_` of length 0
        regressor=_is_regressor(model),
    )


def _is_regressor(model: Any) -> bool:
    """Whether an estimator declares itself a regressor, by scikit-learn's conventions."""
    try:
        tags = getattr(model, "__sklearn_tags__", None)
        if tags is not None:
            return bool(tags().estimator_type == "regressor")
        return getattr(model, "_estimator_type", None) == "regressor"
    except Exception:  # a pipeline whose last step has no tags
        return False
