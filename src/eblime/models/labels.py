"""Labels of a model's outputs, read from the model itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from eblime.models.foreign import descends
from eblime.models.sklearn import clusters, last_step

__all__ = ["output_names"]


def output_names(model: Any) -> list[str] | dict[int, str] | None:
    """Labels of a classifier's outputs; None if it has none.

    They come from `config.id2label` of a Hugging Face network or pipeline, also inside a
    `TorchModel`, or from `classes_`, as in scikit-learn. Clusters have numbers.
    """
    return _hugging_face_names(model) or _class_names(model)


def _hugging_face_names(model: Any) -> dict[int, str] | None:
    """The names in `config.id2label`."""
    inner = getattr(model, "module", getattr(model, "pipeline", model))  # inside our own adapters
    for holder in (inner, getattr(inner, "model", None)):  # a pipeline has its network in `model`
        names = getattr(getattr(holder, "config", None), "id2label", None)
        if isinstance(names, Mapping) and names:
            return {int(column): str(name) for column, name in names.items()}
    return None


def _class_names(model: Any) -> list[str] | None:
    """The names in `classes_`, one per column of the scores."""
    try:
        classes = getattr(model, "classes_", None)
    except Exception:  # a pipeline whose last step is not fitted
        return None
    if classes is None or len(classes) == 0:
        return _cluster_names(model)
    last = last_step(model)
    if isinstance(classes, list) and np.ndim(classes[0]) > 0:  # several outputs
        if descends(last, "sklearn", "ClassifierChain"):  # one column each, for the second class
            classes = [part[1:] for part in classes]
        return [f"output {k}: {name}" for k, part in enumerate(classes) for name in part]
    if not hasattr(model, "predict_proba"):
        if getattr(last, "decision_function_shape", None) == "ovo":
            return None  # one column per pair of classes
        if len(classes) == 2 and hasattr(model, "decision_function"):
            return [str(classes[1])]  # one column, positive for the second class
    return [str(name) for name in classes]


def _cluster_names(model: Any) -> list[str] | None:
    """The names of clusters, for an estimator that assigns inputs to clusters."""
    numbers = None if hasattr(model, "predict_proba") else clusters(model)
    return None if numbers is None else [f"cluster {number}" for number in numbers]
