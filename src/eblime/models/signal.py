"""Models of signals: the layout that each one takes, found from its own first answer."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from eblime.models.conversion import as_scores, is_ranked
from eblime.models.onnx import OnnxModel
from eblime.models.sklearn import SklearnModel
from eblime.models.torch import TorchModel
from eblime.protocols import Model

LAYOUTS = {"flat": "(n, C x T)", "first": "(n, C, T)", "last": "(n, T, C)"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalModel:
    """A model that gets signals in the layout that it takes.

    "auto" tries `LAYOUTS` on the first batch, and keeps the first that the model answers with one
    row of scores per signal.
    """

    model: Model
    layout: str = "auto"
    _found: dict[int, str] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def wrap(cls, model: Any, layout: str) -> SignalModel:
        """A model that does not take signals for images."""
        if isinstance(model, cls):
            return replace(model, layout=layout, _found={})
        if isinstance(model, (TorchModel, SklearnModel)):
            model = replace(model, as_is=True)
        return cls(model=model, layout=layout)

    @property
    def ranked(self) -> bool:
        """Whether the largest output is the prediction."""
        return is_ranked(self.model)

    def about(self, scene: Any) -> dict[str, str]:
        """The layout of the signal of a scene in words, once the model was asked about it."""
        known = self._found.get(2 if scene.flat else 3) if self.layout == "auto" else self.layout
        found = dict(getattr(self.model, "decided", {}))
        if known is not None:
            found["layout"] = "(n, T)" if known == "flat" and scene.flat else LAYOUTS[known]
        return found

    def __call__(self, batch: np.ndarray) -> Any:
        """Score a batch of signals, (n, T) or (n, C, T)."""
        layout = self.layout if self.layout != "auto" else self._found.get(batch.ndim)
        if layout is not None:
            return self.model(arrange(batch, layout))
        failures = []
        rows = batch.ndim == 2 and not isinstance(self.model, TorchModel)
        flat_first = rows or isinstance(self.model, OnnxModel)  # a graph refuses another rank
        for layout in ("flat", "first", "last") if flat_first else ("first", "flat", "last"):
            try:
                returned = as_scores(self.model(arrange(batch, layout)))
                shape = np.shape(returned)
                if len(shape) not in (1, 2) or shape[0] != len(batch):
                    raise ValueError(f"it returned shape {shape} for a batch of {len(batch)}")
            except (OSError, MemoryError):  # which another layout does not help
                raise
            except Exception as error:
                failures.append((layout, error))
                continue
            self._found[batch.ndim] = layout
            return returned
        reasons = "; ".join(f"{LAYOUTS[name]}: {str(error)[:200]}" for name, error in failures)
        raise ValueError(
            f"The model takes signals of shape {batch.shape[1:]} in no layout. Check the number of "
            f"channels and samples, or set `layout`. {reasons}"
        ) from (failures[0][1] if failures else None)


def arrange(batch: np.ndarray, layout: str) -> np.ndarray:
    """A batch, (n, T) or (n, C, T), in a layout."""
    if layout == "flat":
        return batch.reshape(len(batch), -1)
    stacked = batch[:, None] if batch.ndim == 2 else batch
    return stacked if layout == "first" else np.ascontiguousarray(np.swapaxes(stacked, 1, 2))
