"""Which model is it? A digest of a model's content, where the content is certain."""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from pathlib import Path
from types import MethodType
from typing import Any

import numpy as np

from eblime._digest import UnknownContentError, digest_of
from eblime.models.adapt import with_reader
from eblime.models.conversion import descends
from eblime.models.language import ServerModel, TransformersModel
from eblime.models.likelihood import AnswerScore
from eblime.models.onnx import OnnxModel, stamps_of
from eblime.models.signal import SignalModel
from eblime.models.sklearn import SklearnModel, XgboostModel, has_method
from eblime.models.torch import TorchModel, lock_module

__all__ = ["fingerprint"]

_ESTIMATORS = {"sklearn", "lightgbm", "xgboost", "catboost"}


def fingerprint(model: Any) -> str:
    """A string that changes when the model's content does, and is the same in every process.

    An ONNX file is its bytes and those of all external data that it names. A torch network is every
    parameter, buffer and attribute, with its tokenizer if it is a language model; an estimator of
    scikit-learn, LightGBM, XGBoost or CatBoost is its pickle. All classes and functions in them
    must come from installed packages.

    Raises
    ------
    UnknownContentError
        If it is another kind of model, or has the user's own code in it: what code does can depend
        on other code, files and services, so that no digest of it is certain.
    """
    if isinstance(model, SignalModel):
        return f"{fingerprint(model.model)}-{model.layout}"
    model = with_reader(model, None)  # the input that answers are stored for names the scores
    if isinstance(model, OnnxModel):
        settings = (model.preprocess, model.activation, model.output)
        return digest_of(("onnx", _file_digest(model), *settings), replace=_content)
    if isinstance(model, TorchModel):
        with lock_module(model.module):  # another thread may be moving it to eval mode
            return digest_of(model, replace=_content)
    language = model.language if isinstance(model, AnswerScore) else model
    if isinstance(language, ServerModel):
        raise UnknownContentError(f"the server at {language.url} may change its model")
    if isinstance(language, TransformersModel):
        with lock_module(language.model):
            return digest_of(model, replace=_content)
    predict = model.predict if isinstance(model, SklearnModel) else language
    owner = predict.__self__ if isinstance(predict, MethodType) else predict
    packages = {kind.__module__.partition(".")[0] for kind in type(owner).__mro__}
    if isinstance(model, XgboostModel) or packages & _ESTIMATORS:
        return digest_of(model, replace=_content)
    name = getattr(owner, "__qualname__", type(owner).__qualname__)
    raise UnknownContentError(
        f"what {name} returns can depend on other code, data, files or services"
    )


def _content(value: Any) -> Any:
    """What to digest instead of an object of another package; None is the object itself."""
    if descends(value, "transformers", "PreTrainedTokenizerBase"):
        return ("tokenizer", type(value), *_tokenizer_content(value))
    if descends(value, "torch", "Tensor"):
        return ("tensor", str(value.dtype), tuple(value.shape), _tensor_digest(value))
    if descends(value, "torch", "GraphModule") or descends(value, "torch", "ScriptModule"):
        raise UnknownContentError("a traced network has code that cannot be compared")
    if descends(value, "sklearn", "_VectorizerMixin"):
        state = {key: part for key, part in vars(value).items() if key != "_stop_words_id"}
        return ("vectorizer", type(value), state)  # without the address of an object
    if has_method(value, "get_tree_stats"):  # neighbours: without the number of queries so far
        return ("tree", type(value), value.get_arrays())
    return None


def _tokenizer_content(tokenizer: Any) -> tuple[Any, ...]:
    """What a fast tokenizer does, without the padding and truncation of its last call."""
    rules = json.loads(tokenizer.backend_tokenizer.to_str())
    rules = {name: rule for name, rule in rules.items() if name not in ("padding", "truncation")}
    ids = (tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id)
    return json.dumps(rules), tokenizer.chat_template, ids, tokenizer.model_max_length


def _tensor_digest(tensor: Any) -> bytes:
    """A digest of a tensor's numbers, of any dtype, on any device."""
    import torch

    if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or tensor.is_quantized:
        raise UnknownContentError(f"a {type(tensor).__qualname__} may hold more than its numbers")
    numbers = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
    return hashlib.blake2b(numbers, digest_size=16).digest()


def _file_digest(model: OnnxModel) -> str:
    """A digest of an ONNX file and of all external data that it names."""
    if model.file is None:
        raise UnknownContentError("it does not say which files it came from")
    found = _files_digest(model.file)
    if stamps_of(model.file[0][0]) != model.file:
        raise UnknownContentError(f"{model.file[0][0]} or its data has changed since it was loaded")
    return found


@lru_cache(maxsize=8)
def _files_digest(stamps: tuple[tuple[Any, ...], ...]) -> str:
    """A digest of files; `stamps` begin with their paths and change when the files do."""
    found = hashlib.blake2b(digest_size=16)
    for path, *_ in stamps:
        size = Path(path).stat().st_size
        found.update(size.to_bytes(8, "little"))
        content: Any = np.memmap(path, np.uint8, "r") if size else b""
        found.update(content)
    return found.hexdigest()
