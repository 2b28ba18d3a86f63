"""scikit-learn estimators, and objects that look like them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eblime.models.foreign import descends

__all__ = ["SklearnModel", "clusters", "last_step", "wrap_predict"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SklearnModel:
    """A method such as `predict_proba` as a model; images are flattened to rows.

    Parameters
    ----------
    predict
        The method: rows, texts or a data frame in, scores or class names out.
    classes
        Class names, for a classifier that has only `predict`; with several outputs, an array of
        names for each.
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
            return _indicators(found, self.classes)
        if self.classes is not None and np.ndim(self.classes[0]) > 0:  # several outputs
            both = zip(found.T, self.classes, strict=True)
            return np.concatenate([_indicators(one, names) for one, names in both], axis=1)
        return found[:, None] if found.ndim == 1 else found


def wrap_predict(model: Any) -> SklearnModel:
    """Wrap an estimator that has only `predict`: a regressor, a classifier or a clusterer."""
    classes = getattr(model, "classes_", clusters(model))
    named = None if classes is None else tuple(classes)
    return SklearnModel(
        predict=model.predict,
        classes=named or None,  # CatBoost's regressors have `classes_` of length 0
        regressor=_estimator_type(model) == "regressor",
    )


def last_step(model: Any) -> Any:
    """The last step of a scikit-learn pipeline; other models unchanged."""
    return model.steps[-1][1] if descends(model, "sklearn", "Pipeline") else model


def clusters(model: Any) -> list[Any] | None:
    """The numbers of the clusters, for an estimator that assigns inputs to clusters."""
    if _estimator_type(model) != "clusterer":
        return None
    found = getattr(last_step(model), "labels_", None)
    return None if found is None else list(np.unique(found))


def _indicators(found: NDArray[Any], classes: Sequence[Any]) -> NDArray[Any]:
    """Score 1 for the predicted class and 0 for the others."""
    return np.stack([found == name for name in classes], axis=1).astype(np.float64)


def _estimator_type(model: Any) -> str | None:
    """What an estimator declares itself to be, by scikit-learn's conventions."""
    try:
        tags = getattr(model, "__sklearn_tags__", None)
        declared = tags().estimator_type if tags else getattr(model, "_estimator_type", None)
    except Exception:  # a pipeline whose last step has no tags
        return None
    return None if declared is None else str(declared)
