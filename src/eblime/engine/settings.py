"""Settings of the loop, and the questions that it asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from eblime._checks import check_count, check_number
from eblime._repr import stable_repr
from eblime._types import FloatArray, IntArray
from eblime.designs.rounds import check_design
from eblime.engine.calls import Calls
from eblime.engine.plan import Reply
from eblime.engine.targets import Labels, check_labels, columns_of
from eblime.kernels import as_kernel
from eblime.methods.regression import as_method
from eblime.protocols import Kernel, Method, Neighbourhood, Stop
from eblime.stopping.rule import Rule
from eblime.stopping.rules import as_rule

__all__ = [
    "LoopSettings",
    "Question",
    "brief",
    "check_max_masks",
    "rule_name",
    "stop_settings",
]

_MAX_MASKS = 5000  # with a stop rule, unless the user says otherwise


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopSettings:
    """How any input is asked about, weighed and fitted; what all explainers share."""

    model: Any
    n_masks: int
    design: Any  # a name, a function or an object; None is the domain's own law
    kernel: str | Kernel | None
    method: str | Method
    labels: Labels | None
    about: Mapping[str, str]  # how the input was read, for the reader of the results
    steady: bool = False  # batch sizes must not depend on how fast the machine is
    calls: Calls = field(default_factory=Calls)  # how the model is called
    until: Stop | None = None  # the rule that ends the questions
    max_masks: int = _MAX_MASKS  # the most masks to ask about with a rule
    max_seconds: float | None = None  # the time after which no further round begins

    @property
    def budget(self) -> int:
        """The most masks to ask about."""
        return self.n_masks if self.until is None else self.max_masks

    @property
    def fitted_by(self) -> Method:
        """The method; one that needs no weights takes the kernel of these settings."""
        method = as_method(self.method)
        adapt = getattr(method, "with_kernel", None)
        adapted: Method = method if adapt is None else adapt(self.kernel)
        return adapted

    def check(self) -> None:
        """Refuse settings that cannot work, before any input is read."""
        check_count("n_masks", self.n_masks)
        check_labels(self.labels)
        as_method(self.method)
        as_kernel(self.kernel)
        if self.design is not None:
            check_design(self.design, self.fitted_by)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Question:
    """Perturbed inputs that the loop wants scores for."""

    neighbourhood: Neighbourhood
    rows: IntArray  # numbers of the perturbed inputs
    targets: Any  # which outputs to keep: a number of the highest, or a list
    labels: Labels | None
    ranked: bool  # whether the outputs can be compared, as those of a classifier
    opening: Reply | None  # the reply of the first round; None in the first round
    expected: int = 0  # masks that it will take in all, as far as is known
    before: FloatArray | None = None  # (n, T) scores of the perturbed inputs before these
    budget: int | None = None  # inputs that the model may be asked about; None is no limit
    least: int = 1  # different inputs that must have an answer if the user interrupts

    def choose(self, original: FloatArray) -> Sequence[int]:
        """The outputs to keep, given the scores of the input itself."""
        return columns_of(self.targets, original, self.labels, ranked=self.ranked)


def stop_settings(
    settings: LoopSettings, until: Any, max_masks: int | None, max_seconds: float | None = None
) -> LoopSettings:
    """The settings with a stop rule and its limits, checked.

    Parameters
    ----------
    settings
        Of the loop.
    until
        A rule, its text such as "top5", a function of (posterior, answers), or None.
    max_masks
        The most masks; None is 5,000. Only with a rule: without one, `n_masks` are asked. The loop
        asks about fewer if the method takes fewer.
    max_seconds
        The time after which no further round begins; None has no limit.
    """
    rule = None if until is None else as_rule(until)
    check_max_masks(max_masks, rule)
    if max_seconds is not None:
        check_number("max_seconds", max_seconds)
    spread = getattr(as_method(settings.method), "has_spread", True)
    if isinstance(rule, Rule) and rule.needs_spread and not spread:
        raise ValueError(
            f"`until` needs a method that states its uncertainty, such as 'eblime'; got "
            f"{settings.method!r}."
        )
    return replace(settings, until=rule, max_masks=max_masks or _MAX_MASKS, max_seconds=max_seconds)


def check_max_masks(max_masks: int | None, rule: Stop | None) -> None:
    """Refuse a limit that is not a number of masks, or that comes without a rule."""
    if max_masks is None:
        return
    check_count("max_masks", max_masks)
    if rule is None:
        raise ValueError(
            "`max_masks` needs a stop rule, `until`; without one `n_masks` masks are asked."
        )


def rule_name(until: Any) -> str:
    """A stop rule as it is written, or the name of a function."""
    known = repr(until) if isinstance(until, Rule) else getattr(until, "__qualname__", None)
    return brief(known or type(until).__qualname__)


def brief(setting: Any) -> str:
    """A setting on one short line."""
    words = " ".join(setting.split()) if isinstance(setting, str) else stable_repr(setting)
    return words if len(words) <= 120 else f"{words[:119]}…"
