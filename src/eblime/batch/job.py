"""A run as it is sent to its workers, and the checks of its explainer."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from eblime._text import printable
from eblime.batch.inputs import Inputs, content, is_frame, is_sparse
from eblime.batch.location import Location
from eblime.domains.record import Domain
from eblime.explainers.base import BaseExplainer
from eblime.protocols import DeviceModel, Stop

__all__ = ["Job", "check_explainer", "explainer_settings", "make_explainer", "on_gpu"]

# the model is compared by its predictions; the others do not change a result
_LEFT_OUT = ("model", "progress", "cache", "calls")


def check_explainer(given: Any) -> None:
    """Refuse objects that are neither an explainer nor a function that may create one."""
    if isinstance(given, BaseExplainer) or (callable(given) and not _needs_arguments(given)):
        return
    got = type(given).__name__ + (" that needs arguments" if callable(given) else "")
    raise TypeError(
        "`explainer` must be an explainer, such as ImageExplainer or TabularExplainer, or a "
        f"function without arguments that creates one; got {got}."
    )


def _needs_arguments(function: Callable[..., Any]) -> bool:
    """Whether a function cannot be called without arguments, as a model cannot."""
    try:
        inspect.signature(function).bind()
    except TypeError:
        return True
    except ValueError:  # a function of a compiled module does not tell
        return False
    return False


def make_explainer(given: Any) -> BaseExplainer:
    """The explainer itself, or what a function that creates one returns."""
    check_explainer(given)
    made = given if isinstance(given, BaseExplainer) else given()
    if not isinstance(made, BaseExplainer):
        raise TypeError(
            "`explainer` must create an explainer, such as ImageExplainer or TabularExplainer; "
            f"it returned {type(made).__name__}."
        )
    return made


def on_gpu(explainer: Any) -> bool:
    """Whether the model of an explainer runs on a GPU; False if it is not created yet."""
    if not isinstance(explainer, BaseExplainer):
        return False
    model = explainer.loop.model
    return isinstance(model, DeviceModel) and model.on_gpu


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A run as it is sent to its workers."""

    explainer: Any  # or a function that creates it
    inputs: Inputs
    settings: Mapping[str, Any]
    folder: Location
    run: str  # the id of the run
    resumed: bool  # some parts are finished, perhaps by another model
    timeout: float | None = None  # seconds per input
    until: Stop | None = None  # the rule that ends the questions about an input

    def name(self, number: int) -> str:
        """The name of an input; its number if the name cannot be read."""
        try:
            return printable(self.inputs.name(number))
        except Exception:
            return str(number)


def explainer_settings(explainer: Any) -> dict[str, str]:
    """The settings of an explainer that decide its results, except its model, as strings."""
    calls = explainer.loop.calls
    found = {"kind": type(explainer).__name__, "batch_size": str(calls.batch_size)}
    if calls.max_calls is not None:
        found["max_calls"] = str(calls.max_calls)
    for entry in fields(explainer):
        if entry.name not in _LEFT_OUT and not entry.name.startswith("_"):
            found[entry.name] = _as_string(entry.name, getattr(explainer, entry.name))
    return found


def _as_string(name: str, value: Any) -> str:
    """A setting as a short string that is the same in every process."""
    if name == "labels" and isinstance(value, Mapping):
        value = {int(column): str(label) for column, label in sorted(value.items())}
    elif name == "labels" and value is not None:
        value = [str(label) for label in value]
    elif name == "settings" and isinstance(value, Mapping):  # of a domain
        value = {str(key): _as_string("", value[key]) for key in sorted(value, key=str)}
    if isinstance(value, Domain):
        return value.name
    if isinstance(value, tuple):  # such as ("entropy", labels)
        value = tuple(
            item if isinstance(item, (str, int, float)) else _as_string("", item) for item in value
        )
    if isinstance(value, np.ndarray) or is_frame(value) or is_sparse(value):
        return hashlib.sha256(content(value)).hexdigest()
    if hasattr(value, "write_ipc"):  # a polars frame
        return hashlib.sha256(content(value.to_pandas())).hexdigest()
    words = repr(value).split(" at 0x")[0]
    return words if len(words) <= 200 else hashlib.sha256(words.encode()).hexdigest()
