"""Which model is it? Certain for a model that is a file; any other needs a name by the user."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import lru_cache
from mmap import ACCESS_READ, mmap
from pathlib import Path
from types import MethodType
from typing import Any

from eblime._digest import UnknownContentError, digest_of
from eblime.models.onnx import OnnxModel, stamp_of
from eblime.models.signal import SignalModel

__all__ = ["fingerprint", "named"]

_FUNCTIONS = ("preprocess", "reader", "score")  # settings of eblime's own models
_LEFT_OUT = ("url", "key_name", "timeout", "file", "device")  # they change no answer


def fingerprint(model: Any) -> str:
    """A string that changes when the model's content does, and is the same in every process.

    An ONNX file without external data is its bytes, with the settings of its `OnnxModel`.

    Raises
    ------
    UnknownContentError
        If it is another kind of model, or has the user's own code in it: what code does can depend
        on other code, files and services, so that no digest of it is certain.
    """
    if isinstance(model, SignalModel):
        return f"{fingerprint(model.model)}-{model.layout}"
    if isinstance(model, OnnxModel):
        settings = (model.preprocess, model.activation, model.output, model.reader)
        return digest_of(("onnx", _file_digest(model), *settings))
    for name in ("model", "predict", "module", "network", "language"):  # inside our own records
        model = getattr(model, name, model) if _is_adapter(model) else model
    owner = model.__self__ if isinstance(model, MethodType) else model
    name = getattr(owner, "__qualname__", type(owner).__qualname__)
    raise UnknownContentError(
        f"what {name} returns can depend on other code, data, files or services"
    )


def named(model: Any, model_id: str) -> str:
    """The user's name of a model, and a digest of the settings that eblime wraps the model with.

    They are the reader, the function that compares answers, the length of a written answer, ...
    Functions count by their code, and not at all where that cannot be compared.
    """
    return f"{model_id} {digest_of([*_settings(model)])}"


def _is_adapter(model: Any) -> bool:
    """Whether a model is one of eblime's own records."""
    return type(model).__module__.startswith("eblime.models.") and is_dataclass(model)


def _settings(model: Any) -> Iterator[tuple[str, str]]:
    """Settings of eblime's own models around a model, without the model itself."""
    for entry in fields(model) if _is_adapter(model) else ():
        value = getattr(model, entry.name)
        if not entry.compare or entry.name in _LEFT_OUT:
            continue
        if isinstance(value, MethodType):
            yield entry.name, value.__name__
        elif _is_adapter(value):
            yield from _settings(value)
        else:
            with suppress(UnknownContentError):
                yield entry.name, digest_of(value, code=entry.name in _FUNCTIONS)


def _file_digest(model: OnnxModel) -> str:
    """A digest of an ONNX file."""
    if model.file is None:
        raise UnknownContentError("it does not say which file it came from")
    try:
        found, stamp = _digest_of_file(model.file), stamp_of(model.file[0])
    except OSError:
        found = stamp = None
    if stamp != model.file:
        raise UnknownContentError(f"{model.file[0]} has changed since it was loaded")
    if found is None:
        raise UnknownContentError(f"{model.file[0]} may have parts in other files")
    return found


@lru_cache(maxsize=8)
def _digest_of_file(stamp: tuple[Any, ...]) -> str | None:
    """A digest of a file; `stamp` changes when it does. None if it may name others.

    In an ONNX file, tensors in other files have a "location".
    """
    path = Path(stamp[0])
    with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
        named = path.suffix != ".onnx" or content.find(b"location") >= 0
        return None if named else hashlib.blake2b(content, digest_size=16).hexdigest()
