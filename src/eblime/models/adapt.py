"""`as_model`: recognise the model and wrap it; pipelines of Hugging Face."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from eblime._warn import warn_user
from eblime.models.asynchronous import AsyncModel
from eblime.models.conversion import descends, is_async, on_cpu
from eblime.models.keras import KerasModel
from eblime.models.onnx import OnnxModel
from eblime.models.sklearn import SklearnModel, has_method, predict_booster, wrap_estimator
from eblime.models.torch import TorchModel
from eblime.protocols import Model

_TASKS = ("image-classification", "text-classification", "sentiment-analysis")


def _warn_of_classes(model: object) -> None:
    """Warn about a function that is the wrong method of a classifier."""
    owner = getattr(model, "__self__", None)
    if getattr(model, "__name__", "") == "predict" and has_method(owner, "predict_proba"):
        warn_user(
            f"`model` is the method `predict` of {type(owner).__name__}, which returns classes, "
            "not scores: every change is all or nothing. Pass the model itself."
        )


def as_model(model: Any) -> Model:
    """Wrap a model so that it takes a batch and returns scores.

    Parameters
    ----------
    model
        One of these, in the order in which they are recognised: an eblime model (`TorchModel`,
        `OnnxModel`, ...), a Keras model, a `torch.nn.Module` (softmax of its outputs), the path of
        an ONNX file or an onnxruntime session, a Hugging Face pipeline that classifies images or
        texts, an `xgboost.Booster`, a scikit-learn-like object (`predict_proba`, otherwise
        `decision_function`, otherwise `predict`; images are flattened to rows), or any function
        from a batch to scores. An `async def`, also as one of these methods, is awaited.

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> class Doubler:
    ...     def predict(self, rows):
    ...         return 2 * rows[:, 0]
    >>> eblime.as_model(Doubler())(np.array([[1.0, 5.0], [3.0, 7.0]]))
    array([[2.],
           [6.]])
    """
    if isinstance(model, type):
        raise TypeError(f"`model` must be an object, not the class {model.__name__} itself.")
    if type(model).__module__.startswith("eblime.") and callable(model):
        return model  # type: ignore[no-any-return]
    if any(descends(model, package, "Layer") for package in ("keras", "tf_keras", "tensorflow")):
        return KerasModel(network=model)  # before torch: with that backend it is a module too
    if descends(model, "torch", "Module"):
        return TorchModel(model)
    is_path = isinstance(model, (str, os.PathLike))
    if str(model).startswith(("http://", "https://")) and is_path:
        raise TypeError("The address of a server is a language model: use PromptExplainer.")
    if is_path or descends(model, "onnxruntime", "InferenceSession"):
        return OnnxModel.load(model)
    if getattr(model, "task", None) in _TASKS and callable(model):
        return PipelineModel(pipeline=model)
    if descends(model, "xgboost", "Booster"):
        return SklearnModel(predict=partial(predict_booster, model))
    for name in ("predict_proba", "decision_function", "predict"):
        if has_method(model, name):
            return wrap_estimator(model, name)
    if is_async(model):
        return AsyncModel(function=model)
    if callable(model):
        _warn_of_classes(model)
        return model  # type: ignore[no-any-return]
    raise TypeError(
        "`model` must be a function from a batch to scores, a scikit-learn-like object, a "
        "torch.nn.Module, an ONNX file or session, a Keras model or a Hugging Face pipeline; "
        f"got {type(model).__name__}."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _ReadModel:
    model: Model
    reader: Callable[[Any, int], object]

    def __call__(self, batch: Any) -> np.ndarray:
        """Score a batch."""
        return np.asarray(on_cpu(self.reader(self.model(batch), len(batch))))


def with_reader(model: Any, reader: Callable[[Any, int], object]) -> Model:
    """A model with a function from what it returned for n inputs, and n, to scores, (n, outputs).

    Networks take the function themselves: it gets all that they return.
    """
    if hasattr(model, "reader"):
        return replace(model, reader=reader)  # type: ignore[no-any-return]
    return _ReadModel(model=model, reader=reader)


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineModel:
    """A Hugging Face pipeline that classifies; the columns are in the order of its labels."""

    pipeline: Any

    def __call__(self, batch: Any) -> np.ndarray:
        """Score a batch: texts, or uint8 images (n, H, W) or (n, H, W, 3)."""
        names = self.pipeline.model.config.id2label
        column_of = {name: int(column) for column, name in names.items()}
        inputs = list(batch)
        if isinstance(batch, np.ndarray):
            from PIL import Image

            if batch.dtype != np.uint8:
                wrong = f"A Hugging Face pipeline needs images of uint8; got {batch.dtype}."
                raise TypeError(wrong)
            inputs = [Image.fromarray(image) for image in batch]
        answers = self.pipeline(inputs, top_k=len(names))
        scores = np.zeros((len(batch), len(names)))
        for row, answer in zip(scores, answers, strict=True):
            for entry in answer:
                row[column_of[entry["label"]]] = entry["score"]
        return scores
