"""ONNX networks, run by onnxruntime; layout, dtype and batch size are read from the graph."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from eblime._checks import check_choice
from eblime._lazy import import_extra
from eblime.models.conversion import ACTIVATIONS, as_array, default_output, read_scores

_TYPES = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(double)": np.float64,
    "tensor(uint8)": np.uint8,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OnnxModel:
    """An ONNX network that classifies or scores images, rows, signals or volumes.

    Parameters
    ----------
    session
        An `onnxruntime.InferenceSession`; `OnnxModel.load(path)` opens a file.
    preprocess
        A function of the batch before the graph is run. It gets float32 in the graph's layout;
        uint8 images are scaled to [0, 1], and floats are passed as they are. A graph with uint8
        input gets uint8. None does nothing.
    activation
        As for `TorchModel`.
    output
        Name of the output to explain. None takes the only one, or the one named `logits`; a graph
        with several other outputs needs a name.
    reader
        As for `TorchModel`; it gets all outputs by name, or that of `output` alone.
    digest
        Of the bytes of the file that `load` opened, by which a cache of answers recognises it; None
        for a session, and for a file that may have parts in others.

    Examples
    --------
    A graph that returns the mean of each colour; `OnnxModel.load` takes the path of a file, too:

    >>> import numpy as np
    >>> import onnxruntime
    >>> from onnx import TensorProto, helper
    >>> import eblime
    >>> pixels = helper.make_tensor_value_info("pixels", TensorProto.FLOAT, ["n", 3, 8, 8])
    >>> colours = helper.make_tensor_value_info("colours", TensorProto.FLOAT, ["n", 3])
    >>> mean = helper.make_node("ReduceMean", ["pixels"], ["colours"], axes=[2, 3], keepdims=0)
    >>> graph = helper.make_graph([mean], "means", [pixels], [colours])
    >>> opset = helper.make_opsetid("", 13)
    >>> network = helper.make_model(graph, opset_imports=[opset], ir_version=8)
    >>> session = onnxruntime.InferenceSession(
    ...     network.SerializeToString(), providers=["CPUExecutionProvider"]
    ... )
    >>> model = eblime.OnnxModel.load(session, activation="softmax")
    >>> yellow = np.zeros((8, 8, 3), dtype=np.uint8)
    >>> yellow[..., :2] = 255
    >>> model(yellow[None]).round(2)
    array([[0.42, 0.42, 0.16]])
    """

    session: Any
    preprocess: Callable[[np.ndarray], object] | None = None
    activation: Literal["auto", "softmax", "sigmoid", "none"] = "auto"
    output: str | None = None
    reader: Callable[[Any, int], object] | None = None
    digest: str | None = None
    decided: dict[str, str] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_choice("activation", self.activation, ACTIVATIONS)
        if not callable(getattr(self.session, "get_inputs", None)):
            raise TypeError(
                f"`session` must be an onnxruntime session; got {self.session!r}. "
                "For a file use OnnxModel.load(path)."
            )
        known = {output.name: output.type for output in self.session.get_outputs()}
        if self.output is not None:
            check_choice("output", self.output, tuple(known))
        name, *others = self._names()
        if not others and not known[name].startswith("tensor"):
            raise TypeError(
                f"The output {name!r} of the graph must be a tensor; it is a {known[name]}. Export "
                "the model with zipmap=False, or choose another output with `output`: "
                f"{', '.join(map(repr, known))}."
            )

    def _names(self) -> list[str]:
        known = [output.name for output in self.session.get_outputs()]
        chosen = self.output or (None if self.reader else default_output(known))
        return [str(chosen)] if chosen else known

    @classmethod
    def load(cls, source: Any, **settings: Any) -> OnnxModel:
        """Open an ONNX file, or wrap a session.

        Parameters
        ----------
        source
            The path of a file, or an `onnxruntime.InferenceSession`.
        **settings
            `preprocess`, `activation` and `output`; see the class.
        """
        if not isinstance(source, (str, os.PathLike)):
            return cls(session=source, **settings)
        onnxruntime = import_extra("onnxruntime", "onnx")
        path = Path(source)
        if not path.is_file():
            raise FileNotFoundError(
                f"`model` comes first: the path of an ONNX file; {str(path)!r} does not exist."
            )
        content = path.read_bytes()
        # tensors in other files have a "location"; they are found beside a path
        whole = path.suffix == ".onnx" and b"location" not in content
        options = onnxruntime.SessionOptions()
        if os.environ.get("EBLIME_THREADS"):  # set in worker processes, which share the cores
            options.intra_op_num_threads = int(os.environ["EBLIME_THREADS"])
        providers = onnxruntime.get_available_providers()  # 1.16 does not choose by itself
        opened = content if whole else str(path)
        session = onnxruntime.InferenceSession(opened, options, providers=providers)
        digest = hashlib.blake2b(content, digest_size=16).hexdigest() if whole else None
        return cls(session=session, digest=digest, **settings)

    @property
    def scales_uint8(self) -> bool:
        """Whether uint8 images are divided by 255; not for a graph with uint8 input."""
        return bool(self.session.get_inputs()[0].type != "tensor(uint8)")

    def __call__(self, batch: Any) -> np.ndarray:
        """Score a batch of images, (n, H, W), (n, H, W, C) or (n, C, H, W), or of rows, (n, d)."""
        batch = as_array(batch)
        entry = self.session.get_inputs()[0]
        kind = _TYPES.get(entry.type)
        if kind is None:
            raise TypeError(
                f"The graph's input must be one of {', '.join(_TYPES)}; got {entry.type}."
            )
        if kind is np.uint8 and batch.dtype != np.uint8:
            raise TypeError(f"The image must be uint8, like the graph's input; got {batch.dtype}.")
        images = _arrange(batch, entry.shape)
        if kind is not np.uint8:
            is_photo = batch.dtype == np.uint8 and batch.ndim > 2
            images = images.astype(np.float32) / (255 if is_photo else 1)
        images = images if self.preprocess is None else np.asarray(self.preprocess(images))
        return self._run(images.astype(kind, copy=False), entry)

    def _run(self, images: np.ndarray, entry: Any) -> np.ndarray:
        """Run the graph; one with a fixed batch size is run several times, the last one padded."""
        fixed = entry.shape[0] if isinstance(entry.shape[0], int) else len(images)
        padded = np.concatenate([images, np.repeat(images[-1:], -len(images) % fixed, axis=0)])
        names, parts = self._names(), []
        for start in range(0, len(padded), fixed):
            found = self.session.run(names, {entry.name: padded[start : start + fixed]})
            parts.append(read_scores(self, dict(zip(names, found, strict=True)), fixed))
        return np.concatenate(parts)[: len(images)].astype(np.float64)


def _arrange(batch: np.ndarray, shape: list[object]) -> np.ndarray:
    """Bring a batch into the graph's layout: unchanged, with the channels moved, or flattened."""
    if len(shape) == 2:
        return batch.reshape(len(batch), -1)
    if len(shape) == 3:
        grey = [size for size in batch.shape[1:] if size != 1]  # without a channel axis
        return batch if batch.ndim == 3 else batch.reshape(len(batch), *grey)
    images = batch[..., None] if batch.ndim == len(shape) - 1 else batch
    first, last = np.moveaxis(images, -1, 1), np.moveaxis(images, 1, -1)
    few = images.shape[-1] <= 4 < images.shape[1]  # channels last; most graphs have them first
    for layout in (first, images, last) if few else (images, first, last):
        pairs = zip(layout.shape[1:], shape[1:], strict=False)  # named axes may have any size
        same = all(have == want or not isinstance(want, int) for have, want in pairs)
        if same and layout.ndim == len(shape):
            return np.ascontiguousarray(layout)
    raise ValueError(
        f"The inputs must have the shape of the graph's input, {shape[1:]}; got {batch.shape[1:]}."
    )
