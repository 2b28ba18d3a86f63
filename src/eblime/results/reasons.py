"""Reasons for a prediction: the features that raise or lower a score the most, in sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from eblime._checks import check_choice, check_count
from eblime._text import printable
from eblime.core.ranking import is_among_top

if TYPE_CHECKING:
    from eblime.results.explanation import Explanation

_DRAWS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """A feature that raises or lowers the score; printed as a sentence.

    Examples
    --------
    >>> from eblime.results import Reason
    >>> one = Reason(feature="age = 19", mean=-0.2, low=-0.3, high=-0.1, prob=0.97, k=3)
    >>> print(one)
    age = 19 lowers the score by 0.2 (0.1 to 0.3); P(among the 3 strongest) = .97
    >>> one.certain
    True
    """

    feature: str
    mean: float
    low: float  # the 95 % interval
    high: float
    prob: float  # that it is among the k that raise the score, or lower it, the most
    k: int

    @property
    def certain(self) -> bool:
        """Whether the 95 % interval leaves out zero, and it is among the k with P >= .95."""
        return self.low * self.high > 0 and self.prob >= 0.95

    def __str__(self) -> str:
        verb = "raises" if self.mean > 0 else "lowers"
        ends = [self.low, self.high] if self.mean > 0 else [-self.high, -self.low]
        texts = (" to ".join(dict.fromkeys(f"{end:.{n}g}" for end in ends)) for n in (3, 6, 9))
        within = next((text for text in texts if " to " in text), "exactly")
        rank = "> .99" if self.prob > 0.99 else "< .01" if self.prob < 0.01 else f"{self.prob:.2f}"
        rank = rank if rank[0] in "<>" else f"= {rank.lstrip('0')}"
        first = "strongest" if self.k == 1 else f"among the {self.k} strongest"
        size = f"{abs(self.mean):.3g} ({within})"
        return f"{printable(self.feature)} {verb} the score by {size}; P({first}) {rank}"


def find_reasons(explanation: Explanation, k: int, direction: str) -> list[Reason]:
    """The k features with the largest importances of a sign; see `Explanation.reasons`."""
    post = explanation.posterior
    check_count("k", k, maximum=post.n_features)
    check_choice("direction", direction, ("for", "against"))
    sign, rng = 1 if direction == "for" else -1, np.random.default_rng(0)
    order = np.argsort(-sign * post.mean, kind="stable")[:k]
    ends, prob = np.tile(post.mean[:, None], 2), np.isin(np.arange(post.n_features), order)
    if post.has_spread:
        ends = post.interval()
        draws = sign * post.law.draw(rng, _DRAWS).beta
        prob = is_among_top(rng, draws, k, "value").mean(axis=0)
    return [
        Reason(
            feature=str(explanation.features[j]),
            mean=float(post.mean[j]),
            low=float(ends[j, 0]),
            high=float(ends[j, 1]),
            prob=float(prob[j]),
            k=k,
        )
        for j in order.tolist()
        if sign * post.mean[j] > 0
    ]
