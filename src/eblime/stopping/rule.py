"""What all stop rules share: a verdict on a posterior, and the operators `&` and `|`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import MISSING, dataclass, fields

from eblime.answers import Answers
from eblime.posterior import Posterior

__all__ = ["All", "AnyOf", "Rule", "Verdict"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a rule says about the answers so far."""

    reached: bool
    text: str  # what is known, and how certainly
    factor: float  # how many times as many masks it will probably take; at most 1 if reached


class Rule(ABC):
    """A stop rule: a function (posterior, answers) -> reason or None, combined with `&` and `|`.

    Subclasses are frozen dataclasses whose first field is their positional argument.
    """

    __slots__ = ()

    @abstractmethod
    def judge(self, posterior: Posterior, answers: Answers, share: float = 1.0) -> Verdict:
        """Whether the rule is reached, what is known, and how much is missing.

        Parameters
        ----------
        posterior, answers
            Of all masks so far.
        share
            The part of the rule's error rate that may be used, at most 1. Rules that are combined
            share theirs, so that the statement as a whole keeps it.
        """

    @property
    def needs_spread(self) -> bool:
        """Whether it needs a method that states its uncertainty."""
        return True

    def __call__(self, posterior: Posterior, answers: Answers) -> str | None:
        """What is known, if that is enough to stop; None otherwise."""
        verdict = self.judge(posterior, answers)
        return verdict.text if verdict.reached else None

    def __and__(self, other: Rule) -> Rule:
        """Both rules must be reached."""
        return All(rules=_listed(All, self, other)) if isinstance(other, Rule) else NotImplemented

    def __or__(self, other: Rule) -> Rule:
        """One of the rules must be reached."""
        if not isinstance(other, Rule):
            return NotImplemented
        return AnyOf(rules=_listed(AnyOf, self, other))

    def __repr__(self) -> str:
        """The rule as it is written, with the settings that differ from the defaults."""
        shown = []
        for number, entry in enumerate(fields(self)):  # type: ignore[arg-type]
            value = getattr(self, entry.name)
            if number == 0 and (entry.default is MISSING or not entry.kw_only):
                shown.append(f"{value!r}")
            elif value != entry.default or entry.name == "prob":
                shown.append(f"{entry.name}={value!r}")
        return f"{type(self).__name__}({', '.join(shown)})"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class All(Rule):
    """Every rule must be reached: `a & b`."""

    rules: tuple[Rule, ...]

    @property
    def needs_spread(self) -> bool:
        """Whether one of the rules needs a method that states its uncertainty."""
        return any(rule.needs_spread for rule in self.rules)

    def judge(self, posterior: Posterior, answers: Answers, share: float = 1.0) -> Verdict:
        """The verdicts of all rules, which share the error rate."""
        verdicts = _verdicts(self.rules, posterior, answers, share)
        return Verdict(
            reached=all(verdict.reached for verdict in verdicts),
            text="; ".join(verdict.text for verdict in verdicts),
            factor=max(verdict.factor for verdict in verdicts),
        )

    def __repr__(self) -> str:
        """The rules joined by `&`."""
        return " & ".join(f"({r!r})" if isinstance(r, AnyOf) else repr(r) for r in self.rules)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class AnyOf(Rule):
    """One rule must be reached: `a | b`."""

    rules: tuple[Rule, ...]

    @property
    def needs_spread(self) -> bool:
        """Whether one of the rules needs a method that states its uncertainty."""
        return any(rule.needs_spread for rule in self.rules)

    def judge(self, posterior: Posterior, answers: Answers, share: float = 1.0) -> Verdict:
        """The verdicts of the rules that are reached, or of all; they share the error rate."""
        verdicts = _verdicts(self.rules, posterior, answers, share)
        met = [verdict for verdict in verdicts if verdict.reached]
        return Verdict(
            reached=bool(met),
            text="; ".join(verdict.text for verdict in met or verdicts),
            factor=min(verdict.factor for verdict in verdicts),
        )

    def __repr__(self) -> str:
        """The rules joined by `|`."""
        return " | ".join(map(repr, self.rules))


def _verdicts(
    rules: tuple[Rule, ...], posterior: Posterior, answers: Answers, share: float
) -> list[Verdict]:
    """The verdict of each rule, with an equal part of the error rate."""
    return [rule.judge(posterior, answers, share / len(rules)) for rule in rules]


def _listed(kind: type[All] | type[AnyOf], *rules: Rule) -> tuple[Rule, ...]:
    """The rules, with those of the same kind of combination taken apart."""
    found: list[Rule] = []
    for rule in rules:
        found.extend(rule.rules if isinstance(rule, kind) else [rule])
    return tuple(found)
