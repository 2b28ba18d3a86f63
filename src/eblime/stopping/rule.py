"""What all stop rules share: verdicts, combinations, and what it costs to look repeatedly.

A statement that is checked after every round gets many chances to be wrong. Estimates from N masks
behave like a Brownian motion at time N, so the chance that one of them crosses a limit at any look
can be computed. `look_penalty` bounds it for looks at 64, 96, 128, 192, ... masks: each total is
at least 4/3 of the one before. tests/stopping/test_rule.py computes the chance itself.

Answers say nothing about an effect that none of the masks has shown, however well or badly they
fit. `rarest_seen` says how rare such an effect must be, and every statement names it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from eblime._repr import short_repr
from eblime._types import FloatArray
from eblime.answers import Answers
from eblime.posterior import Posterior

FIRST = 64  # masks before the first look
GROWTH = 1.3  # masks grow at least by this factor from one look to the next

_LEAST = 48  # masks below which no design is worth a look
_LEVEL = 4096  # masks up to which all looks have the same level; later ones have smaller ones
_BASE = 4.3  # with the logarithm of the level: the number of independent looks that they are worth
UNSEEN = 0.1  # part of a rule's error rate for effects that no mask has shown
_RARE = 64  # an effect that shows in one of so many masks must not go unseen
_LONGEST = 1e6  # factor of the masks beyond which an estimate says nothing
_MORE = 1.01  # least factor of a rule that is not reached


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

    Every round is then a multiple of 32, so that batches stay full. The first look comes after at
    least `least` masks.

    Examples
    --------
    >>> next_total(0), next_total(64), next_total(96), next_total(0, 120)
    (64, 96, 128, 128)
    """
    totals: NDArray[np.int64] = np.array([[2, 3]]) << np.arange(5, 60)[:, None]
    allowed = totals[(totals > n_masks) & (totals >= max(least, FIRST))]
    return int(allowed.min())


def rarest_seen(n_masks: int, rate: float) -> int:
    """M, if an effect that shows in at least one of M masks has been seen, but for a small chance.

    `n_masks` independent masks miss an effect that shows in a share f of all masks with the chance
    `(1 - f)^N < exp(-N f)`. With f = 1/M that is a tenth of `rate`, whatever the size of the effect
    and the misfit of the answers. Pairs of complements are as good: an effect that shows in both of
    a pair moves no importance, and one that shows in either is missed by `(1 - 2 f)^(N/2)`.

    Examples
    --------
    >>> rarest_seen(384, 0.05), rarest_seen(1024, 0.05)
    (72, 193)
    """
    return int(n_masks / -np.log(UNSEEN * rate))


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a rule says about the answers so far."""

    reached: bool
    text: str  # what is known, and how certainly
    factor: float  # how many times as many masks it will probably take; at most 1 if reached


def verdict_on(
    what: str,
    errors: FloatArray,
    rate: float,
    share: float,
    n_masks: int,
    *,
    doubt: str = "",
    changing: float = 0.0,
    penalty: float | None = None,
    factor: float | None = None,
) -> Verdict:
    """The verdict on a statement, `what`, given bounds of the probabilities that parts are wrong.

    The sum of the bounds, `errors`, bounds the error of the whole statement, which may be wrong
    with the probability `rate`, of which `share` may be used (see `Rule.judge`). That includes
    effects that no mask has shown, unless one as large as the range of the scores must show in a
    share `changing` of the masks to make the statement wrong: rarer ones need not be seen then.

    `doubt` says what is least certain. The error must be below its rate by the factor `penalty`,
    None being `look_penalty`; and it needs `factor` times as many masks, None computes that.
    """
    alpha = rate * share
    penalty = look_penalty(alpha, n_masks) if penalty is None else penalty
    error, allowed = float(errors.sum()), (1 - UNSEEN) * alpha / penalty
    seen = rarest_seen(n_masks, rate)
    certain, often = error <= allowed, seen >= _RARE
    unseen = float(np.exp(-n_masks * changing))  # the chance to miss an effect of this size
    reached = certain and (often or error * penalty + unseen <= alpha)
    if factor is None:
        now, goal = (-special.ndtri(min(value, 0.49)) for value in (error, allowed))
        factor = masks_factor(goal, now, reached=certain)
    if not (reached or often):
        in_range = -np.log(alpha) / max(n_masks * changing, 1e-9)
        factor = max(factor, _MORE, min(_RARE / max(1, seen), in_range))
    known = min(0.9999, float(np.prod(1 - np.minimum(errors, 1))))
    chance = f"{known:.{4 if error < 0.1 else 2}g}" if known > 0.001 else "below 0.001"
    text = f"{what} with probability {chance} ({1 - allowed:.4g} is needed at each look)"
    rare = f"in fewer than 1 of {seen} masks"
    if reached:
        text += f", unless an effect shows {rare}"
        text += "" if often else " and is larger than the range of the scores"
    elif certain:
        text += f", but an effect that shows {rare} may be unseen (1 of {_RARE} is needed)"
    elif doubt:
        text += f": {doubt}"
    return Verdict(reached=reached, text=text, factor=factor)


def masks_factor(goal: float, now: float, *, reached: bool) -> float:
    """How many times as many masks are needed for `now` to reach `goal`; at most 1 if reached.

    Errors shrink with the root of the number of masks.
    """
    factor = float(min(_LONGEST, (goal / now) ** 2)) if now > 0 else _LONGEST
    return min(1.0, factor) if reached else max(_MORE, factor)


class Rule(ABC):
    """A stop rule: a function (posterior, answers) -> reason or None, combined with `&` and `|`.

    Subclasses are frozen dataclasses.
    """

    __slots__ = ()

    @abstractmethod
    def judge(self, posterior: Posterior, answers: Answers, share: float = 1.0) -> Verdict:
        """Whether the rule is reached, what is known, and how much is missing.

        `share` is the part of the rule's error rate that may be used, at most 1: rules that are
        combined share theirs, so that the statement as a whole keeps it.
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
        """The rule with the settings that differ from the defaults."""
        return short_repr(self)


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
            text="; ".join(verdict.text for verdict in chosen),
            factor=(max if self.every else min)(verdict.factor for verdict in verdicts),
        )

    def __repr__(self) -> str:
        """The rules joined by `&` or `|`."""
        inner = [
            f"({rule!r})" if self.every and isinstance(rule, Combination) else repr(rule)
            for rule in self.rules
        ]
        return (" & " if self.every else " | ").join(inner)
