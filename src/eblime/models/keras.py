"""Keras networks, on any backend."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from eblime.models.conversion import as_array, descends, on_cpu, read_scores
from eblime.models.torch import import_torch


@dataclass(frozen=True, slots=True, kw_only=True)
class KerasModel:
    """A Keras network, called in inference mode.

    Parameters
    ----------
    network
        The network, on the TensorFlow, JAX or torch backend: a batch in, (n, outputs) out.
    output
        Name or position of the output to explain, for a network with several outputs. None takes
        the only one, or the one named `logits`.
    reader
        As for `TorchModel`.

    Examples
    --------
    Any callable with the arguments of a Keras network works:

    >>> import numpy as np
    >>> import eblime
    >>> network = lambda batch, training: batch.mean(axis=(1, 2))
    >>> eblime.KerasModel(network=network)(np.ones((2, 4, 4, 3)))
    array([[1., 1., 1.],
           [1., 1., 1.]])
    """

    network: Any
    output: str | int | None = None
    reader: Callable[[Any, int], object] | None = None

    activation: ClassVar[str] = "none"  # the network does it

    def __call__(self, batch: Any) -> np.ndarray:
        """Score a batch."""
        is_torch = descends(self.network, "torch", "Module")  # other backends record no gradients
        with import_torch().no_grad() if is_torch else nullcontext():
            outputs = self.network(as_array(batch), training=False)
        names = getattr(self.network, "output_names", None)
        return np.asarray(on_cpu(read_scores(self, outputs, len(batch), names)))
