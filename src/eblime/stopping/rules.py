"""The stop rules: which features are first, in which order, with which sign, how precisely.

A rule is reached when its statement holds with probability `prob`. The probability is that of the
whole statement, not of each feature, and it allows for looking after every round: with the masks
of all rounds, at most `1 - prob` of the statements are wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from eblime._checks import check_choice, check_count, check_level, check_number
from eblime._types import IntArray
from eblime.answers import Answers
from eblime.core.point import NoSpreadError
from eblime.posterior import Posterior
from eblime.stopping.errors import (
    by_size,
    degrees_of_freedom,
    order_error,
    sign_error,
    spread_error,
)
from eblime.stopping.rule import Rule, Verdict
from eblime.stopping.verdicts import masks_factor, probability_text, verdict_on

__all__ = ["WIDTH_PENALTY", "Ranking", "Sign", "TopK", "Width"]

# Widths hardly depend on which answers came by chance, so that few looks can mislead them.
WIDTH_PENALTY = 2.0


@dataclass(frozen=True, slots=True, repr=False)
class TopK(Rule):
    """The k most important features are known, as a set.

    Parameters
    ----------
    k
        How many features.
    prob
        Probability that the set is right.
    by
        "abs" compares absolute importances, "value" the importances themselves.

    Examples
    --------
    >>> import eblime
    >>> count = lambda texts: [t.count("good") - 0.5 * t.count("bad") for t in texts]
    >>> text = "a good film with a bad end and a few nice songs in it for the young"
    >>> e = eblime.TextExplainer(count).explain(text, until=eblime.TopK(2))
    >>> len(e.masks), e.provenance["reached"]
    (64, True)
    """

    k: int
    prob: float = 0.95
    by: str = "abs"

    def __post_init__(self) -> None:
        """Refuse settings that cannot work."""
        _check_order(self.k, self.prob, self.by)

    def judge(self, posterior: Posterior, answers: Answers, share: float = 1.0) -> Verdict:
        """Compare each of the first k with each of the others."""
        _check_spread(posterior, self)
        order = by_size(posterior, self.by)
        first, rest = order[: self.k], order[self.k :]
        error = order_error(
            posterior, np.repeat(first, len(rest)), np.tile(rest, len(first)), self.by
        )
        what = f"the {_features(self.k, 'most important feature')} {_is(self.k)} known"
        return verdict_on(what, error, self.prob, share, answers)


@dataclass(frozen=True, slots=True, repr=False)
class Ranking(Rule):
    """The order of the k most important features is known.

    Parameters
    ----------
    k
        How many features.
    prob
        Probability that the features and their order are right.
    by
        "abs" compares absolute importances, "value" the importances themselves.

    Examples
    --------
    >>> import eblime
    >>> model = lambda texts: [2.0 * ("good" in text) - ("bad" in text) for text in texts]
    >>> explainer = eblime.TextExplainer(model)
    >>> found = explainer.explain("good and bad days of one week in May", until=eblime.Ranking(2))
    >>> [found.features[j] for j in found.posterior.ranking().order[:2]]
    ["word 'good'", "word 'bad'"]
    """

    k: int = 3
    prob: float = 0.95
    by: str = "abs"

    def __post_init__(self) -> None:
        """Refuse settings that cannot work."""
        _check_order(self.k, self.prob, self.by)

    def judge(self, posterior: Posterior, answers: Answers, share: float = 1.0) -> Verdict:
        """Compare neighbours among the first k, and the last of them with all others."""
        _check_spread(posterior, self)
        order = by_size(posterior, self.by)
        first, rest = order[: self.k], order[self.k :]
        larger = np.concatenate([first[:-1], np.repeat(first[-1:], len(rest))])
        smaller = np.concatenate([first[1:], rest])
        error = order_error(posterior, larger, smaller, self.by)
        what = f"the order of the {_features(self.k, 'most important feature')} is known"
        return verdict_on(what, error, self.prob, share, answers)


@dataclass(frozen=True, slots=True, repr=False)
class Sign(Rule):
    """The signs of the most important features are known.

    Parameters
    ----------
    prob
        Probability that all these signs are right.
    top
        How many features, by absolute importance; None is all of them.

    Examples
    --------
    >>> import eblime
    >>> model = lambda texts: [2.0 * ("good" in text) - ("bad" in text) for text in texts]
    >>> explainer = eblime.TextExplainer(model)
    >>> found = explainer.explain("good and bad days of one week in May", until=eblime.Sign(top=2))
    >>> (found.posterior.prob_positive()[[0, 2]] > 0.5).tolist()
    [True, False]
    """

    prob: float = 0.95
    top: int | None = 5

    def __post_init__(self) -> None:
        """Refuse settings that cannot work."""
        check_level("prob", self.prob)
        if self.top is not None:
            check_count("top", self.top)

    def judge(self, posterior: Posterior, answers: Answers, share: float = 1.0) -> Verdict:
        """Add up the probabilities of the other signs."""
        _check_spread(posterior, self)
        chosen = by_size(posterior)[: self.top]
        what = f"the {_signs(self.top)} known"
        return verdict_on(what, sign_error(posterior, chosen), self.prob, share, answers)

    def __repr__(self) -> str:
        """The rule as it is written."""
        return f"Sign(prob={self.prob!r}, top={self.top!r})"


@dataclass(frozen=True, slots=True, repr=False)
class Width(Rule):
    """Importances are known to within an interval of this width.

    Every importance looked at is in an interval of this width around its posterior mean, all of
    them at once with probability `prob`. The intervals in tables hold one by one: when the rule is
    reached they are narrower than this.

    Parameters
    ----------
    width
        From the lower to the upper end.
    relative
        Whether `width` is a part of the largest absolute importance.
    prob
        Probability that the importances are in these intervals.
    top
        How many features, by absolute importance; None is all of them.

    Examples
    --------
    >>> import eblime
    >>> model = lambda texts: [2.0 * ("good" in text) - ("bad" in text) for text in texts]
    >>> explainer = eblime.TextExplainer(model)
    >>> found = explainer.explain("good and bad days of one week in May", until=eblime.Width(0.1))
    >>> low, high = found.posterior.interval()[0]
    >>> bool(high - low < 0.1)
    True
    """

    width: float
    relative: bool = False
    prob: float = 0.95
    top: int | None = None

    def __post_init__(self) -> None:
        """Refuse settings that cannot work."""
        check_number("width", self.width)
        check_level("prob", self.prob)
        if self.top is not None:
            check_count("top", self.top)
        if not isinstance(self.relative, bool):
            raise TypeError(f"`relative` must be True or False; got {self.relative!r}.")

    def judge(self, posterior: Posterior, answers: Answers, share: float = 1.0) -> Verdict:
        """Compare the distances that the posterior allows with half the width."""
        _check_spread(posterior, self)
        chosen = by_size(posterior)[: self.top]
        unit = float(np.abs(posterior.mean).max()) if self.relative else 1.0
        allowed = (1 - self.prob) * share / WIDTH_PENALTY
        error = spread_error(posterior, chosen, self.width * unit / 2)
        widest = self._widest(posterior, chosen)
        reached = error <= allowed and widest <= self.width * unit
        needed = self._needed(posterior, chosen, allowed)
        known = max(0.0, 1 - error * WIDTH_PENALTY / share)
        return Verdict(
            reached=reached,
            text=f"the widest {100 * self.prob:g} % interval is "
            f"{self._shown(widest / unit if unit else 0.0)}, and all are known to within "
            f"{self._shown(self.width)} with probability {probability_text(known)}",
            factor=masks_factor(needed, self.width * unit, reached=reached),
        )

    def _widest(self, posterior: Posterior, chosen: IntArray) -> float:
        """The width of the widest interval."""
        ends = posterior.interval(self.prob)[chosen]
        return float((ends[:, 1] - ends[:, 0]).max())

    def _needed(self, posterior: Posterior, chosen: IntArray, allowed: float) -> float:
        """The width that the posterior reaches now with the allowed error."""
        tail = -special.stdtrit(degrees_of_freedom(posterior), allowed / (2 * len(chosen)))
        return float(2 * tail * posterior.sd[chosen].max())

    def _shown(self, width: float) -> str:
        """A width in the form that the rule has it: a number or a percentage."""
        return f"{100 * width:.3g} % of the largest importance" if self.relative else f"{width:.3g}"


def _check_order(k: int, prob: float, by: str) -> None:
    """Refuse settings of a rule about the order of features that cannot work."""
    check_count("k", k)
    check_level("prob", prob)
    check_choice("by", by, ("abs", "value"))


def _check_spread(posterior: Posterior, rule: Rule) -> None:
    """Refuse a point estimate, which states no uncertainty."""
    if not posterior.has_spread:
        raise NoSpreadError(
            f"{rule!r} needs a method that states its uncertainty, such as EBLIME; "
            f"{posterior.method} is a point estimate."
        )


def _features(k: int, noun: str) -> str:
    """`5 most important features`, or without the number for one."""
    return noun if k == 1 else f"{k} {noun}s"


def _is(k: int) -> str:
    """The verb for so many."""
    return "is" if k == 1 else "are"


def _signs(top: int | None) -> str:
    """The subject of a sentence about signs."""
    if top is None:
        return "signs of all features are"
    if top == 1:
        return "sign of the most important feature is"
    return f"signs of the {top} most important features are"
