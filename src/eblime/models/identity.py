"""Which model is it? A digest of a model's content: weights, code and settings."""

from __future__ import annotations

import glob
import hashlib
import json
import weakref
from pathlib import Path
from typing import Any

from eblime._digest import UnknownContentError, digest_of
from eblime.models.conversion import descends
from eblime.models.onnx import OnnxModel

__all__ = ["fingerprint"]

_Seen = tuple[Any, str]  # a quick check of the weights, and their digest
_NETWORKS: weakref.WeakKeyDictionary[Any, _Seen] = weakref.WeakKeyDictionary()
_FILES: dict[tuple[str, int, int], str] = {}  # path, time of change and size -> digest


def fingerprint(model: Any) -> str:
    """A string that changes when the model's content does, and is the same in every process.

    Networks are compared by their weights, files by their bytes, estimators by their pickle, and
    functions by their code and what it refers to.

    Raises
    ------
    TypeError
        If the content of the model cannot be found out, such as that of a client of a service.
    """
    try:
        return digest_of(model, replace=_content)
    except (UnknownContentError, RecursionError) as error:
        raise TypeError(
            "`cache` must know which model gave an answer, and this model cannot be recognised by "
            f"its content: {error}. Name it: cache=eblime.AnswerCache(path, "
            'model_id="name and version").'
        ) from error


def _content(value: Any) -> Any:
    """What identifies an object of another package; None for other objects."""
    if isinstance(value, OnnxModel):
        settings = (value.preprocess, value.activation, value.output)
        return ("onnx", _file(value), *settings)
    if descends(value, "keras", "Layer") or descends(value, "tf_keras", "Layer"):
        return ("keras", json.dumps(value.get_config(), default=str), value.get_weights())
    if descends(value, "torch", "Module"):
        return ("torch", type(value), repr(value), _weights(value))
    if descends(value, "torch", "Tensor"):
        return ("tensor", str(value.dtype), tuple(value.shape), _bytes(value))
    if descends(value, "xgboost", "Booster"):
        return ("xgboost", bytes(value.save_raw()))
    if descends(value, "transformers", "Pipeline"):
        words: dict[str, int] = getattr(value.tokenizer, "get_vocab", dict)()
        return ("pipeline", value.task, value.model, sorted(words.items()))
    return None


def _weights(network: Any) -> str:
    """A digest of a network's parameters and buffers.

    It is computed again only if a quick check fails: versions, dtypes, shapes and sums of all
    tensors.
    """
    tensors = dict(sorted(network.state_dict(keep_vars=True).items()))
    tensors = {name: tensor for name, tensor in tensors.items() if hasattr(tensor, "data_ptr")}
    quick = [
        (name, tensor._version, str(tensor.dtype), tuple(tensor.shape), _sum(tensor))
        for name, tensor in tensors.items()
    ]
    seen = _NETWORKS.get(network)
    if seen is None or seen[0] != quick:
        found = hashlib.blake2b(digest_size=16)
        for name, tensor in tensors.items():
            found.update(f"{name}{tensor.dtype}{tuple(tensor.shape)}".encode())
            found.update(_bytes(tensor))
        seen = (quick, found.hexdigest())
        _NETWORKS[network] = seen
    return seen[1]


def _sum(tensor: Any) -> float:
    """The sum of a tensor's numbers."""
    import torch

    return float(tensor.detach().sum(dtype=torch.float64))


def _bytes(tensor: Any) -> Any:
    """A tensor's numbers as bytes, of any dtype."""
    import torch

    return tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()


def _file(model: OnnxModel) -> str:
    """A digest of an ONNX file, and of the weights that are stored beside it."""
    if model.file is None:
        raise UnknownContentError("an onnxruntime session does not say which file it came from")
    path, *stamp = model.file
    try:
        unchanged = _stamp(Path(path)) == tuple(stamp)
    except OSError:
        unchanged = False
    if not unchanged:
        raise UnknownContentError(f"{path} has changed since it was loaded")
    if model.file not in _FILES:
        found = hashlib.blake2b(digest_size=16)
        beside = sorted(Path(path).parent.glob(f"{glob.escape(Path(path).stem)}*data*"))
        for part in (Path(path), *(entry for entry in beside if entry.is_file())):
            with part.open("rb") as stream:
                while chunk := stream.read(1 << 20):
                    found.update(chunk)
        _FILES[model.file] = found.hexdigest()
    return _FILES[model.file]


def _stamp(path: Path) -> tuple[int, int]:
    """Time of change and size of a file."""
    about = path.stat()
    return about.st_mtime_ns, about.st_size
