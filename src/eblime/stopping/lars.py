"""The stop rule of S-LIME: fresh masks would lead a lasso path to the same features."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import special

from eblime._checks import check_count, check_level, check_number
from eblime._lazy import import_extra
from eblime._types import FloatArray
from eblime.answers import Answers
from eblime.posterior import Posterior
from eblime.stopping.rule import Rule, Verdict, masks_factor

_ROUNDING = 1e-10  # share of the first correlation that counts as zero


@dataclass(frozen=True, slots=True, repr=False)
class LarsStable(Rule):
    """The first k features of the lasso path are stable: S-LIME (Zhou et al., 2021).

    At each of the first k steps of least-angle regression, the feature with the largest absolute
    correlation with the residual enters. By the central limit theorem, the rule tests whether it
    would also be ahead of the second with fresh masks.

    The rule looks at the answers alone, so that it works with any method, also with LIME. Unlike
    the other rules it states an error rate for each step and each look, as published, and not for
    the whole statement. It needs scikit-learn.

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
        stable, factor = self.k, 1.0
        for step, entry in enumerate(lars_entries(x, y, self.k)):
            lead, error = _lead(x, entry)
            if lead < z * error - self.tol:
                stable, factor = step, masks_factor(z * error, lead, reached=False)
                break
        return Verdict(
            reached=stable == self.k,
            text=f"{stable} of the first {self.k} steps of the lasso path are stable",
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
    products = x[:, [entry.entering, entry.runner_up]] * entry.residual[:, None]
    ahead = products @ (np.sign(products.sum(axis=0)) * [1.0, -1.0])
    return float(ahead.mean()), float(np.sqrt(2 * ahead.var(ddof=1) / len(ahead)))


class Entry(NamedTuple):
    """A step in which a feature enters."""

    entering: int  # the feature with the largest absolute correlation
    runner_up: int  # the second largest of those that are not active
    residual: FloatArray  # (n,) before the step


def lars_entries(x: FloatArray, y: FloatArray, k: int) -> list[Entry]:
    """The first k entries of the lasso path of y on the columns of x, both centred.

    A feature may leave the path and enter again; the entry that counts is the last one for each
    number of active features. There are fewer than k if the residual is met before, and the last
    feature of all enters without a runner-up, which is no entry.

    Examples
    --------
    >>> x = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    >>> [entry.entering for entry in lars_entries(x, np.array([1.0, -1.0, 3.0, -3.0]), 2)]
    [1]
    """
    path = import_extra("sklearn.linear_model", "sklearn").lars_path
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # where columns are equal, or the residual is met
        coefs = path(x, y, method="lasso", max_iter=8 * k)[2]
    found: dict[int, Entry] = {}
    for coef in coefs.T:
        size, residual = int((coef != 0).sum()), y - x @ coef
        correlation = np.where(coef == 0, np.abs(x.T @ residual), 0.0)
        entering, runner_up = np.argsort(-correlation, kind="stable")[:2].tolist()
        met = correlation[entering] <= _ROUNDING * np.abs(x.T @ y).max()
        if met or size >= min(k, x.shape[1] - 1):
            break
        found[size] = Entry(entering, runner_up, residual)
    return [found[size] for size in sorted(found)]
