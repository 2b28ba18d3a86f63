"""The stop rule of S-LIME: fresh masks would lead a lasso path to the same features.

The path is that of least-angle regression (Efron et al., 2004), lasso form. Only the first few
steps are needed, so that every step solves for the active features anew.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from eblime._checks import check_count, check_level, check_number
from eblime._types import FloatArray
from eblime.answers import Answers
from eblime.posterior import Posterior
from eblime.stopping.rule import Rule, Verdict, masks_factor

__all__ = ["LarsStable", "lars_entries"]

_ROUNDING = 1e-10  # share of a column, or of the first correlation, that counts as zero


@dataclass(frozen=True, slots=True, repr=False)
class LarsStable(Rule):
    """The first k features of the lasso path are stable: S-LIME (Zhou et al., 2021).

    At each of the first k steps of least-angle regression, the feature with the largest absolute
    correlation with the residual enters. By the central limit theorem, the rule tests whether it
    would also be ahead of the second with fresh masks.

    The rule looks at the answers alone, so that it works with any method, also with LIME. Unlike
    the other rules it states an error rate for each step and each look, as published, and not for
    the whole statement.

    Parameters
    ----------
    k
        How many features, in their order.
    prob
        Probability that a step chooses the same feature with fresh masks.
    tol
        How far a test may fall short, in units of the mean product of mask and residual; 0.001 in
        the original, which ends undecidable comparisons.

    Notes
    -----
    With v the difference of the absolute products of mask and residual of the two features, N
    values with mean m and variance s^2, a step passes if `m >= z_prob sqrt(2 s^2 / N) - tol`. The 2
    is there because two runs are compared.

    Examples
    --------
    >>> import eblime
    >>> from eblime.stopping import LarsStable
    >>> count = lambda texts: [t.count("good") - 0.5 * t.count("bad") for t in texts]
    >>> text = "a good film with a bad end and a few nice songs in it for the young"
    >>> e = eblime.TextExplainer(count, method="lime").explain(text, until=LarsStable(2))
    >>> len(e.masks), e.provenance["reached"]
    (32, True)
    """

    k: int
    prob: float = 0.95
    tol: float = 0.0

    def __post_init__(self) -> None:
        """Refuse settings that cannot work."""
        check_count("k", self.k)
        check_level("prob", self.prob)
        if self.tol:
            check_number("tol", self.tol)

    @property
    def needs_spread(self) -> bool:
        """False: the posterior is not used."""
        return False

    def judge(self, posterior: Posterior, answers: Answers, share: float = 1.0) -> Verdict:
        """Test every step."""
        x, y = _weight_rows(answers)
        z = float(special.ndtri(1 - (1 - self.prob) * share))
        steps = [
            _lead(x, entry) for entry in lars_entries(x, y, self.k) if entry.runner_up is not None
        ]
        passed = [lead >= z * error - self.tol for lead, error in steps]
        stable = passed.index(False) if False in passed else self.k
        factor = 1.0
        if stable < self.k:
            lead, error = steps[stable]
            factor = masks_factor(z * error, lead, reached=False)
        return Verdict(
            reached=stable == self.k,
            words=f"{stable} of the first {self.k} steps of the lasso path are stable",
            factor=factor,
        )


def _weight_rows(answers: Answers) -> tuple[FloatArray, FloatArray]:
    """Masks and scores, centred by their weighted means and times the roots of the weights."""
    weights, root = answers.weights, np.sqrt(answers.weights)
    x = answers.masks - weights @ answers.masks / weights.sum()
    y = answers.scores - weights @ answers.scores / weights.sum()
    return x * root[:, None], y * root


def _lead(x: FloatArray, entry: Entry) -> tuple[float, float]:
    """By how much the entering feature is ahead, and the standard error between two runs."""
    assert entry.runner_up is not None
    products = x[:, [entry.entering, entry.runner_up]] * entry.residual[:, None]
    ahead = products @ (np.sign(products.sum(axis=0)) * [1.0, -1.0])
    return float(ahead.mean()), float(np.sqrt(2 * ahead.var(ddof=1) / len(ahead)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Entry:
    """A step in which a feature enters."""

    entering: int  # the feature with the largest absolute correlation
    runner_up: int | None  # the second largest of those that are not active; None without one
    residual: FloatArray  # (n,) before the step


def lars_entries(x: FloatArray, y: FloatArray, k: int) -> list[Entry]:
    """The first k entries of the lasso path of y on the columns of x, both centred.

    A feature may leave the path and enter again; the entry that counts is the last one for each
    number of active features. There are fewer than k if the residual is met before.

    Examples
    --------
    >>> x = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    >>> [entry.entering for entry in lars_entries(x, np.array([1.0, -1.0, 3.0, -3.0]), 2)]
    [1, 0]
    """
    p = x.shape[1]
    beta, active, barred = np.zeros(p), list[int](), set[int]()
    found: dict[int, Entry] = {}
    top, dropped = float(np.abs(x.T @ y).max(initial=0.0)), False
    for _ in range(8 * p + 8):
        residual = y - x @ beta
        c = x.T @ residual
        if not dropped:
            rest = [j for j in range(p) if j not in active and j not in barred]
            order = sorted(rest, key=lambda j: (-abs(c[j]), j))
            if not order or abs(c[order[0]]) <= _ROUNDING * top:
                break
            second = order[1] if len(order) > 1 else None
            entry = Entry(entering=order[0], runner_up=second, residual=residual)
            column = new = x[:, order[0]]
            if active:
                column = new - x[:, active] @ np.linalg.lstsq(x[:, active], new, rcond=None)[0]
            if column @ column <= _ROUNDING * (new @ new):  # a combination of the active ones
                barred.add(order[0])
                continue
            found[len(active) + 1] = entry
            if len(active) + 1 >= k:
                break
            active.append(order[0])
        dropped = _advance(x, c, beta, active, barred)
    return [found[size] for size in sorted(found)]


def _advance(
    x: FloatArray, c: FloatArray, beta: FloatArray, active: list[int], barred: set[int]
) -> bool:
    """Move `beta` to the next knot; True if a feature reached zero there and was dropped."""
    columns, signs = x[:, active], np.sign(c[active])
    direction = np.linalg.solve(columns.T @ columns, signs)
    level, slope = float(np.abs(c[active]).max()), x.T @ (columns @ direction)
    rest = [j for j in range(len(c)) if j not in active and j not in barred]
    with np.errstate(divide="ignore", invalid="ignore"):
        ties = np.concatenate(
            [(level - c[rest]) / (1 - slope[rest]), (level + c[rest]) / (1 + slope[rest])]
        )
        zeros = -beta[active] / direction
    least = _ROUNDING * level
    step = float(min(ties[(ties > least) & np.isfinite(ties)], default=level))
    leaving = float(min(zeros[(zeros > least) & np.isfinite(zeros)], default=np.inf))
    beta[active] += min(step, leaving, level) * direction
    if leaving >= min(step, level):
        return False
    gone = active[int(np.argmin(np.abs(zeros - leaving)))]
    beta[gone] = 0.0
    active.remove(gone)
    return True
