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
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_
from typing import Any

import numpy as np
from scipy import special

from eblime._checks import check_choice, check_count, check_level, check_number
from eblime._types import BoolArray, FloatArray, IntArray
from eblime.answers import Answers
from eblime.core.laws import NoSpreadError
from eblime.posterior import Posterior
from eblime.stopping.lars import LarsStable
from eblime.stopping.rule import (
    UNSEEN,
    Rule,
    Verdict,
    look_penalty,
    masks_factor,
    round_up,
    verdict_on,
)

__all__ = [
    "FORMS",
    "WIDTH_PENALTY",
    "Ranking",
    "Sign",
    "TopK",
    "Width",
    "as_rule",
    "order_errors",
    "parse_rule",
    "sign_errors",
]

_TIED = 0.95  # probability of an order below which two features may be tied
_HOPELESS = 20  # times as many masks: a pair that needs more is not worth an estimate

# Widths hardly depend on which answers came by chance, so that few looks can mislead them.
WIDTH_PENALTY = 2.0


@dataclass(frozen=True, slots=True, repr=False)
class TopK(Rule):
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

    k: int
    prob: float = 0.95
    by: str = "abs"
    tolerance: float = 0.0

    def __post_init__(self) -> None:
        """Refuse settings that cannot work."""
        _check_order(self.k, self.prob, self.by)
        check_number("tolerance", self.tolerance, zero=True)

    def judge(self, posterior: Posterior, answers: Answers, share: float = 1.0) -> Verdict:
        """Compare each of the first k with each of the others."""
        _check_spread(posterior, self)
        order = _by_size(posterior, self.by)
        first, rest = order[: self.k], order[self.k :]
        pairs = np.repeat(first, len(rest)), np.tile(rest, len(first))
        what = f"the {_most_important(self.k)} known"
        if self.tolerance:
            what += f", up to differences below {self.tolerance:g},"
        return _order_verdict(what, self, (posterior, answers), pairs, share)


@dataclass(frozen=True, slots=True, repr=False)
class Ranking(Rule):
    """Stop when the k most important features and their order are known; for `until=`.

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
        order = _by_size(posterior, self.by)
        first, rest = order[: self.k], order[self.k :]
        larger = np.concatenate([first[:-1], np.repeat(first[-1:], len(rest))])
        smaller = np.concatenate([first[1:], rest])
        what = f"the order of the {_most_important(self.k).rsplit(' ', 1)[0]} is known"
        return _order_verdict(what, self, (posterior, answers), (larger, smaller), share)


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
        _check_spread(posterior, self)
        chosen = _by_size(posterior)[: self.top]
        errors = sign_errors(posterior, chosen)
        least, signs = int(np.argmax(errors)), np.sign(posterior.mean[chosen])
        chance = posterior.prob_positive()[chosen[least]]

        def holds(draws: FloatArray) -> BoolArray:
            return np.asarray((draws[:, chosen] * signs > 0).all(axis=1))

        return verdict_on(
            f"the {_signs(self.top)} known",
            float(errors.sum()),
            (1 - self.prob, share),
            (posterior, answers),
            holds=holds,
            doubt=f"{_name(answers, chosen[least])} is positive with probability {chance:.2g}",
        )

    def __repr__(self) -> str:
        """The rule as it is written."""
        return f"Sign(prob={self.prob!r}, top={self.top!r})"


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
        _check_spread(posterior, self)
        chosen = _by_size(posterior)[: self.top]
        unit = float(np.abs(posterior.mean).max()) if self.relative else 1.0
        allowed = (1 - self.prob) * share / WIDTH_PENALTY
        df, sd = _degrees_of_freedom(posterior), posterior.sd[chosen]
        spread = sd[sd > 0]  # without spread an importance is where its mean is
        half = self.width * unit / 2
        error = 2 * float(_tails(np.full(len(spread), half), spread, df).sum())
        needed = -special.stdtrit(df, allowed / (2 * len(chosen))) * sd.max()
        ends = posterior.interval(self.prob)[chosen]
        widths = ends[:, 1] - ends[:, 0]
        widest, name = float(widths.max()), _name(answers, chosen[np.argmax(widths)])

        def holds(draws: FloatArray) -> BoolArray:
            return np.asarray((np.abs(draws - posterior.mean)[:, chosen] <= half).all(axis=1))

        return verdict_on(
            f"the widest {100 * self.prob:g} % interval, of {name}, is "
            f"{self._width_text(widest / unit if unit else 0.0)}, and all are known to within "
            f"{self._width_text(self.width)}",
            error if widest <= 2 * half else 1.0,
            (1 - self.prob, share),
            (posterior, answers),
            holds=holds,
            penalty=WIDTH_PENALTY,
            factor=masks_factor(float(needed), half, reached=error <= allowed),
        )

    def _width_text(self, width: float) -> str:
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

    Parameters
    ----------
    posterior
        Its means and covariances are used.
    larger, smaller
        Pairs of features, (m,) each.
    by
        "abs" compares absolute values, "value" the importances themselves.
    tolerance
        By how much the smaller may be ahead without being in the other order.

    Notes
    -----
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


def _order_verdict(
    what: str,
    rule: TopK | Ranking,
    fit: tuple[Posterior, Answers],
    pairs: tuple[IntArray, IntArray],
    share: float,
) -> Verdict:
    """The verdict on an order of pairs of features, the larger first."""
    (posterior, answers), (larger, smaller) = fit, pairs
    tolerance = getattr(rule, "tolerance", 0.0)
    errors = order_errors(posterior, larger, smaller, rule.by, tolerance)

    def holds(draws: FloatArray) -> BoolArray:
        size = np.abs(draws) if rule.by == "abs" else draws
        return np.asarray((size[:, larger] + tolerance > size[:, smaller]).all(axis=1))

    size = np.abs(posterior.mean) if rule.by == "abs" else posterior.mean
    ahead = float(np.min(size[larger] - size[smaller], initial=np.inf)) + tolerance
    allowed, span = (1 - rule.prob, share), float(np.ptp(answers.scores))
    shown = answers.weights @ answers.masks / answers.weights.sum()
    rarer = float(np.minimum(shown, 1 - shown).min())  # the share of a feature's rarer state
    return verdict_on(
        what,
        float(errors.sum()),
        allowed,
        fit,
        holds=holds,
        doubt=_undecided(rule, answers, pairs, errors, share) if len(errors) else "",
        # an effect in a share f of the masks moves each importance by at most f / rarer of its size
        changing=max(0.0, min(1.0, ahead * rarer / (2 * span))) if span else 0.0,
    )


def _undecided(
    rule: TopK | Ranking,
    answers: Answers,
    pairs: tuple[IntArray, IntArray],
    errors: FloatArray,
    share: float,
) -> str:
    """The least certain pair, and what would decide it."""
    alpha, n = (1 - rule.prob) * share, answers.n_masks
    goal = (1 - UNSEEN) * alpha / look_penalty(alpha, n)
    least, count = int(np.argmax(errors)), int((errors > goal).sum())
    first, second = (_name(answers, pair[least]) for pair in pairs)
    chance, others = max(0.5, 1 - errors[least]), count - 1
    text = f"{first} is ahead of {second} with probability {chance:.2g}"
    now, needed = (-special.ndtri(min(value, 0.5)) for value in (errors[least], goal))
    more = int(n * (masks_factor(float(needed), float(now), reached=False) - 1))
    hopeless, decide = more > _HOPELESS * n, f"about {round_up(more):,} more masks would decide it"
    if chance < _TIED:
        text += f", and they may be tied{'' if hopeless else f'; if not, {decide}'}"
    elif not hopeless:
        text += f"; {decide}"
    if others > 0:
        text += f"; {others} other pair{'s are' if others > 1 else ' is'} undecided"
    return text


def _by_size(posterior: Posterior, by: str = "abs") -> IntArray:
    """Features from most to least important, by the mean of `|beta|` ("abs") or beta ("value")."""
    return posterior.order() if by == "abs" else np.argsort(-posterior.mean, kind="stable")


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


def _signs(top: int | None) -> str:
    """The subject of a sentence about signs."""
    if top is None:
        return "signs of all features are"
    if top == 1:
        return "sign of the most important feature is"
    return f"signs of the {top} most important features are"


FORMS = "top5, top5~0.02, ranking3, sign5, lars3, width0.05 or width10%"

_SIZE = r"[0-9.]+(?:e-?[0-9]+)?"
_RULE = re.compile(rf"([a-z]+?) *({_SIZE})? *(%?) *(?:~ *({_SIZE}))? *(?:@ *([0-9.]+))?")
_OR = re.compile(r"\||\bor\b")
_AND = re.compile(r"&|\band\b")


def as_rule(until: Any) -> Any:
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
    TopK(3, prob=0.9, tolerance=0.02)
    >>> parse_rule("top5"), parse_rule("width10% @0.9"), parse_rule("sign3 and width0.05")
    (TopK(5, prob=0.95), Width(0.1, relative=True, prob=0.9), Sign(prob=0.95, top=3) & Width(0.05, prob=0.95))
    """  # noqa: E501
    groups = [_AND.split(part) for part in _OR.split(text.strip().lower())]
    joined = [reduce(and_, [_single(word.strip(), text) for word in group]) for group in groups]
    return reduce(or_, joined)


def _single(word: str, text: str) -> Rule:
    """One rule."""
    found = _RULE.fullmatch(word)
    make = _MAKERS.get(found[1]) if found else None
    unfit = found and ((found[3] and found[1] != "width") or (found[4] and found[1] != "top"))
    if found is None or make is None or unfit:
        raise ValueError(
            f"`until` must be like {FORMS}, with a probability such as top5@0.99 if it is not "
            f"0.95, joined by & or |; got {text!r}."
        )
    prob = 0.95 if found[5] is None else _number(found[5], text)
    return make(found[2], found[4] or found[3], prob, text)


def _count(number: str | None, text: str) -> int:
    """How many features, which must be given."""
    if number is None or not number.isdigit():
        raise ValueError(f"`until` must say how many features, such as top5; got {text!r}.")
    return int(number)


def _number(number: str | None, text: str) -> float:
    """A number, which must be given."""
    try:
        return float(number or "")
    except ValueError:
        raise ValueError(f"`until` must have a number, such as width0.05; got {text!r}.") from None


def _width(number: str | None, percent: str, prob: float, text: str) -> Rule:
    """A width, or a percentage of the largest importance."""
    size = _number(number, text)
    return Width(size / 100 if percent else size, relative=bool(percent), prob=prob)


_Maker = Callable[["str | None", str, float, str], Rule]
_MAKERS: dict[str, _Maker] = {
    "top": lambda number, near, prob, text: TopK(
        _count(number, text), prob, tolerance=_number(near, text) if near else 0.0
    ),
    "ranking": lambda number, _, prob, text: Ranking(_count(number, text), prob),
    "sign": lambda number, _, prob, text: Sign(prob, _count(number or "5", text)),
    "width": _width,
    "lars": lambda number, _, prob, text: LarsStable(_count(number, text), prob),
}
