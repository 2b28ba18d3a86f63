"""A run as it is sent to its workers, and the checks of its explainer."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from eblime._text import printable
from eblime.batch.inputs import Inputs
from eblime.batch.location import Location
from eblime.explainers.base import BaseExplainer
from eblime.protocols import DeviceModel, Stop

__all__ = [
    "Job",
    "check_explainer",
    "make_explainer",
    "on_gpu",
]


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
