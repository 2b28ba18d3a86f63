"""From a bound of an error to a verdict: whether it is small enough, and how many masks that takes.

Errors shrink with the root of the number of masks.
"""

from __future__ import annotations

from scipy import special

from eblime.answers import Answers
from eblime.stopping.looks import look_penalty
from eblime.stopping.rule import Verdict

__all__ = ["masks_factor", "probability_text", "verdict_on"]

_LONGEST = 1e6  # factor of the masks beyond which an estimate says nothing
_MORE = 1.01  # least factor of a rule that is not reached


def verdict_on(what: str, error: float, prob: float, share: float, answers: Answers) -> Verdict:
    """The verdict on a statement, given a bound of the probability that it is wrong.

    Parameters
    ----------
    what
        The statement, without its probability.
    error
        The bound.
    prob
        Probability with which the statement must hold.
    share
        The part of the error rate that may be used; see `Rule.judge`.
    answers
        Their number decides how often the rule has looked.
    """
    alpha = (1 - prob) * share
    penalty = look_penalty(alpha, answers.n_masks)
    reached = error * penalty <= alpha
    known = max(0.0, 1 - error * penalty / share)
    now, goal = (-special.ndtri(min(value, 0.49)) for value in (error, alpha / penalty))
    return Verdict(
        reached=reached,
        text=f"{what} with probability {probability_text(known)}",
        factor=masks_factor(goal, now, reached=reached),
    )


def masks_factor(goal: float, now: float, *, reached: bool) -> float:
    """How many times as many masks are needed for `now` to reach `goal`; at most 1 if reached."""
    factor = float(min(_LONGEST, (goal / now) ** 2)) if now > 0 else _LONGEST
    return min(1.0, factor) if reached else max(_MORE, factor)


def probability_text(probability: float) -> str:
    """A probability in four digits; never rounded up to one."""
    return f"{min(probability, 0.9999):.4g}"
