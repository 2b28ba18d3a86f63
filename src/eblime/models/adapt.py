"""`as_model`: understand what users have."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eblime.models.answers import is_async
from eblime.models.keras import KerasModel
from eblime.protocols import Model

__all__ = [
    "KerasModel",
    "PipelineModel",
    "SklearnModel",
    "XgboostModel",
    "as_model",
    "has_ranked_outputs",
    "output_names",
]

_TASKS = ("image-classification", "text-classification", "sentiment-analysis")


def as_model(model: Any) -> Model:
    """Wrap a model so that it takes a batch and returns scores.

    Understood, in this order: an eblime model (`TorchModel`, `OnnxModel`, ...), a Keras model, a
    `torch.nn.Module` (softmax of its outputs), the path of an ONNX file or an onnxruntime session,
    a Hugging Face pipeline that classifies images or texts, an `xgboost.Booster`, a
    scikit-learn-like object (`predict_proba`, else `decision_function`, else `predict`; images are
    flattened to rows), and any function from a batch to scores.
    """
    if isinstance(model, type):
        raise TypeError(f"`model` must be an object, not the class {model.__name__} itself.")
    if type(model).__module__.startswith("eblime.") and callable(model):
        return model  # type: ignore[no-any-return]
    if _is_keras(model):  # before torch: on the torch backend it is a torch module too
        return KerasModel(network=model)
    if _descends(model, "torch", "Module"):
        from eblime.models.torch import TorchModel

        return TorchModel(module=model)
    if isinstance(model, (str, os.PathLike)) or _descends(model, "onnxruntime", "InferenceSession"):
        from eblime.models.onnx import OnnxModel

        return OnnxModel.load(model)
    if getattr(model, "task", None) in _TASKS and callable(model):
        return PipelineModel(pipeline=model)
    if _descends(model, "xgboost", "Booster"):
        return XgboostModel(booster=model)
    if hasattr(model, "predict_proba"):
        return SklearnModel(predict=model.predict_proba)
    if hasattr(model, "decision_function"):
        return SklearnModel(predict=model.decision_function)
    if hasattr(model, "predict"):
        classes = getattr(model, "classes_", None)
        named = None if classes is None else tuple(classes)
        return SklearnModel(
            predict=model.predict,
            classes=named or None,  # CatBoost's regressors have no entries
            regressor=_is_regressor(model),
        )
    if is_async(model):
        raise TypeError(
            "`model` must return scores, but it is an async function. Wrap it in a function that "
            "waits for them: lambda batch: asyncio.run(model(batch))."
        )
    if callable(model):
        return model  # type: ignore[no-any-return]
    raise TypeError(
        "`model` must be a function from a batch to scores, a scikit-learn-like object, a "
        "torch.nn.Module, an ONNX file or session, a Keras model or a Hugging Face pipeline; "
        f"got {type(model).__name__}."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SklearnModel:
    """A method that takes rows, texts or frames; images are flattened to rows."""

    predict: Callable[[Any], Any]
    classes: tuple[Any, ...] | None = None  # of a classifier that only names its answer
    regressor: bool = False  # its outputs cannot be compared with each other

    def __call__(self, batch: Any) -> NDArray[Any]:
        """Scores of a batch; one column where the model gives one number an input.

        A classifier of several outputs has the columns of all of them, one after the other; one
        that only names its answer scores 1 for it and 0 for the others.
        """
        images = isinstance(batch, np.ndarray) and batch.ndim > 2
        scores = self.predict(batch.reshape(len(batch), -1) if images else batch)
        if isinstance(scores, list) and scores and np.ndim(scores[0]) > 1:
            scores = np.concatenate(scores, axis=1)
        found = np.asarray(scores)
        if self.classes is not None and found.ndim == 1:
            return np.stack([found == name for name in self.classes], axis=1).astype(np.float64)
        return found[:, None] if found.ndim == 1 else found


@dataclass(frozen=True, slots=True, kw_only=True)
class XgboostModel:
    """An `xgboost.Booster`, which takes a DMatrix; images are flattened to rows."""

    booster: Any

    def __call__(self, batch: Any) -> NDArray[Any]:
        """Scores of a batch of rows: an array, a sparse matrix or a frame."""
        import xgboost

        if isinstance(batch, np.ndarray):
            batch = batch.reshape(len(batch), -1)
        named = None if hasattr(batch, "columns") else self.booster.feature_names
        rows = xgboost.DMatrix(batch, feature_names=named, enable_categorical=True)
        return np.asarray(self.booster.predict(rows))


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineModel:
    """A Hugging Face pipeline that classifies; columns in the order of its model's labels."""

    pipeline: Any

    def __call__(self, batch: Any) -> NDArray[Any]:
        """Scores of a batch: texts, or uint8 images (n, H, W) or (n, H, W, 3)."""
        names = self.pipeline.model.config.id2label
        order = {name: column for column, name in names.items()}
        answers = self.pipeline(self._inputs(batch), top_k=len(names))
        scores = np.zeros((len(batch), len(names)))
        for row, answer in zip(scores, answers, strict=True):
            for entry in answer:
                row[int(order[entry["label"]])] = entry["score"]
        return scores

    def _inputs(self, batch: Any) -> list[Any]:
        """What the pipeline takes."""
        if not isinstance(batch, np.ndarray):
            return list(batch)
        from PIL import Image

        if batch.dtype != np.uint8:
            raise TypeError(
                f"A Hugging Face pipeline must be asked with images of uint8; got {batch.dtype}."
            )
        return [Image.fromarray(image) for image in batch]


def has_ranked_outputs(model: Any) -> bool:
    """Whether the highest output is the prediction; not so for a regressor with several outputs."""
    return not (isinstance(model, SklearnModel) and model.regressor)


def output_names(model: Any) -> list[str] | dict[int, str] | None:
    """Labels of a classifier's outputs, None if it does not know them.

    They come from `classes_`, as in scikit-learn, or from `config.id2label` of a Hugging Face
    network or pipeline, also inside a `TorchModel`.
    """
    inner = getattr(model, "module", getattr(model, "pipeline", model))  # of our own wrappers
    for holder in (inner, getattr(inner, "model", None)):  # a pipeline has its model in `model`
        names = getattr(getattr(holder, "config", None), "id2label", None)
        if isinstance(names, Mapping) and names:
            return {int(column): str(name) for column, name in names.items()}
    try:
        classes = getattr(model, "classes_", None)
    except Exception:  # a pipeline whose last step was never fitted
        return None
    if classes is None or len(classes) == 0:
        return None
    if isinstance(classes, list) and np.ndim(classes[0]) > 0:  # several outputs
        return [f"output {k}: {name}" for k, part in enumerate(classes) for name in part]
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    if getattr(last, "decision_function_shape", None) == "ovo" and not hasattr(
        model, "predict_proba"
    ):
        return None  # one column for each pair of classes
    scored = hasattr(model, "predict_proba") or not hasattr(model, "decision_function")
    if len(classes) == 2 and not scored:  # one column, positive for the second class
        return [str(classes[1])]
    return [str(name) for name in classes]


def _is_regressor(model: Any) -> bool:
    """Whether an estimator declares itself a regressor, as scikit-learn's conventions have it."""
    try:
        tags = getattr(model, "__sklearn_tags__", None)
        if tags is not None:
            return bool(tags().estimator_type == "regressor")
        return getattr(model, "_estimator_type", None) == "regressor"
    except Exception:  # a pipeline whose last step cannot say
        return False


def _is_keras(model: Any) -> bool:
    """Whether an object is a Keras model or layer, of any version, or looks like one."""
    packages = ("keras", "tf_keras", "tensorflow")
    if any(_descends(model, package, "Layer") for package in packages):
        return True
    return hasattr(model, "layers") and callable(model) and not _descends(model, "torch", "Module")


def _descends(model: Any, package: str, name: str) -> bool:
    """Whether an object's class descends from a class of a package, without importing it."""
    return any(
        kind.__name__ == name and kind.__module__.split(".")[0] == package
        for kind in type(model).__mro__
    )
