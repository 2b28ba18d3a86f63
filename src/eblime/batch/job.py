"""A run as it is sent to its workers, and the checks of its explainer."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from eblime.batch.folder import part_numbers, write_part
from eblime.batch.inputs import Inputs
from eblime.batch.location import Location
from eblime.batch.rows import Rows, failure_rows, failures_in, joined_rows
from eblime.engine.calls import Calls
from eblime.explainers.base import BaseExplainer
from eblime.protocols import DeviceModel, Stop

__all__ = [
    *("Job", "Rules", "check_explainer", "make_explainer", "on_gpu"),
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
class Rules:
    """What the process that supervises workers needs: everything except the model and inputs."""

    settings: Mapping[str, Any]
    folder: Location
    run: str  # the id of the run
    timeout: float | None  # seconds per input

    def numbers(self, part: int) -> range:
        """The inputs of a part."""
        return part_numbers(self.settings, part)

    def failure(self, number: int, name: str, error: Exception) -> Rows:
        """What is stored for an input that crashed its worker or ran out of time."""
        return failure_rows(number, name, error)

    def finish(self, part: int, rows: Mapping[int, Rows], about: Mapping[str, str]) -> int:
        """Write a part that was done in pieces; returns how many of its inputs failed."""
        joined = joined_rows(rows[number] for number in sorted(rows))
        write_part(self.folder, self.run, part, joined, about)
        return failures_in(joined)


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
    calls: Calls | None = None  # overrides the explainer's

    @property
    def rules(self) -> Rules:
        """What the process that supervises workers needs."""
        return Rules(settings=self.settings, folder=self.folder, run=self.run, timeout=self.timeout)

    def start(self) -> Any:
        """The worker of this run, created in the process that does the work."""
        from eblime.batch.worker import Worker  # which imports this module

        return Worker.start(self)
