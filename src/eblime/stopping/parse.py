"""Stop rules from text, as on the command line: `top5`, `sign3 & width10%`."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import reduce
from operator import and_, or_
from typing import Any

from eblime.stopping.lars import LarsStable
from eblime.stopping.rule import Rule
from eblime.stopping.rules import Ranking, Sign, TopK, Width

__all__ = ["FORMS", "as_rule", "parse_rule"]

FORMS = "top5, ranking3, sign5, lars3, width0.05 or width10%"

_RULE = re.compile(r"([a-z]+?) *([0-9.]+(?:e-?[0-9]+)?)? *(%?) *(?:@ *([0-9.]+))?")
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

    Examples
    --------
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
    if found is None or make is None or (found[3] and found[1] != "width"):
        raise ValueError(
            f"`until` must be like {FORMS}, with a probability such as top5@0.99 if it is not "
            f"0.95, joined by & or |; got {text!r}."
        )
    prob = 0.95 if found[4] is None else _number(found[4], text)
    return make(found[2], found[3], prob, text)


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
    "top": lambda number, _, prob, text: TopK(_count(number, text), prob),
    "ranking": lambda number, _, prob, text: Ranking(_count(number, text), prob),
    "sign": lambda number, _, prob, text: Sign(prob, _count(number or "5", text)),
    "width": _width,
    "lars": lambda number, _, prob, text: LarsStable(_count(number, text), prob),
}
