"""Keras networks, on any backend."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from eblime._checks import check_choice
from eblime.models.conversion import ACTIVATIONS, as_array, descends, on_cpu, read_scores
from eblime.models.torch import import_torch


@dataclass(frozen=True, slots=True, kw_only=True)
class KerasModel:
    """A Keras network, called in inference mode.

    Parameters
    ----------
    network
        The network, on the TensorFlow, JAX or torch backend: a batch in, (n, outputs) out.
    activation, reader
        As for `TorchModel`.
    output
        Name or position of the output to explain, for a network with several outputs. None takes
        the only one, or the one named `logits`.

    Examples
    --------
    Any callable with the arguments of a Keras network works:

    >>> import numpy as np
    >>> import eblime
    >>> network = lambda batch, training: batch.mean(axis=(1, 2))
    >>> eblime.KerasModel(network=network, activation="none")(np.ones((2, 4, 4, 3)))
    array([[1., 1., 1.],
           [1., 1., 1.]])
    """

    network: Any
    activation: Literal["auto", "softmax", "sigmoid", "none"] = "auto"
    output: str | int | None = None
    reader: Callable[[Any, int], object] | None = None
    decided: dict[str, str] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_choice("activation", self.activation, ACTIVATIONS)

    def __call__(self, batch: Any) -> np.ndarray:
        """Score a batch."""
        is_torch = descends(self.network, "torch", "Module")  # other backends record no gradients
        with import_torch().no_grad() if is_torch else nullcontext():
            outputs = self.network(as_array(batch), training=False)
        names = getattr(self.network, "output_names", None)
        return np.asarray(on_cpu(read_scores(self, outputs, len(batch), names)))
