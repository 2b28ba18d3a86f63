"""Which model is it? Certain for a model that is a file; any other needs a name by the user."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from types import MethodType
from typing import Any

from eblime._digest import UnknownContentError, digest_of
from eblime.models.onnx import OnnxModel
from eblime.models.signal import SignalModel

_FUNCTIONS = ("preprocess", "reader")  # settings of eblime's own models
_LEFT_OUT = ("url", "key_name", "digest", "device")  # they change no answer
_DATA = (str, int, float, tuple, Mapping)


def fingerprint(model: object) -> str:
    """A string that changes when the model's content does, and is the same in every process.

    An ONNX file without external data is its bytes, with the settings of its `OnnxModel`. Other
    kinds of models, and the user's own code in it, raise an `UnknownContentError`: what code does
    can depend on other code, files and services, so that no digest of it is certain.
    """
    if isinstance(model, SignalModel):
        return f"{fingerprint(model.model)}-{model.layout}"
    if not isinstance(model, OnnxModel):
        raise UnknownContentError(
            "what it returns can depend on other code, data, files or services"
        )
    if model.digest is None:
        raise UnknownContentError("it was not loaded from an .onnx file with its weights inside")
    for function in (model.preprocess, model.reader):
        if function is not None and not type(function).__module__.startswith("eblime."):
            raise UnknownContentError("its `preprocess` or `reader` is code, which may change")
    settings = (model.preprocess, model.activation, model.output, model.reader)
    return digest_of(("onnx", model.digest, *settings))


def named(model: object, model_id: str) -> str:
    """The user's name of a model, and a digest of the settings that eblime wraps the model with.

    They are the reader, the length of a written answer, ... Functions count by their code, and not
    at all where that cannot be compared. A function that compares answers must have a name of its
    own, its attribute `model_id`: the same model is often asked with several of them.
    """
    return f"{model_id} {digest_of([*_settings(model)])}"


def _is_adapter(model: object) -> bool:
    return type(model).__module__.startswith("eblime.models.") and is_dataclass(model)


def _settings(model: Any) -> Iterator[tuple[str, str]]:
    """Settings of eblime's own models around a model, without the model itself."""
    for entry in fields(model) if _is_adapter(model) else ():
        value = getattr(model, entry.name)
        if not entry.compare or entry.name in _LEFT_OUT:
            continue
        if entry.name == "score" and callable(value):  # it compares answers
            if not isinstance(getattr(value, "model_id", None), str):
                wrong = "`cache` needs a name for the function `score`, which may change: set"
                raise TypeError(f'{wrong} its attribute, such as judge.model_id = "judge 1".')
            yield entry.name, value.model_id
        elif isinstance(value, MethodType):
            yield entry.name, value.__name__
        elif _is_adapter(value):
            yield from _settings(value)
        elif entry.name in _FUNCTIONS or isinstance(value, _DATA):
            with suppress(UnknownContentError):
                yield entry.name, digest_of(value)
