"""`as_model`: understand what users have."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eblime.protocols import Model

__all__ = ["KerasModel", "PipelineModel", "SklearnModel", "as_model"]


def as_model(model: Any) -> Model:
    """Wrap a model so that it takes a batch and returns scores.

    Understood, in this order: an eblime model (`TorchModel`, `OnnxModel`, ...), a `torch.nn.Module`
    (softmax of its outputs), the path of an ONNX file or an onnxruntime session, a Hugging Face
    image-classification pipeline, a Keras model, a scikit-learn-like object (`predict_proba`, else
    `predict`; images are flattened to rows), and any function from a batch to scores.
    """
    if isinstance(model, type):
        raise TypeError(f"`model` must be an object, not the class {model.__name__} itself.")
    if type(model).__module__.startswith("eblime.") and callable(model):
        return model  # type: ignore[no-any-return]
    if _descends(model, "torch", "Module"):
        from eblime.models.torch import TorchModel

        return TorchModel(module=model)
    if isinstance(model, (str, os.PathLike)) or _descends(model, "onnxruntime", "InferenceSession"):
        from eblime.models.onnx import OnnxModel

        return OnnxModel.load(model)
    if getattr(model, "task", None) == "image-classification" and callable(model):
        return PipelineModel(pipeline=model)
    if hasattr(model, "layers") and callable(model):
        return KerasModel(network=model)
    if hasattr(model, "predict_proba"):
        return SklearnModel(predict=model.predict_proba)
    if hasattr(model, "predict"):
        return SklearnModel(predict=model.predict)
    if callable(model):
        return model  # type: ignore[no-any-return]
    raise TypeError(
        "`model` must be a function from a batch to scores, a scikit-learn-like object, a "
        "torch.nn.Module, an ONNX file or session, a Keras model or a Hugging Face pipeline; "
        f"got {type(model).__name__}."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SklearnModel:
    """A `predict_proba` or `predict` that takes rows; images are flattened to rows."""

    predict: Callable[[Any], Any]

    def __call__(self, batch: NDArray[Any]) -> NDArray[Any]:
        """Scores of a batch; one column where the model gives one number an input."""
        scores = self.predict(batch.reshape(len(batch), -1))
        if isinstance(scores, list) and scores and np.ndim(scores[0]) > 1:
            raise TypeError(
                "A classifier of several outputs returns a list of probabilities; wrap it in a "
                "function that picks one."
            )
        found = np.asarray(scores)
        return found[:, None] if found.ndim == 1 else found


@dataclass(frozen=True, slots=True, kw_only=True)
class KerasModel:
    """A Keras network, called in inference mode."""

    network: Any

    def __call__(self, batch: NDArray[Any]) -> NDArray[Any]:
        """Scores of a batch."""
        scores = np.asarray(self.network(batch, training=False))
        return scores.reshape(len(scores), -1)


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineModel:
    """A Hugging Face image-classification pipeline; columns in the order of its model's labels."""

    pipeline: Any

    def __call__(self, batch: NDArray[Any]) -> NDArray[Any]:
        """Scores of a batch of uint8 images, (n, H, W) or (n, H, W, 3)."""
        from PIL import Image

        if batch.dtype != np.uint8:
            raise TypeError(
                f"A Hugging Face pipeline must be asked with images of uint8; got {batch.dtype}."
            )
        names = self.pipeline.model.config.id2label
        order = {name: column for column, name in names.items()}
        answers = self.pipeline([Image.fromarray(image) for image in batch], top_k=len(names))
        scores = np.zeros((len(batch), len(names)))
        for row, answer in zip(scores, answers, strict=True):
            for entry in answer:
                row[int(order[entry["label"]])] = entry["score"]
        return scores


def _descends(model: Any, package: str, name: str) -> bool:
    """Whether an object's class descends from a class of a package, without importing it."""
    return any(
        kind.__name__ == name and kind.__module__.split(".")[0] == package
        for kind in type(model).__mro__
    )
