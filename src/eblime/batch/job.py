"""A run as it is sent to its workers, and the checks of its explainer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from eblime.batch.inputs import Inputs
from eblime.batch.location import Location
from eblime.explainers.base import BaseExplainer
from eblime.protocols import DeviceModel

__all__ = ["Job", "Rules", "check_explainer", "make_explainer", "on_gpu", "part_numbers"]


def check_explainer(given: Any) -> None:
    """Refuse objects that are neither an explainer nor a function that may create one."""
    if not (isinstance(given, BaseExplainer) or callable(given)):
        raise TypeError(
            "`explainer` must be an explainer, such as ImageExplainer or TabularExplainer, or a "
            f"function that creates one; got {type(given).__name__}."
        )


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


def part_numbers(settings: Mapping[str, Any], part: int) -> range:
    """The inputs of a part."""
    size = settings["part_size"]
    return range(part * size, min((part + 1) * size, settings["count"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What the process that supervises workers needs: everything except the model and inputs."""

    settings: Mapping[str, Any]
    folder: Location
    timeout: float | None  # seconds per input


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A run as it is sent to its workers."""

    explainer: Any  # or a function that creates it
    inputs: Inputs
    settings: Mapping[str, Any]
    folder: Location
    resumed: bool  # some parts are finished, perhaps by another model
    timeout: float | None = None  # seconds per input

    @property
    def rules(self) -> Rules:
        """What the process that supervises workers needs."""
        return Rules(settings=self.settings, folder=self.folder, timeout=self.timeout)
