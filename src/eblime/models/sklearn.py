"""Estimators of scikit-learn and XGBoost, objects that look like them, and their class names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from eblime._types import FloatArray
from eblime.models.asynchronous import AsyncModel
from eblime.models.conversion import descends, is_async, is_frame


@dataclass(frozen=True, slots=True, kw_only=True)
class SklearnModel:
    """A method such as `predict_proba` as a model; images are flattened to rows.

    `predict` is the method: rows, texts or a data frame in, scores or class names out. `classes`
    are for a classifier that has only `predict`. With `ranked` the largest output is "the
    prediction"; with `as_is` batches are not flattened, for estimators of signals (n, C, T).
    """

    predict: Callable[[Any], Any]
    classes: tuple[Any, ...] | None = None
    ranked: bool = True
    as_is: bool = False

    def __call__(self, batch: Any) -> np.ndarray:
        """Score a batch; the result has one column if the model returns one number per input.

        The columns of a classifier with several outputs follow each other. A classifier that
        returns class names gets score 1 for that class and 0 for the others.
        """
        images = isinstance(batch, np.ndarray) and batch.ndim > 2 and not self.as_is
        scores = self.predict(batch.reshape(len(batch), -1) if images else batch)
        if isinstance(scores, list) and scores and np.ndim(scores[0]) > 1:
            scores = np.concatenate(scores, axis=1)
        found: np.ndarray = np.asarray(scores)
        if self.classes is not None and found.ndim == 1:
            return _indicators(found, self.classes)
        if self.classes is not None and np.ndim(self.classes[0]) > 0:  # several outputs
            both = zip(found.T, self.classes, strict=True)
            return np.concatenate([_indicators(one, names) for one, names in both], axis=1)
        return found[:, None] if found.ndim == 1 else found


def wrap_estimator(model: object, name: str) -> SklearnModel:
    """Wrap one of the methods of an estimator; one that is an `async def` is awaited."""
    method, classes, ranked = getattr(model, name), None, not has_several_outputs(model)
    if name == "predict":
        classes = _classes(model)
        ranked = ranked and _estimator_type(model) != "regressor"
    return SklearnModel(
        predict=AsyncModel(function=method) if is_async(method) else method,
        classes=None if classes is None else tuple(classes),
        ranked=ranked,
    )


def _classes(model: object) -> list[Any] | None:
    """The `classes_` of a classifier; None if it has none, as CatBoost's regressors."""
    try:
        found = getattr(model, "classes_", None)
    except Exception:  # a pipeline whose last step is not fitted
        return None
    return None if found is None or len(found) == 0 else list(found)


def has_several_outputs(model: object) -> bool:
    """Whether a classifier answers several questions, each with classes of its own."""
    return np.ndim((_classes(model) or [0])[0]) > 0


def has_method(model: object, name: str) -> bool:
    """Whether a model has a method; scikit-learn hides those that its parts do not have."""
    return callable(getattr(model, name, None))


def _indicators(found: np.ndarray, classes: Sequence[object]) -> FloatArray:
    return np.stack([found == name for name in classes], axis=1).astype(np.float64)


def _estimator_type(model: object) -> str | None:
    try:
        tags = getattr(model, "__sklearn_tags__", None)
        declared = tags().estimator_type if tags else getattr(model, "_estimator_type", None)
    except Exception:  # a pipeline whose last step has no tags
        return None
    return None if declared is None else str(declared)


def predict_booster(booster: Any, batch: Any) -> Any:
    """Scores by an `xgboost.Booster` of an array, a sparse matrix or a data frame."""
    import xgboost

    names = None if is_frame(batch) else booster.feature_names
    rows = xgboost.DMatrix(batch, feature_names=names, enable_categorical=True)
    return booster.predict(rows)


def output_names(model: Any) -> list[str] | dict[int, str] | None:
    """Labels of a classifier's outputs; None if it has none.

    They come from `config.id2label` of a Hugging Face network or pipeline, also inside a
    `TorchModel`, or from `classes_`, as in scikit-learn.
    """
    inner = getattr(model, "module", getattr(model, "pipeline", model))  # inside our own adapters
    for holder in (inner, getattr(inner, "model", None)):  # a pipeline has its network in `model`
        names = getattr(getattr(holder, "config", None), "id2label", None)
        if isinstance(names, Mapping) and names:
            return {int(column): str(name) for column, name in names.items()}
    classes = _classes(model)
    if classes is None:
        return None
    last = model.steps[-1][1] if descends(model, "sklearn", "Pipeline") else model
    if has_several_outputs(model):
        if descends(last, "sklearn", "ClassifierChain"):  # one column each, for the second class
            classes = [part[1:] for part in classes]
        return [f"output {k}: {name}" for k, part in enumerate(classes) for name in part]
    if not has_method(model, "predict_proba"):
        if getattr(last, "decision_function_shape", None) == "ovo":
            return None  # one column per pair of classes
        if len(classes) == 2 and has_method(model, "decision_function"):
            return [str(classes[1])]  # one column, positive for the second class
    return [str(name) for name in classes]
