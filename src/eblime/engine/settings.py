"""Settings of the loop: checked, limited by what a method takes, with a stop rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from eblime._checks import check_count, check_number
from eblime._repr import describe
from eblime.designs.rounds import check_design
from eblime.engine.calls import Calls
from eblime.engine.targets import Labels, check_labels
from eblime.kernels import as_kernel
from eblime.methods.regression import as_method
from eblime.protocols import Kernel, Method, Scene, Stop
from eblime.stopping.rule import Rule
from eblime.stopping.rules import as_rule

_AUTO_ALL = 10  # features up to which n_masks="auto" asks about all masks
_AUTO_MASKS = 1024  # otherwise, or one block of orthogonal masks: whole blocks


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopSettings:
    """How any input is asked about, weighed and fitted; what all explainers share."""

    model: Any
    n_masks: int | Literal["auto"]  # see `masks_for`
    design: Any  # a name, a function or an object; None is the domain's own law
    kernel: str | Kernel | None
    method: Method  # see `method_for`
    labels: Labels | None
    about: Mapping[str, Any]  # how the input was read, for the reader of the results
    steady: bool = False  # batch sizes must not depend on how fast the machine is
    calls: Calls = field(default_factory=Calls)  # how the model is called
    until: Stop | None = None  # the rule that ends the questions
    max_masks: int = 5000  # the most to ask about with a rule; `for_input` sets it in any case
    max_seconds: float | None = None  # the time after which no further round begins
    crowded: bool = False  # no warning if there are more features than masks
    spent: int = 0  # model calls before the loop: for the answer to a prompt, or to find boxes

    @property
    def may_end_early(self) -> bool:
        """Whether a rule or a time can end the questions."""
        return self.until is not None or self.max_seconds is not None

    def check(self) -> None:
        """Refuse settings that cannot work, before any input is read."""
        check_masks(self.n_masks)
        check_labels(self.labels)
        as_kernel(self.kernel)
        if self.design is not None:
            check_design(self.design, self.method)

    def masks_for(self, p: int = _AUTO_ALL + 1) -> int:
        """How many masks to ask about an input with p features; by default with more than ten."""
        if self.n_masks != "auto":
            return self.n_masks
        if p <= _AUTO_ALL:
            return 1 << p
        return _AUTO_MASKS if p <= _AUTO_MASKS // 2 else 2 * _AUTO_MASKS

    def may_ask_all(self, p: int) -> bool:
        """Whether the model may be asked about all 2^p masks."""
        return self.calls.max_calls is None or 2**p <= self.calls.max_calls

    def for_input(self, scene: Scene, *, exact: bool) -> LoopSettings:
        """The settings for an input, with `n_masks` and `max_masks` that suit it, or refused.

        With a stop rule, no more masks are used than the method takes. Where there is room for all
        2^p masks (and `exact`: masks determine the perturbed inputs), a design given by its name
        asks about all of them in the end, which need no fit: then nothing is cut.
        """
        p, method, n_masks = scene.n_features, self.method, self.masks_for(scene.n_features)
        least, calls = min(2**p, n_masks + 1, p + 3), self.calls.max_calls  # and the input itself
        if calls is not None and calls < least:
            raise ValueError(
                f"`max_calls` must be at least {least} for an input with {p} features; got {calls}."
            )
        if calls is not None and self.n_masks == "auto" and calls < 2**p:
            n_masks = min(n_masks, calls - 1)
        budget = n_masks if self.until is None else self.max_masks
        room_for_all = exact and 2**p <= budget and self.may_ask_all(p)
        most = getattr(method, "most_masks", None)
        if most is not None and not (room_for_all and isinstance(self.design, str)):
            if self.until is not None:
                budget = min(budget, most)
            elif min(n_masks, 2**p) > most and not room_for_all:
                raise ValueError(
                    f"`n_masks` must be at most {most:,} for {method.name}, or at least "
                    f"2^{p} to ask about all masks; got {n_masks:,}. Use EBLIME() for more "
                    "masks."
                )
        for part in (method, self.until):
            if check := getattr(part, "check_features", None):
                check(p)
        if getattr(method, "ends", "unused") == "required" and not exact:
            raise ValueError(
                "`method` needs the score with everything hidden, which an input of the domain "
                f"{scene.domain!r} does not have with these settings; got {method!r}."
            )
        return replace(self, n_masks=n_masks, max_masks=budget)


def check_masks(n_masks: Any) -> None:
    """Refuse what is neither a number of masks nor "auto"."""
    if n_masks != "auto":
        check_count("n_masks", n_masks, minimum=2)


def method_for(method: str | Method, kernel: str | Kernel | None) -> Method:
    """The method by its name or itself; one that needs no weights takes the kernel."""
    found = as_method(method)
    adapt = getattr(found, "with_kernel", None)
    adapted: Method = found if adapt is None else adapt(kernel)
    return adapted


def stop_settings(
    settings: LoopSettings, until: Any, max_masks: int | None, max_seconds: float | None = None
) -> LoopSettings:
    """The settings with a stop rule and its limits, checked; see `BaseExplainer.explain`.

    `max_masks` is only for a rule: without one, `n_masks` are asked.
    """
    rule = None if until is None else as_rule(until)
    check_max_masks(max_masks, rule)
    if max_seconds is not None:
        check_number("max_seconds", max_seconds)
    if (
        isinstance(rule, Rule)
        and rule.needs_spread
        and not getattr(settings.method, "has_spread", True)
    ):
        raise ValueError(
            f"`until` needs a method that states its uncertainty, such as 'eblime'; got "
            f"{settings.method!r}."
        )
    return replace(
        settings, until=rule, max_masks=max_masks or settings.max_masks, max_seconds=max_seconds
    )


def check_max_masks(max_masks: int | None, rule: Stop | None) -> None:
    """Refuse a limit that is not a number of masks, or that comes without a rule."""
    if max_masks is None:
        return
    check_count("max_masks", max_masks)
    if rule is None:
        raise ValueError(
            "`max_masks` needs a stop rule, `until`; without one `n_masks` masks are used."
        )


def rule_name(until: Any) -> str:
    """A stop rule as it is written, or the name of a function."""
    known = repr(until) if isinstance(until, Rule) else getattr(until, "__qualname__", None)
    return str(describe(known or type(until).__qualname__))
