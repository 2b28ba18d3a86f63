"""ONNX networks by onnxruntime: layout, dtype and batch size are read from the graph."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special

from eblime._checks import check_choice
from eblime.models.outputs import as_columns, default_output

__all__ = ["OnnxModel"]

_TYPES = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(double)": np.float64,
    "tensor(uint8)": np.uint8,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OnnxModel:
    """An ONNX network that classifies or scores images.

    Parameters
    ----------
    session
        An `onnxruntime.InferenceSession`; `OnnxModel.load(path)` makes one.
    preprocess
        From a batch in the graph's layout and as float32, uint8 images scaled to [0, 1] and floats
        as they are, to what the graph wants. None: nothing. A graph that takes uint8 gets uint8.
    activation
        What turns outputs into scores: "none" (the graph gives them), "softmax" or "sigmoid".
    output
        Name of the output to explain. None takes the only one, else the one named `logits`; a graph
        with several others needs a name.
    """

    session: Any
    preprocess: Callable[[NDArray[Any]], Any] | None = None
    activation: Literal["none", "softmax", "sigmoid"] = "none"
    output: str | None = None

    def __post_init__(self) -> None:
        """Refuse an unknown activation or output."""
        check_choice("activation", self.activation, ("none", "softmax", "sigmoid"))
        if not hasattr(self.session, "get_inputs"):
            raise TypeError(
                f"`session` must be an onnxruntime session; got {self.session!r}. "
                "For a file use OnnxModel.load(path)."
            )
        known = {output.name: output.type for output in self.session.get_outputs()}
        if self.output is not None:
            check_choice("output", self.output, tuple(known))
        kind = known.get(self._output_name(), "")
        if not kind.startswith("tensor"):
            raise TypeError(
                f"The output {self._output_name()!r} of the graph must be a tensor; it is a {kind}."
                " Export the model with zipmap=False, or choose another with `output`: "
                f"{', '.join(map(repr, known))}."
            )

    def _output_name(self) -> str:
        """Name of the output to explain."""
        names = [output.name for output in self.session.get_outputs()]
        name = default_output(names) if self.output is None else self.output
        if name is None:
            raise ValueError(
                f"`output` must be given for a graph with several outputs: one of "
                f"{', '.join(map(repr, names))}, such as OnnxModel.load(path, output={names[0]!r})."
            )
        return str(name)

    @classmethod
    def load(cls, source: Any, **settings: Any) -> OnnxModel:
        """Open an ONNX file, or take a session as it is; settings are those of the class."""
        if not isinstance(source, (str, os.PathLike)):
            return cls(session=source, **settings)
        try:
            import onnxruntime
        except ImportError as error:
            raise ImportError(
                "An ONNX model needs onnxruntime: pip install 'eblime[onnx]'."
            ) from error
        path = os.fspath(source)
        if not os.path.isfile(path):  # noqa: PTH113  a path may be of any kind
            raise FileNotFoundError(
                f"`model` must be the path of an ONNX file; there is no {path!r}."
            )
        options = onnxruntime.SessionOptions()
        if os.environ.get("EBLIME_THREADS"):  # in worker processes, which share the cores
            options.intra_op_num_threads = int(os.environ["EBLIME_THREADS"])
        providers = onnxruntime.get_available_providers()  # 1.16 does not choose by itself
        session = onnxruntime.InferenceSession(path, options, providers=providers)
        return cls(session=session, **settings)

    @property
    def scales_uint8(self) -> bool:
        """Images of uint8 are divided by 255, others are not; a graph that takes uint8 gets it."""
        return bool(self.session.get_inputs()[0].type != "tensor(uint8)")

    def __call__(self, batch: NDArray[Any]) -> NDArray[Any]:
        """Score a batch of images, (n, H, W), (n, H, W, C) or (n, C, H, W)."""
        entry = self.session.get_inputs()[0]
        kind = _TYPES.get(entry.type)
        if kind is None:
            raise TypeError(f"The graph's input must be of {', '.join(_TYPES)}; got {entry.type}.")
        if kind is np.uint8 and batch.dtype != np.uint8:
            raise TypeError(f"The graph takes uint8; the image must be uint8, not {batch.dtype}.")
        images = _arranged(batch, entry.shape)
        if kind is not np.uint8:
            images = images.astype(np.float32) / (255 if batch.dtype == np.uint8 else 1)
        images = images if self.preprocess is None else np.asarray(self.preprocess(images))
        outputs = self._run(images.astype(kind, copy=False), entry)
        scores = as_columns(outputs).astype(np.float64)
        if self.activation == "softmax":
            return np.asarray(special.softmax(scores, axis=1))
        return np.asarray(special.expit(scores) if self.activation == "sigmoid" else scores)

    def _run(self, images: NDArray[Any], entry: Any) -> NDArray[Any]:
        """Run the graph, in pieces of its own batch size where it has a fixed one."""
        names = [self._output_name()]
        fixed = entry.shape[0] if isinstance(entry.shape[0], int) else None
        if fixed is None or fixed == len(images):
            return np.asarray(self.session.run(names, {entry.name: images})[0])
        short = -len(images) % fixed
        padded = np.concatenate([images, np.repeat(images[-1:], short, axis=0)])
        parts = [
            np.asarray(self.session.run(names, {entry.name: padded[i : i + fixed]})[0])
            for i in range(0, len(padded), fixed)
        ]
        return np.concatenate(parts)[: len(images)]


def _arranged(batch: NDArray[Any], shape: list[Any]) -> NDArray[Any]:
    """Bring a batch into the graph's layout: as it is where that fits, else moved, or flat rows."""
    if len(shape) == 2:
        return batch.reshape(len(batch), -1)
    if len(shape) == 3:
        return batch if batch.ndim == 3 else batch.reshape(batch.shape[:1] + _squeezed(batch))
    images = batch[..., None] if batch.ndim == 3 else batch
    first, last = np.moveaxis(images, -1, 1), np.moveaxis(images, 1, -1)
    few = images.shape[-1] <= 4 < images.shape[1]  # channels are last, and graphs want them first
    for layout in (first, images, last) if few else (images, first, last):
        if _fits(layout.shape, shape):
            return np.ascontiguousarray(layout)
    raise ValueError(
        f"The graph takes images of shape {shape[1:]}; those given have shape {batch.shape[1:]}."
    )


def _fits(given: tuple[int, ...], wanted: list[Any]) -> bool:
    """Whether a shape has the sizes that the graph knows; names stand for any size."""
    return all(
        not isinstance(want, int) or have == want
        for have, want in zip(given[1:], wanted[1:], strict=True)
    )


def _squeezed(batch: NDArray[Any]) -> tuple[int, ...]:
    """Shape of one grey image whose channel axis is left out."""
    return tuple(size for size in batch.shape[1:] if size != 1)
