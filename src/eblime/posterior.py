"""The result of a fit: the posterior of the feature importances and its summaries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from eblime._checks import (
    as_floats,
    as_generator,
    check_choice,
    check_count,
    check_level,
    check_prob,
)
from eblime._table import importance_table
from eblime._types import BoolArray, FloatArray, IntArray, RNGLike
from eblime.answers import Answers
from eblime.core.derived import select_features
from eblime.core.fit_quality import ROUNDING, relative_range, score_range, weighted_r2
from eblime.core.laws import Draws, NoSpreadError, PointValue
from eblime.core.ranking import (
    RankBounds,
    is_among_top,
    rank_draws,
    rank_features,
    rank_frequencies,
)
from eblime.core.spectrum import effective_size
from eblime.protocols import Law, ScalarLaw

_BLOCK = 1 << 21  # numbers ranked at once
_BARELY = 1e-5  # of their size: a model in single precision returns such differences as rounding


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Posterior:
    """The importances of p features as a probability law, and the R^2 of the fit.

    The intervals say how well the masks that were asked determine the best weighted linear fit.
    They do not say how good that fit is: read `r2_held_out` with them.

    A method of your own builds one from its law with `Posterior.from_law(law, answers, ...)`.

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> rng = np.random.default_rng(0)
    >>> masks = rng.integers(0, 2, size=(100, 2))
    >>> post = eblime.fit(masks, masks @ [1.0, 0.0] + 0.1 * rng.normal(size=100))
    >>> post.mean.round(1) + 0.0, float(post.prob_positive()[0].round(1))
    (array([1., 0.]), 1.0)
    >>> post.interval(0.95).shape
    (2, 2)
    """

    law: Law  # joint law of the importances
    estimand: str  # what the importances are, in a few words
    method: str  # name of the method
    n_masks: int
    r2: float  # in-sample weighted R^2 of the surrogate at the posterior mean
    ess: float  # effective sample size of the weights, (sum w)^2 / sum w^2
    extras: Mapping[str, ScalarLaw] = field(default_factory=dict)  # "lam", "sigma2", "intercept"
    held_out: float | None = None  # see `r2_held_out`
    score_range: tuple[float, float] | None = None  # lowest and highest score
    by_function: bool = False  # `r2_held_out` is of a posterior over functions, `r2` of a line

    @classmethod
    def from_law(
        cls,
        law: Law,
        answers: Answers,
        *,
        method: str,
        estimand: str = "importances",
        extras: Mapping[str, ScalarLaw] | None = None,
    ) -> Posterior:
        """A posterior from a law and the answers it was fitted to; computes `r2` and `ess`.

        Without an intercept among the extras, the one that fits best is used for R^2. The law does
        not say how the method would predict an answer that it has not seen, so that `r2_held_out`
        is None, and tables call their R^2 "in-sample".
        """
        known = dict(extras or {})
        scores, weights = answers.scores, answers.weights
        missed = scores - answers.masks @ law.mean
        if "intercept" not in known:
            known["intercept"] = PointValue(value=float(weights @ missed / weights.sum()))
        return cls(
            law=law,
            estimand=estimand,
            method=method,
            n_masks=answers.n_masks,
            r2=weighted_r2(scores, weights, missed - known["intercept"].mean),
            ess=effective_size(weights),
            extras=known,
            score_range=score_range(scores, weights),
        )

    @property
    def n_features(self) -> int:
        """Number of features, p."""
        return self.law.n_features

    @property
    def has_spread(self) -> bool:
        """Whether the method states its uncertainty: False for a point estimate."""
        return self.law.has_spread

    @property
    def r2_held_out(self) -> float | None:
        """Weighted R^2 of predicting each answer from the others, at most 1.

        The prediction is that of the linear fit. `Quadrature` predicts with its posterior over
        functions of the mask, which is not a line: tables call its R^2 "function R2".

        Unlike `r2`, it does not grow because there are many features: for scores that are noise it
        is near zero or below. NaN for constant scores, None for a method that does not provide it.
        With all possible masks used there is nothing else to predict, and it is `r2`.
        """
        return np.nan if self.held_out is not None and self.constant else self.held_out

    @property
    def constant(self) -> bool:
        """Whether all scores are the same: there is nothing to explain."""
        return self.score_range is not None and relative_range(*self.score_range) <= ROUNDING

    @property
    def nearly_constant(self) -> bool:
        """Whether the scores move, but by less than a hundred-thousandth of their size."""
        if self.score_range is None or self.constant:
            return False
        return relative_range(*self.score_range) < _BARELY

    @property
    def mean(self) -> FloatArray:
        """Posterior mean of each importance, shape (p,)."""
        return self.law.mean

    @property
    def sd(self) -> FloatArray:
        """Posterior standard deviation of each importance, shape (p,)."""
        return self.law.sd

    @property
    def cov(self) -> FloatArray:
        """Posterior covariance of the importances, shape (p, p)."""
        return self.law.cov

    @property
    def lam(self) -> ScalarLaw:
        """Posterior of the ridge parameter lambda."""
        return self._extra("lam", "ridge parameter")

    @property
    def sigma2(self) -> ScalarLaw:
        """Posterior of sigma^2, the lack of linear fit at weight one."""
        return self._extra("sigma2", "posterior of sigma^2")

    @property
    def intercept(self) -> float:
        """Posterior mean of the intercept, 0.0 where there is none."""
        return float(self.extras["intercept"].mean) if "intercept" in self.extras else 0.0

    @property
    def intercept_law(self) -> ScalarLaw | None:
        """Posterior of the intercept, None where there is none or it is a point estimate."""
        law = self.extras.get("intercept")
        return None if isinstance(law, PointValue) else law

    def interval(self, prob: float = 0.95) -> FloatArray:
        """Equal-tailed credible interval of each importance, shape (p, 2)."""
        tail = (1 - check_level("prob", prob)) / 2
        return self.law.quantile(np.array([tail, 1 - tail])).T

    def hdi(self, prob: float = 0.95) -> FloatArray:
        """Highest-density interval of each importance, the shortest with `prob`, shape (p, 2)."""
        return self.law.hdi(check_level("prob", prob))

    def quantile(self, q: ArrayLike) -> FloatArray:
        """Marginal quantiles, every feature at once: shape (p,) for one q, (K, p) for K of them."""
        target = check_prob("q", q)
        found = self.law.quantile(np.ravel(target))
        return found.reshape(*target.shape, self.n_features)

    def pdf(self, x: ArrayLike) -> FloatArray:
        """Marginal densities at x, broadcasting against the features: a grid is `x[:, None]`."""
        return self.law.pdf(as_floats("x", x))

    def cdf(self, x: ArrayLike) -> FloatArray:
        """P(beta_j <= x), x broadcasting against the features: a grid is `x[:, None]`."""
        return self.law.cdf(as_floats("x", x))

    def prob_positive(self) -> FloatArray:
        """P(beta_j > 0), shape (p,)."""
        return self.law.prob_positive()

    def order(self) -> IntArray:
        """Features by the size of their means, the largest first, shape (p,)."""
        return np.argsort(-np.abs(self.mean), kind="stable")

    def select(self, features: IntArray) -> Posterior:
        """The posterior of some features, by number; a few of thousands take the time of a few."""
        return replace(self, law=select_features(self.law, np.asarray(features, dtype=np.intp)))

    def with_fixed(self, fixed: BoolArray | None) -> Posterior:
        """The posterior with features that change nothing: they are zero, with zero width."""
        if fixed is None:
            return self
        return self.select(np.where(fixed, -1, np.cumsum(~fixed) - 1))

    def columns(self, prob: float = 0.95) -> dict[str, FloatArray]:
        """The columns of a table, `sd`, `low`, `high` and `prob_positive`, each (p,).

        Empty for a point estimate.
        """
        tail = (1 - check_level("prob", prob)) / 2
        if not self.law.has_spread:
            return {}
        low, high = self.law.quantile(np.array([tail, 1 - tail]))
        found = {"sd": self.law.sd, "low": low, "high": high}
        return found | {"prob_positive": self.law.prob_positive()}

    def prob_greater(self) -> FloatArray:
        """P(beta_i > beta_j), shape (p, p), with one half on the diagonal."""
        return self.law.prob_greater()

    def sample(self, n: int, rng: RNGLike = None) -> FloatArray:
        """Independent draws of the importances, shape (n, p)."""
        return self.draw(n, rng).beta

    def draw(self, n: int, rng: RNGLike = None) -> Draws:
        """Independent joint draws of the importances and the extras of the law: Algorithm 1.

        With local scales the importances are drawn independently of lambda and sigma^2.
        """
        check_count("n", n)
        return self.law.draw(as_generator(rng), n)

    def top_k_probability(
        self, k: int, by: str = "abs", *, n_draws: int = 10_000, rng: RNGLike = 0
    ) -> FloatArray:
        """P(feature j is among the k largest), shape (p,), by `|beta|` ("abs") or beta ("value").

        It is about the fit of the linear surrogate: not the probability that an object or a defect
        is there. From i.i.d. draws: the standard error is at most `0.5 / sqrt(n_draws)`, .005 by
        default.

        Examples
        --------
        >>> import numpy as np
        >>> import eblime
        >>> rng = np.random.default_rng(0)
        >>> masks = rng.integers(0, 2, size=(100, 3))
        >>> post = eblime.fit(masks, masks @ [1.0, 0.9, 0.0] + 0.2 * rng.normal(size=100))
        >>> post.top_k_probability(2).round(2)
        array([1., 1., 0.])
        """
        check_count("k", k, maximum=self.n_features)
        check_choice("by", by, ("abs", "value"))
        check_count("n_draws", n_draws)
        generator, p = as_generator(rng), self.n_features
        counts, step = np.zeros(p), max(1, _BLOCK // p)
        for start in range(0, n_draws, step):
            draws = self.law.draw(generator, min(step, n_draws - start)).beta
            counts += is_among_top(generator, draws, k, by).sum(axis=0)
        return counts / n_draws

    def rank_probability(
        self, by: str = "abs", *, n_draws: int = 10_000, rng: RNGLike = 0
    ) -> FloatArray:
        """P(rank of feature j = r + 1) at [j, r], shape (p, p), from i.i.d. draws."""
        return rank_frequencies(self._ranks(by, n_draws, rng))

    def ranking(
        self, by: str = "abs", *, prob: float = 0.95, n_draws: int = 10_000, rng: RNGLike = 0
    ) -> RankBounds:
        """Features from most to least important, with bounds on all ranks that hold together.

        Examples
        --------
        >>> import numpy as np
        >>> import eblime
        >>> rng = np.random.default_rng(0)
        >>> masks = rng.integers(0, 2, size=(100, 3))
        >>> post = eblime.fit(masks, masks @ [1.0, 0.9, 0.0] + 0.2 * rng.normal(size=100))
        >>> post.ranking().credible_set(2)  # which may be among the first two
        array([0, 1])
        """
        return rank_features(self._ranks(by, n_draws, rng), check_level("prob", prob))

    def table(self, names: Sequence[str] | None = None, prob: float = 0.95, top: int = 20) -> str:
        """The most important features as text: mean, sd, interval and P(beta > 0)."""
        if names is not None and len(names) != self.n_features:
            raise ValueError(
                f"`names` must have one entry for each of the {self.n_features} features; "
                f"got {len(names)}."
            )
        return importance_table(self, names, prob, top)

    def fit_label(self, digits: int = 3, r2: str = "R2") -> str:
        """How well the fit predicts, in a few words, for tables and titles.

        A linear fit has an "R2". A posterior over functions of the mask has a "function R2", for
        its own predictions, and a "linear R2", for the line with its importances. `r2` says how to
        write R^2.
        """
        if self.constant:
            return "constant scores"
        held_out = self.r2_held_out
        line = f"{'linear ' if self.by_function else ''}{r2} {self.r2:.{digits}f}"
        if held_out is None or np.isnan(held_out):
            words = f"in-sample {line}"
        elif self.held_out == self.r2:  # all masks were used: nothing was held out
            words = line
        elif self.by_function:
            words = f"held-out function {r2} {held_out:.{digits}f}"
            words += "" if np.isnan(self.r2) else f", {line}"  # interactions are not a line
        else:
            words = f"held-out {r2} {held_out:.{digits}f}"
        return f"{words} (scores barely move)" if self.nearly_constant else words

    def __repr__(self) -> str:
        """One line: what was fitted, to how much, how well."""
        held_out = None if self.r2_held_out is None else f"{self.r2_held_out:.3f}"
        return (
            f"Posterior(method={self.method!r}, n_features={self.n_features}, "
            f"n_masks={self.n_masks}, r2={self.r2:.3f}, r2_held_out={held_out}, "
            f"ess={self.ess:.1f})"
        )

    def __str__(self) -> str:
        """The table of importances."""
        return self.table()

    def _extra(self, name: str, words: str) -> ScalarLaw:
        if name not in self.extras:
            raise NoSpreadError(f"{self.method} has no {words}; fit with EBLIME or BayesLIME.")
        return self.extras[name]

    def _ranks(self, by: str, n_draws: int, rng: RNGLike) -> IntArray:
        check_choice("by", by, ("abs", "value"))
        check_count("n_draws", n_draws)
        generator = as_generator(rng)
        return rank_draws(generator, self.law.draw(generator, n_draws).beta, by)
