"""A prior that many inputs share: learnt from all of them, and each input's posterior with it.

In units of the spread of an input's scores over root p, the importances of all inputs have one law:
a mixture of normal laws on a grid of centres and widths, which may lean to one side. Only the
weights of the grid are learnt, by expectation and maximisation (empirical Bayes, as in the adaptive
shrinkage of Stephens, 2017). Features that all inputs have may have weights of their own.

Given the weights, the posterior of an input is found by expectation propagation (Minka, 2001): a
normal law, the site, stands for the prior of each importance, and is refitted to the prior where
the data and the other sites put that importance. Nothing here is random, and the cost does not
depend on the number of masks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy import special

from eblime._checks import check_count
from eblime._types import FloatArray, IntArray
from eblime.core.lam import Evidence
from eblime.core.local import Level, LocalMixture
from eblime.core.overall import component_grid
from eblime.core.student import StudentMixture

_ROUNDS = 15  # of learning: a sweep over every input, and new weights
_SWEEPS = 30  # until the sites of one input no longer move
_KEPT = 0.3  # share of the old sites in the new ones
_WORTH = 20.0  # importances that what is known from elsewhere is worth
_LOW = 0.02  # share of the variance that is noise at first: from above, a signal is missed
_STEPS = np.arange(-3.0, 5.0)  # values of log(sigma^2) in standard deviations
_FREE, _SITE = 1e-9, 1e-3  # least precision of a cavity, and of a site over p


CENTRES, WIDTHS = component_grid(0.15, 0.5, 40.0)  # (K,)
_HEAVY = np.gradient(CENTRES) / (1 + CENTRES**2) ** 1.5
_DEFAULT = _HEAVY / _HEAVY.sum()  # a t law with two degrees of freedom


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PooledPrior:
    """The law that the importances of many inputs have; `Run.pool` learns it.

    Examples
    --------
    >>> import numpy as np
    >>> from eblime.core.pool import PooledPrior
    >>> PooledPrior(inputs=40, weights=np.full((3, 31), 1 / 31))
    PooledPrior(inputs=40)
    """

    inputs: int  # from how many it was learnt
    weights: FloatArray = field(repr=False)  # (p, K) of the grid, for each feature

    def __post_init__(self) -> None:
        """Refuse what no file may hold."""
        check_count("inputs", self.inputs)
        shape = np.shape(self.weights)
        if len(shape) != 2 or shape[1] != len(CENTRES) or not (self.weights >= 0).all():
            raise ValueError(
                f"`weights` must be at least 0, with shape (p, {len(CENTRES)}); got {shape}."
            )


class _Problem(NamedTuple):
    """B regressions by their normal equations; the law of a feature is row `feature` of weights."""

    gram: FloatArray  # (B, p, p)
    pull: FloatArray  # (B, p)
    square: FloatArray  # (B,) of the scores, with 2 b
    df: FloatArray  # (B,)
    feature: IntArray  # (B, p)

    @classmethod
    def of(cls, level: Level, places: IntArray) -> _Problem:
        """The problem of one regression or more, in which coefficient j has law `places[j]`."""
        feature = np.tile(places, (len(level.df), 1))
        square = level.floor + (level.k**2).sum(axis=1)
        return cls(*level.normal_equations(), square, level.df, feature)


class _Sites(NamedTuple):
    """Normal laws that stand for the priors of the importances."""

    precision: FloatArray  # (B, p)
    moment: FloatArray  # (B, p) precision times mean


class _Found(NamedTuple):
    """What a sweep over the sites has found."""

    sites: _Sites  # refitted
    sigma2: FloatArray  # (B,) that fits best
    spare: FloatArray  # (B,) degrees of freedom that the importances leave
    log_evidence: FloatArray  # (B,) of the sigma^2 of the sweep
    shares: FloatArray  # (B, p, K) of the normal laws in each importance's posterior
    loc: FloatArray  # (B, p, K)
    variance: FloatArray  # (B, p, K)


def _sweep(problem: _Problem, sites: _Sites, sigma2: FloatArray, weights: FloatArray) -> _Found:
    """Refit every site once, all at the same time.

    A feature's cavity is the law of its importance by the data and the other sites. Cavity times
    prior is a mixture again; with its new site, the cavity has the mean and variance of it.
    """
    precision, moment = sites
    p = precision.shape[1]
    inverse = problem.gram / sigma2[:, None, None]
    inverse[:, range(p), range(p)] += precision
    cov = np.linalg.inv(inverse)
    pull = problem.pull / sigma2[:, None] + moment
    centre, spread = (cov @ pull[..., None])[..., 0], np.diagonal(cov, axis1=1, axis2=2)
    free = np.maximum(1 / spread - precision, _FREE)  # precision of the cavity
    place = (centre / spread - moment) / free

    width = WIDTHS**2 / p
    total = 1 / free[..., None] + width
    gap = place[..., None] - CENTRES / p**0.5
    logs = np.log(weights + 1e-300)[problem.feature] - 0.5 * (gap**2 / total + np.log(total))
    highest = logs.max(axis=2, keepdims=True)
    shares = np.exp(logs - highest)
    chance = shares.sum(axis=2, keepdims=True)
    shares /= chance
    loc, variance = CENTRES / p**0.5 + width / total * gap, width / total / free[..., None]
    mean = (shares * loc).sum(axis=2)
    second = (shares * (variance + (loc - mean[..., None]) ** 2)).sum(axis=2)
    new = np.maximum(1 / second - free, _SITE * p)
    refitted = _Sites(
        precision=np.exp(_KEPT * np.log(precision) + (1 - _KEPT) * np.log(new)),
        moment=_KEPT * moment + (1 - _KEPT) * (mean * (new + free) - free * place),
    )

    log_sites = (highest + np.log(chance))[..., 0] + 0.5 * np.log1p(precision / free)
    log_sites -= 0.5 * ((free * place + moment) ** 2 / (free + precision) - free * place**2)
    log_evidence = (centre * pull).sum(axis=1) - problem.square / sigma2
    log_evidence -= problem.df * np.log(sigma2) + np.linalg.slogdet(inverse)[1]
    missed = problem.square - 2 * (problem.pull * mean).sum(axis=1)
    missed += np.einsum("bij,bij->b", problem.gram, cov + mean[:, None] * mean[..., None])
    return _Found(
        sites=refitted,
        sigma2=missed / problem.df,
        spare=problem.df - (1 - precision * spread).sum(axis=1),
        log_evidence=0.5 * log_evidence + log_sites.sum(axis=1),
        shares=shares,
        loc=loc,
        variance=variance,
    )


def _begin(problem: _Problem) -> tuple[_Sites, FloatArray]:
    shape = problem.pull.shape
    wide = np.full(shape, float(shape[1]))
    return _Sites(wide, np.zeros(shape)), _LOW * problem.square / problem.df


def learn_weights(levels: Sequence[Level | None], laws: Sequence[IntArray]) -> FloatArray:
    """The weights of the grid for every law of a feature, (F, K).

    The regressions have scores in units of their spread; one is None if these are constant. `laws`
    says which of F laws each coefficient has, (p,) for each regression.

    The law of one feature is drawn towards that of the others, which is worth twenty importances,
    and a single law towards a t law with two degrees of freedom.
    """
    pairs = zip(levels, laws, strict=True)
    problems = [_Problem.of(level, places) for level, places in pairs if level is not None]
    begun = [_begin(problem) for problem in problems]
    weights = np.tile(_DEFAULT, (1 + max(int(places.max()) for places in laws), 1))
    for _ in range(_ROUNDS):
        counts = np.zeros_like(weights)
        for number, (problem, (sites, sigma2)) in enumerate(zip(problems, begun, strict=True)):
            found = _sweep(problem, sites, sigma2, weights)
            begun[number] = found.sites, np.sqrt(sigma2 * found.sigma2)
            np.add.at(counts, problem.feature, found.shares)
        others = counts.sum(axis=0) - counts + _WORTH * _DEFAULT
        weights = counts + _WORTH * others / others.sum(axis=1, keepdims=True)
        weights /= weights.sum(axis=1, keepdims=True)
    return weights


def fit_pooled(level: Level, unit: float, prior: PooledPrior) -> LocalMixture:
    """The law of beta in one regression with a learnt prior.

    Each importance is a mixture of normal laws over sigma^2 and the components of its prior. They
    are joined by the correlation that the sites give them at the sigma^2 that fits best.
    """
    p, nodes, weights = level.basis.shape[1], len(_STEPS), prior.weights
    if len(weights) != p:
        raise ValueError(f"`pooled` is a prior of {len(weights)} features; got {p}.")
    problem = _Problem.of(level, np.arange(p))
    sites, sigma2 = _begin(problem)
    for _ in range(_SWEEPS):
        found = _sweep(problem, sites, sigma2, weights)
        sites, sigma2 = found.sites, np.sqrt(sigma2 * found.sigma2)
    noise, fitted = float(sigma2[0]), np.log(sites.precision * sigma2)[0]
    sd = np.sqrt(2 / np.maximum(found.spare, 1.0))
    problem = _Problem._make(np.repeat(part, nodes, axis=0) for part in problem)
    sites = _Sites._make(np.repeat(part, nodes, axis=0) for part in sites)
    sigma2 = sigma2 * np.exp(sd * _STEPS)
    for _ in range(_SWEEPS // 2):
        found = _sweep(problem, sites, sigma2, weights)
        sites = found.sites
    chances = special.softmax(found.log_evidence)[:, None, None] * found.shares
    alone = StudentMixture(
        weights=chances.transpose(0, 2, 1).reshape(-1, p),
        loc=found.loc.transpose(0, 2, 1).reshape(-1, p),
        scale=np.sqrt(found.variance).transpose(0, 2, 1).reshape(-1, p),
        df=np.inf,
        unit=unit,
        heavy=np.zeros(p, dtype=bool),
    )
    scales = np.exp(-fitted / 2)
    d, basis = np.linalg.eigh(problem.gram[0] * scales * scales[:, None])
    df, kept = float(level.df[0]), d > np.finfo(float).eps * d[-1]
    return LocalMixture(
        basis=basis[:, kept],
        evidence=Evidence(d=d[kept], k=np.zeros(kept.sum()), floor=df * noise, df=df),
        scale=None,
        unit=unit,
        fitted=fitted,
        origin=alone.mean / (unit or 1.0),
        log_lambda=0.0,
        mean=alone.mean,
        alone=alone,
    )
