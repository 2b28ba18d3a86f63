"""Keras networks, on any backend."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eblime.models.outputs import as_columns, pick_output

__all__ = ["KerasModel"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KerasModel:
    """A Keras network, called in inference mode.

    Parameters
    ----------
    network
        The network, on the TensorFlow, JAX or torch backend: a batch in, (n, outputs) out.
    output
        Name or position of the output to explain, where the network has several.
    """

    network: Any
    output: str | int | None = None

    def __call__(self, batch: NDArray[Any]) -> NDArray[Any]:
        """Scores of a batch."""
        with self._without_gradients():
            outputs = self.network(batch, training=False)
        names = getattr(self.network, "output_names", None)
        scores = pick_output(outputs, self.output, names)
        if hasattr(scores, "detach"):  # a torch tensor, perhaps on a GPU
            scores = scores.detach().cpu().numpy()
        return np.asarray(as_columns(np.asarray(scores)))

    def _without_gradients(self) -> AbstractContextManager[Any]:
        """On the torch backend record no gradients; the other backends do not by themselves."""
        if not hasattr(self.network, "parameters"):  # not a torch module
            return nullcontext()
        import torch

        quiet: AbstractContextManager[Any] = torch.no_grad()
        return quiet
