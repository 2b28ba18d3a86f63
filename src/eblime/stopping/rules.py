"""The stop rules: which features are first, in which order, with which sign, how precisely.

A rule is reached when its statement holds with probability `prob`. The probability is that of the
whole statement, not of each feature, and it allows for looking after every round.

Errors are bounded by sums of tails of single importances, or of sums and differences of two, so
that a statement about all of them holds at once. Tails have closed forms, which resolve
probabilities that no number of draws can. They are those of a t law with the posterior's mean and
covariance, and with as many degrees of freedom as the answers leave.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_
from typing import Any

import numpy as np
from scipy import special

from eblime._checks import check_choice, check_count, check_level, check_number
from eblime._text import count_noun
from eblime._types import FloatArray, IntArray
from eblime.answers import Answers
from eblime.posterior import Posterior
from eblime.stopping.lars import LarsStable
from eblime.stopping.rule import UNSEEN, Rule, Verdict, look_penalty, masks_factor, verdict_on

_TIED = 0.95  # probability of an order below which two features may be tied
_HOPELESS = 20  # times as many masks: a pair that needs more is not worth an estimate

# Widths hardly depend on which answers came by chance, so that few looks can mislead them.
WIDTH_PENALTY = 2.0


@dataclass(frozen=True, slots=True, repr=False)
class _Order(Rule):
    """The order of some pairs of features is known."""

    k: int
    prob: float = 0.95
    by: str = "abs"
    tolerance: float = 0.0

    def __post_init__(self) -> None:
        """Refuse settings that cannot work."""
        check_count("k", self.k)
        check_level("prob", self.prob)
        check_choice("by", self.by, ("abs", "value"))
        check_number("tolerance", self.tolerance, zero=True)

    @abstractmethod
    def _pairs(self, order: IntArray) -> tuple[str, IntArray, IntArray]:
        """What is known, and the pairs that must be in order: the larger and the smaller ones."""

    def judge(self, posterior: Posterior, answers: Answers, share: float = 1.0) -> Verdict:
        """Compare the features of each pair."""
        size = np.abs(posterior.mean) if self.by == "abs" else posterior.mean
        what, larger, smaller = self._pairs(np.argsort(-size, kind="stable"))
        if self.tolerance:
            what += f", up to differences below {self.tolerance:g},"
        errors = order_errors(posterior, larger, smaller, self.by, self.tolerance)
        ahead = float(np.min(size[larger] - size[smaller], initial=np.inf)) + self.tolerance
        span = float(np.ptp(answers.scores))
        shown = answers.weights @ answers.masks / answers.weights.sum()
        rarer = float(np.minimum(shown, 1 - shown).min())  # the share of a feature's rarer state
        return verdict_on(
            what,
            errors,
            1 - self.prob,
            share,
            answers.n_masks,
            doubt=self._undecided(answers, larger, smaller, errors, share) if len(errors) else "",
            # an effect in a share f of the masks moves importances by at most f / rarer of its size
            changing=max(0.0, min(1.0, ahead * rarer / (2 * span))) if span else 0.0,
        )

    def _undecided(
        self,
        answers: Answers,
        larger: IntArray,
        smaller: IntArray,
        errors: FloatArray,
        share: float,
    ) -> str:
        """The least certain pair, and what would decide it."""
        alpha, n = (1 - self.prob) * share, answers.n_masks
        goal = (1 - UNSEEN) * alpha / look_penalty(alpha, n)
        least, others = int(np.argmax(errors)), int((errors > goal).sum()) - 1
        chance = max(0.5, 1 - errors[least])
        now, needed = (-special.ndtri(min(value, 0.5)) for value in (errors[least], goal))
        more = n * (masks_factor(float(needed), float(now), reached=False) - 1)
        text = (
            f"{_name(answers, larger[least])} is ahead of {_name(answers, smaller[least])} "
            f"with probability {chance:.2g}"
        )
        if chance < _TIED:
            text += ", and they may be tied"
        if more <= _HOPELESS * n:
            text += f"; about {float(f'{more:.1e}'):,.0f} more masks would decide it"
        if others > 0:
            text += f"; {count_noun(others, 'other pair')} undecided"
        return text


@dataclass(frozen=True, slots=True, repr=False)
class TopK(_Order):
    """Stop when the k most important features are known, as a set; for `until=`.

    Parameters
    ----------
    k
        How many features.
    prob
        Probability that the set is right, however often the rule looks.
    by
        "abs" compares absolute importances, "value" the importances themselves.
    tolerance
        Two features whose importances differ by less than this may stand in either place. With a
        tolerance above zero the rule ends even where features are tied.

    Examples
    --------
    >>> import eblime
    >>> score = lambda texts: [("good" in t) - 0.5 * ("bad" in t and "end" in t) for t in texts]
    >>> text = "a good film with a bad end and a few nice songs in it for the young"
    >>> e = eblime.TextExplainer(score).explain(text, until=eblime.TopK(1))
    >>> len(e.masks), e.provenance["reached"]
    (32, True)
    """

    def _pairs(self, order: IntArray) -> tuple[str, IntArray, IntArray]:
        """Each of the first k and each of the others."""
        first, rest = order[: self.k], order[self.k :]
        return (
            f"the {_most_important(self.k)} known",
            np.repeat(first, len(rest)),
            np.tile(rest, len(first)),
        )


@dataclass(frozen=True, slots=True, repr=False)
class Ranking(_Order):
    """Stop when the k most important features and their order are known; for `until=`.

    Parameters
    ----------
    k
        How many features.
    prob
        Probability that the features and their order are right.
    by, tolerance
        As for `TopK`.

    Examples
    --------
    >>> import eblime
    >>> model = lambda texts: [2.0 * ("good" in text) - ("bad" in text) for text in texts]
    >>> explainer = eblime.TextExplainer(model)
    >>> found = explainer.explain("good and bad days of one week in May", until=eblime.Ranking(2))
    >>> [found.features[j] for j in found.posterior.ranking().order[:2]]
    ["word 'good'", "word 'bad'"]
    """

    def _pairs(self, order: IntArray) -> tuple[str, IntArray, IntArray]:
        """Neighbours among the first k, and the last of them and all others."""
        first, rest = order[: self.k], order[self.k :]
        larger = np.concatenate([first[:-1], np.repeat(first[-1:], len(rest))])
        what = f"the {_most_important(self.k)} known in their order"
        return what, larger, np.concatenate([first[1:], rest])


@dataclass(frozen=True, slots=True, repr=False)
class Sign(Rule):
    """Stop when the signs of the most important features are known; for `until=`.

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
        chosen = posterior.order()[: self.top]
        errors = sign_errors(posterior, chosen)
        least = chosen[np.argmax(errors)]
        chance = posterior.prob_positive()[least]
        most = "all" if self.top is None else f"the {self.top} most important"
        return verdict_on(
            f"the signs of {most} features are known",
            errors,
            1 - self.prob,
            share,
            answers.n_masks,
            doubt=f"{_name(answers, least)} is positive with probability {chance:.2g}",
        )


@dataclass(frozen=True, slots=True, repr=False)
class Width(Rule):
    """Stop when importances are known to within an interval of this width; for `until=`.

    With probability `prob` all importances that are looked at are within half the width of their
    posterior means at once. The intervals in tables hold one by one, so they are narrower than
    `width` when the rule is reached.

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
        chosen = posterior.order()[: self.top]
        unit = float(np.abs(posterior.mean).max()) if self.relative else 1.0
        allowed = (1 - self.prob) * share / WIDTH_PENALTY
        df, sd = _degrees_of_freedom(posterior), posterior.sd[chosen]
        half = self.width * unit / 2
        errors = np.where(sd > 0, 2 * _tails(np.full(len(sd), half), sd, df), 0.0)
        needed = -special.stdtrit(df, allowed / (2 * len(chosen))) * sd.max()
        widths = np.ptp(posterior.interval(self.prob)[chosen], axis=1)
        widest, name = float(widths.max()), _name(answers, chosen[np.argmax(widths)])
        return verdict_on(
            f"the widest {100 * self.prob:g} % interval, of {name}, is "
            f"{self._width_text(widest / unit if unit else 0.0)}, and all are known to within "
            f"{self._width_text(self.width)}",
            errors,
            1 - self.prob,
            share,
            answers.n_masks,
            penalty=WIDTH_PENALTY,
            factor=masks_factor(float(needed), half, reached=float(errors.sum()) <= allowed),
        )

    def _width_text(self, width: float) -> str:
        """A width in the form that the rule has it: a number or a percentage."""
        return f"{100 * width:.3g} % of the largest importance" if self.relative else f"{width:.3g}"


def sign_errors(posterior: Posterior, features: IntArray) -> FloatArray:
    """Probabilities that the signs of some features are wrong, (m,)."""
    mean, sd = posterior.mean[features], posterior.sd[features]
    return _tails(np.abs(mean), sd, _degrees_of_freedom(posterior))


def order_errors(
    posterior: Posterior,
    larger: IntArray,
    smaller: IntArray,
    by: str = "abs",
    tolerance: float = 0.0,
) -> FloatArray:
    """Bounds of the probabilities that pairs of features are in the other order, (m,).

    The pairs are `larger` and `smaller`, (m,) each, by their means and covariances; the smaller may
    be ahead by the tolerance. `by` is "abs" for absolute values or "value".

    With s the sign of the mean of a, `|a| < |b|` implies `s a < b` or `s a < -b`.
    """
    mean, cov, df = posterior.mean, posterior.cov, _degrees_of_freedom(posterior)
    first, second = mean[larger], mean[smaller]
    signs = np.where(first < 0, -1.0, 1.0) if by == "abs" else np.ones(len(first))
    both = cov[larger, larger] + cov[smaller, smaller]
    shared = 2 * signs * cov[larger, smaller]
    error = _tails(signs * first - second + tolerance, _root(both - shared), df)
    if by == "abs":
        error = error + _tails(signs * first + second + tolerance, _root(both + shared), df)
    return error


def _degrees_of_freedom(posterior: Posterior) -> float:
    """Effective number of answers beyond those that the importances and the intercept take."""
    return max(1.0, posterior.ess - posterior.n_features - 1)


def _tails(distance: FloatArray, sd: FloatArray, df: float) -> FloatArray:
    """P(T > distance / sd) of t laws; one half for a distance of zero without any spread."""
    ratio = np.divide(distance, sd, out=np.where(distance > 0, np.inf, 0.0), where=sd > 0)
    return np.asarray(special.stdtr(df, -ratio))


def _root(variance: FloatArray) -> FloatArray:
    """Standard deviations; rounding errors below zero count as none."""
    return np.asarray(np.sqrt(np.maximum(variance, 0.0)))


def _name(answers: Answers, feature: int) -> str:
    """The name of a feature in a sentence."""
    return f"feature {feature}" if answers.features is None else str(answers.features[feature])


def _most_important(k: int) -> str:
    """The subject and verb of a sentence about the first k."""
    return "most important feature is" if k == 1 else f"{k} most important features are"


FORMS = "top5, top5~0.02, ranking3, sign5, lars3, width0.05 or width10%"

_NUMBER = r"\d*\.?\d+(?:e-?\d+)?"
_RULE = re.compile(
    rf"(?:(top|ranking|sign|lars) *(\d+)|width *({_NUMBER}) *(%?))"
    rf" *(?:~ *({_NUMBER}))? *(?:@ *({_NUMBER}))?"
)
_OR = re.compile(r"\||\bor\b")
_AND = re.compile(r"&|\band\b")


def as_rule(until: object) -> Any:
    """A rule from its text; any other function of (posterior, answers) as it is."""
    if isinstance(until, str):
        return parse_rule(until)
    if isinstance(until, type) or not callable(until):
        raise TypeError(
            "`until` must be a rule such as TopK(5), its text, or a function of (posterior, "
            f"answers); got {until!r}."
        )
    return until


def parse_rule(text: str) -> Rule:
    """The rule that a text describes; `&` or "and" binds more tightly than `|` or "or".

    A number after `~` is the tolerance of `TopK`, one after `@` the probability.

    Examples
    --------
    >>> parse_rule("top3~0.02 @0.9")
    TopK(k=3, prob=0.9, tolerance=0.02)
    >>> parse_rule("top5 | sign3 and width10%")
    TopK(k=5) | Sign(top=3) & Width(width=0.1, relative=True)
    """
    groups = [_AND.split(part) for part in _OR.split(text.strip().lower())]
    joined = [reduce(and_, [_single(word.strip(), text) for word in group]) for group in groups]
    return reduce(or_, joined)


def _single(word: str, text: str) -> Rule:
    """One rule."""
    found = _RULE.fullmatch(word)
    if found is None or (found[5] and found[1] not in ("top", "ranking")):
        raise ValueError(
            f"`until` must be like {FORMS}, with a probability such as top5@0.99 if it is not "
            f"0.95, joined by & or |; got {text!r}."
        )
    kind, count, width, percent, tolerance, chance = found.groups()
    prob = float(chance or 0.95)
    if kind is None:
        size = float(width)
        return Width(size / 100 if percent else size, relative=bool(percent), prob=prob)
    k = int(count)
    if kind == "sign":
        return Sign(prob, k)
    if kind == "lars":
        return LarsStable(k, prob)
    return (TopK if kind == "top" else Ranking)(k, prob, tolerance=float(tolerance or 0))
