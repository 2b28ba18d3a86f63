"""Hugging Face pipelines that classify images or texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["TASKS", "PipelineModel"]

TASKS = ("image-classification", "text-classification", "sentiment-analysis")


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineModel:
    """A Hugging Face pipeline that classifies; the columns are in the order of its labels."""

    pipeline: Any

    def __call__(self, batch: Any) -> NDArray[Any]:
        """Score a batch: texts, or uint8 images (n, H, W) or (n, H, W, 3)."""
        names = self.pipeline.model.config.id2label
        column_of = {name: int(column) for column, name in names.items()}
        answers = self.pipeline(self._inputs(batch), top_k=len(names))
        scores = np.zeros((len(batch), len(names)))
        for row, answer in zip(scores, answers, strict=True):
            for entry in answer:
                row[column_of[entry["label"]]] = entry["score"]
        return scores

    def _inputs(self, batch: Any) -> list[Any]:
        """The batch as a list of texts or PIL images."""
        if not isinstance(batch, np.ndarray):
            return list(batch)
        from PIL import Image

        if batch.dtype != np.uint8:
            raise TypeError(f"A Hugging Face pipeline needs images of uint8; got {batch.dtype}.")
        return [Image.fromarray(image) for image in batch]
