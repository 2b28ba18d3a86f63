"""What all stop rules share: verdicts, combinations, and what it costs to look repeatedly.

A statement that is checked after every round gets many chances to be wrong. Estimates from N masks
behave like a Brownian motion at time N, so the chance that one of them crosses a limit at any look
can be computed. `look_penalty` bounds it for looks at 64, 96, 128, 192, ... masks: each total is
at least 4/3 of the one before. tests/stopping/test_rule.py computes the chance itself.

All this takes the answers as typical of those that were not asked. `unseen_risk` is for fits that
miss next to nothing, whose answers cannot tell what they would miss elsewhere.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields

import numpy as np
from numpy.typing import NDArray
from scipy import special

from eblime._types import BoolArray, FloatArray
from eblime.answers import Answers
from eblime.posterior import Posterior

__all__ = [
    "FIRST",
    "GROWTH",
    "UNSEEN",
    "Combination",
    "Rule",
    "Verdict",
    "is_due",
    "look_penalty",
    "masks_factor",
    "next_total",
    "probability_text",
    "round_up",
    "unseen_risk",
    "verdict_on",
]

FIRST = 64  # masks before the first look
GROWTH = 1.3  # masks grow at least by this factor from one look to the next

_LEAST = 48  # masks below which no design is worth a look
_LEVEL = 4096  # masks up to which all looks have the same level; later ones have smaller ones
_BASE = 4.3  # with the logarithm of the level: the number of independent looks that they are worth
_RARE = 300  # a jump in one of so many masks must not go unseen
UNSEEN = (
    "but the fit misses next to nothing, and so few masks cannot rule out a jump in one of "
    f"{_RARE} masks"
)
_IN_RANGE = "if no other mask has a score outside the range of those asked"
_LONGEST = 1e6  # factor of the masks beyond which an estimate says nothing
_MORE = 1.01  # least factor of a rule that is not reached
_DRAWS = 1000  # for the probability of a statement that is far from certain


def look_penalty(alpha: float, n_masks: int) -> float:
    """By how much the error at one look must be below `alpha`, so that all looks keep it.

    Examples
    --------
    >>> round(look_penalty(0.05, 1000), 1), round(look_penalty(0.01, 1000), 1)
    (7.3, 8.9)
    """
    return float((_BASE - np.log(alpha)) * max(1.0, n_masks / _LEVEL) ** 2)


def is_due(n_masks: int, last: int, least: int | None = None) -> bool:
    """Whether to look again, given the number of masks now and at the last look.

    `least` masks are worth a look, by the design; None is the usual number.
    """
    return n_masks >= (least or _LEAST) and n_masks >= GROWTH * last


def next_total(n_masks: int, least: int = FIRST) -> int:
    """The number of masks at the next look: 64, 96, 128, 192, 256, ...

    Every round is then a multiple of 32, so that batches stay full.

    Parameters
    ----------
    n_masks
        Masks asked so far.
    least
        Masks before the first look, at least.

    Examples
    --------
    >>> next_total(0), next_total(64), next_total(96), next_total(0, 120)
    (64, 96, 128, 128)
    """
    totals: NDArray[np.int64] = np.array([[2, 3]]) << np.arange(5, 60)[:, None]
    allowed = totals[(totals > n_masks) & (totals >= max(least, FIRST))]
    return int(allowed.min())


def unseen_risk(posterior: Posterior, n_masks: int, changing: float = 0.0) -> float:
    """The chance that answers which a fit predicts too well hide what it does not predict.

    `changing` is the share of all masks that must have scores other than predicted, by as much as
    the range of those seen, to make a statement wrong; it counts before the first usual look.

    Notes
    -----
    N masks without a single surprise say nothing about surprises in fewer than about 3 / N of all
    masks, however large these are. With u the share of the scores' spread that the fit misses, one
    minus the held-out R^2, `N u` is the number of misses as large as the spread that were seen, and
    the risk is `exp(-N (u + 1/300))`. For a perfect fit it is the chance that a jump in one of 300
    masks was not among those asked: .05 at 900 masks. Where the fit misses more than 5 %, the risk
    is below .05 at the first look.

    So few masks as 32 or 48, at which the rules look with some designs, could never rule out a rare
    jump of any size. There a statement may also rest on the range of the scores: if no score is
    outside of it, more than `changing` of all masks must jump, which N masks miss with the chance
    `exp(-N changing)`.
    """
    held_out = posterior.r2_held_out
    r2 = posterior.r2 if held_out is None else held_out
    missed = 0.0 if np.isnan(r2) else min(max(1 - r2, 0.0), 1.0)
    seen = max(missed + 1 / _RARE, changing if n_masks < FIRST else 0.0)
    return float(np.exp(-n_masks * seen))


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a rule says about the answers so far."""

    reached: bool
    words: str | Callable[[], str]  # for `text`; a function where finding them takes time
    factor: float  # how many times as many masks it will probably take; at most 1 if reached

    @property
    def text(self) -> str:
        """What is known, and how certainly."""
        return self.words if isinstance(self.words, str) else self.words()


def verdict_on(
    what: str,
    error: float,
    rule_error: tuple[float, float],
    fit: tuple[Posterior, Answers],
    *,
    holds: Callable[[FloatArray], BoolArray],
    doubt: str,
    changing: float = 0.0,
) -> Verdict:
    """The verdict on a statement, given a bound of the probability that it is wrong.

    Parameters
    ----------
    what
        The statement, without its probability.
    error
        The bound, at this look.
    rule_error
        The probability with which the statement may be wrong, and the part of it that may be used;
        see `Rule.judge`.
    fit
        Posterior and answers.
    holds
        Whether the statement is true for draws of the importances, (n, p) -> (n,).
    doubt
        What is least certain, for a statement that is not certain enough.
    changing
        The share of masks that must jump to make it wrong; see `unseen_risk`.
    """
    (posterior, answers), (rate, share) = fit, rule_error
    alpha, risk = rate * share, unseen_risk(posterior, answers.n_masks, changing)
    penalty = look_penalty(alpha, answers.n_masks)
    reached = error * penalty + risk * share <= alpha
    now, goal = (-special.ndtri(min(value, 0.49)) for value in (error, alpha / penalty))
    factor = masks_factor(goal, now, reached=reached)
    if reached:
        known = probability_text(1 - error * penalty / share - risk)
        plain = unseen_risk(posterior, answers.n_masks)
        given = "" if error * penalty + plain * share <= alpha else f", {_IN_RANGE}"
        words = f"{what} with probability {known}{given}"
        return Verdict(reached=True, words=words, factor=factor)
    if error * penalty <= alpha:
        return Verdict(
            reached=False,
            words=f"{what}, if masks that were not asked are like those that were; {UNSEEN}",
            factor=max(factor, float(np.log(rate) / np.log(risk))),
        )

    def describe() -> str:
        # a small bound is nearly exact; a large one counts what is wrong in several ways repeatedly
        chance = 1 - error if error < 0.1 else float(holds(posterior.sample(_DRAWS, rng=0)).mean())
        known = f"{chance:.2g}" if chance > 0 else f"below {1 / _DRAWS:g}"
        needed = probability_text(1 - alpha / penalty)
        return f"{what} with probability {known} ({needed} is needed at each look): {doubt}"

    return Verdict(reached=False, words=describe, factor=factor)


def round_up(number: int) -> int:
    """A whole number with two digits that count, not below the number.

    Examples
    --------
    >>> round_up(1234), round_up(87), round_up(0)
    (1300, 87, 0)
    """
    unit: int = 10 ** max(0, len(str(number)) - 2)
    return -(-number // unit) * unit


def masks_factor(goal: float, now: float, *, reached: bool) -> float:
    """How many times as many masks are needed for `now` to reach `goal`; at most 1 if reached.

    Errors shrink with the root of the number of masks.
    """
    factor = float(min(_LONGEST, (goal / now) ** 2)) if now > 0 else _LONGEST
    return min(1.0, factor) if reached else max(_MORE, factor)


def probability_text(probability: float) -> str:
    """A probability in four digits; never rounded up to one."""
    return f"{min(probability, 0.9999):.4g}"


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

    def check_features(self, p: int) -> None:
        """Refuse an input with fewer features than the k of a rule, before the model is asked."""
        if getattr(self, "k", 0) > p:
            raise ValueError(
                f"`until` must be about at most {p} features, which the input has; got {self!r}."
            )

    def __call__(self, posterior: Posterior, answers: Answers) -> str | None:
        """What is known, if that is enough to stop; None otherwise."""
        verdict = self.judge(posterior, answers)
        return verdict.text if verdict.reached else None

    def __and__(self, other: Rule) -> Rule:
        """Both rules must be reached."""
        return self._join(other, every=True)

    def __or__(self, other: Rule) -> Rule:
        """One of the rules must be reached."""
        return self._join(other, every=False)

    def _join(self, other: Rule, *, every: bool) -> Rule:
        """A combination of both; those of the same kind are taken apart."""
        if not isinstance(other, Rule):
            return NotImplemented
        parts: list[Rule] = []
        for rule in (self, other):
            same = isinstance(rule, Combination) and rule.every == every
            parts.extend(rule.rules if same else [rule])  # type: ignore[attr-defined]
        return Combination(rules=tuple(parts), every=every)

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
class Combination(Rule):
    """Several rules, of which every one must be reached (`a & b`), or one (`a | b`)."""

    rules: tuple[Rule, ...]
    every: bool

    @property
    def needs_spread(self) -> bool:
        """Whether one of the rules needs a method that states its uncertainty."""
        return any(rule.needs_spread for rule in self.rules)

    def check_features(self, p: int) -> None:
        """Refuse an input with too few features for one of the rules."""
        for rule in self.rules:
            rule.check_features(p)

    def judge(self, posterior: Posterior, answers: Answers, share: float = 1.0) -> Verdict:
        """The verdicts of the rules, each with an equal part of the error rate.

        Of rules of which one is enough, the text has those that are reached, or all.
        """
        part = share / len(self.rules)
        verdicts = [rule.judge(posterior, answers, part) for rule in self.rules]
        met = [verdict for verdict in verdicts if verdict.reached]
        chosen = verdicts if self.every else met or verdicts
        return Verdict(
            reached=len(met) == len(verdicts) if self.every else bool(met),
            words=lambda: "; ".join(verdict.text for verdict in chosen),
            factor=(max if self.every else min)(verdict.factor for verdict in verdicts),
        )

    def __repr__(self) -> str:
        """The rules joined by `&` or `|`."""
        inner = [
            f"({rule!r})" if self.every and isinstance(rule, Combination) else repr(rule)
            for rule in self.rules
        ]
        return (" & " if self.every else " | ").join(inner)
