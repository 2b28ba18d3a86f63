"""Posterior of importances under a prior over functions of the mask, given the answers so far.

The answers determine a Gaussian posterior of the function, and importances are linear functionals
of it. The parameters of the prior are integrated: the result is a mixture of normal laws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special
from scipy.linalg import solve_triangular

from eblime._types import FloatArray, IntArray
from eblime.core.fit_quality import power_of_two
from eblime.core.indices import Index, Node
from eblime.core.laws import NormalMixture
from eblime.core.walsh import (
    Parameters,
    Part,
    Prior,
    Solution,
    add_noise,
    fit_parameters,
    information,
    root_of_inverse,
    solve,
)

__all__ = ["Function", "Table", "exact_values", "mask_keys", "read_table"]

_DRAWS = 16  # components of the mixture
_TEMPER = 4.0  # the information about the parameters counts for a quarter; see `Function.fit`
_EXACT = 1e-8  # noise of the answers for the input itself and for everything hidden


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """The distinct masks that were asked, as the parts that the posterior is computed from.

    If every mask comes with its complement, odd and even part of the function are two parts of half
    the size; otherwise there is one part, which is both.
    """

    parts: tuple[Part, ...]
    unit: float  # what one unit of the parts' scores is worth; 0 for constant scores
    n_masks: int  # distinct masks
    chance: float = 0.0  # variance of one answer in these units, where masks were repeated
    noisy: bool = False  # whether chance is part of an answer

    @property
    def split(self) -> bool:
        """Whether odd and even part are apart."""
        return len(self.parts) > 1

    @property
    def n_features(self) -> int:
        """Number of features, p."""
        return int(self.parts[0].signs.shape[1])

    def prior(self) -> Prior:
        """The prior of the parameters; answers that were repeated say how noisy the model is."""
        chance = self.chance / len(self.parts) if self.chance else None
        return Prior.of(self.n_features, split=self.split, chance=chance, noisy=self.noisy)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Function:
    """What the answers say about the function: the table, and draws of the prior's parameters."""

    table: Table
    best: Parameters
    draws: tuple[Parameters, ...]
    quantiles: FloatArray  # (L, parts) of the amplitudes, one for each draw
    stretch: tuple[float, ...]  # of the variance, by the leave-one-out residuals of each part
    df: float  # degrees of freedom of an amplitude

    @classmethod
    def fit(cls, table: Table) -> Function:
        """Fit the prior's parameters, and draw from a normal law around them.

        Notes
        -----
        The law has the prior's precision plus a quarter of the information in the answers. With all
        of it, intervals cover too seldom: real models are not draws from the prior, and a few
        draws around the best parameters understate what is unknown. Draws come in pairs of
        opposite sign, so that their mean is the best vector. They are the same for every fit, so
        that the posterior depends on the answers alone.
        """
        rng = np.random.default_rng(0)
        prior = table.prior()
        best = fit_parameters(table.parts, prior)
        precision, known = np.linalg.inv(prior.cov), _positive(information(table.parts, best))
        root = root_of_inverse(precision + known / _TEMPER)
        half = rng.standard_normal((_DRAWS // 2, len(best.vector))) @ root.T
        draws = best.vector + np.concatenate([half, -half])
        # parameters that the answers fix use up degrees of freedom
        used = len(known) - float(np.trace(precision @ np.linalg.inv(precision + known)))
        n = len(table.parts[0].scores)
        levels = (np.arange(len(draws)) + 0.5) / len(draws)
        return cls(
            table=table,
            best=best,
            draws=tuple(Parameters(vector=row, split=table.split) for row in draws),
            quantiles=np.stack([rng.permutation(levels) for _ in table.parts], axis=1),
            stretch=tuple(
                solve_part(part, best, number).stretch for number, part in enumerate(table.parts)
            ),
            df=max(1.0, n - used / len(table.parts)),
        )

    def laws(self, indices: Sequence[Index]) -> list[NormalMixture]:
        """The posteriors of several indices: mixtures of normal laws over the same draws."""
        found = [
            self._conditional_moments(indices, parameters, levels)
            for parameters, levels in zip(self.draws, self.quantiles, strict=True)
        ]
        return [
            NormalMixture(
                weights=np.full(len(found), 1 / len(found)),
                means=np.stack([mean for mean, _ in column]),
                covs=np.stack([cov for _, cov in column]),
                unit=self.table.unit,
            )
            for column in zip(*found, strict=True)
        ]

    def held_out_r2(self) -> float:
        """R^2 of predicting the score of each mask from the others, at the best parameters."""
        missed = total = 0.0
        for number, part in enumerate(self.table.parts):
            solved = solve_part(part, self.best, number)
            missed += float(((solved.alpha / np.diag(solved.inverse)) ** 2).sum())
            centre = part.scores.mean() if part.even else 0.0
            total += float(((part.scores - centre) ** 2).sum())
        return 1 - missed / total

    def _conditional_moments(
        self, indices: Sequence[Index], parameters: Parameters, levels: FloatArray
    ) -> list[tuple[FloatArray, FloatArray]]:
        """Means and covariances given the parameters, at quantiles of the parts' amplitudes."""
        walsh, parts = parameters.walsh, self.table.parts
        roots = [root_of_part(part, parameters, number) for number, part in enumerate(parts)]
        scores = [part.scores for part in parts]
        right = [solve_triangular(*pair, lower=True) for pair in zip(roots, scores, strict=True)]
        scale = [
            float(known @ known) * stretch / (2 * special.gammaincinv(self.df / 2, level))
            for known, stretch, level in zip(right, self.stretch, levels, strict=True)
        ]
        found = []
        for index in indices:
            size = len(index.subsets(self.table.n_features))
            mean, cov = np.zeros(size), np.zeros((size, size))
            for part, root, known, amplitude in zip(parts, roots, right, scale, strict=True):
                cross = walsh.cross(part, index, part.signs)
                pull = solve_triangular(root, cross.T, lower=True)
                mean += known @ pull
                cov += amplitude * (walsh.own(part, index) - pull.T @ pull)
            found.append((mean, cov))
        return found


def root_of_part(part: Part, parameters: Parameters, number: int) -> FloatArray:
    """The lower Cholesky root of the covariance of a part's answers."""
    covariance = parameters.walsh.covariance(part, part.signs, part.signs)
    add_noise(part, covariance, parameters.nugget(number))
    return np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)


def solve_part(part: Part, parameters: Parameters, number: int) -> Solution:
    """The inverted covariance of a part's answers."""
    covariance = parameters.walsh.covariance(part, part.signs, part.signs)
    return solve(part, covariance, parameters.nugget(number))


def read_table(
    masks: FloatArray, scores: FloatArray, *, noisy: bool = False, ends: bool = True
) -> Table:
    """Group answers by mask, and split them into odd and even part if all come in pairs.

    A mask that was asked several times counts once, with the mean of its scores. Answers are noisy
    where chance fills in what a mask hides, and where the same mask got different answers. With
    `ends`, those to the input itself and to everything hidden are exact even then.
    """
    keys = mask_keys(masks)
    known, first, place, count = np.unique(
        keys, return_index=True, return_inverse=True, return_counts=True
    )
    distinct, unit = masks[first], power_of_two(scores)
    scores = scores / unit
    mean = np.bincount(place.ravel(), scores) / count
    spread = float(mean.std())
    chance = _chance(scores - mean[place.ravel()], len(known))
    spread = spread if spread > 1e-12 * float(np.abs(mean).max(initial=0.0)) else 0.0
    y = (mean - mean.mean()) / (spread or 1.0)
    signs, noise = 2.0 * distinct - 1.0, 1 / count
    if ends:
        noise[np.abs(signs.sum(axis=1)) == signs.shape[1]] = _EXACT
    partner = np.minimum(np.searchsorted(known, mask_keys(1 - distinct)), len(known) - 1)
    whole = Part(signs=signs, scores=y, noise=noise, odd=True, even=True)
    paired = known[partner] == mask_keys(1 - distinct)
    parts = _split(whole, partner) if paired.all() else None
    return Table(
        parts=parts or (whole,),
        unit=unit * spread,
        n_masks=len(known),
        chance=chance / (spread**2 or 1.0),
        noisy=noisy or chance > 0,
    )


def _split(whole: Part, partner: IntArray) -> tuple[Part, Part] | None:
    """Odd and even part, given the row of each mask's complement; None if one is constant."""
    lead = np.flatnonzero(np.arange(len(partner)) < partner)
    other, y = partner[lead], whole.scores
    signs, noise = whole.signs[lead], (whole.noise[lead] + whole.noise[other]) / 2
    odd, even = (y[lead] - y[other]) / 2, (y[lead] + y[other]) / 2
    if np.ptp(odd) == 0 or np.ptp(even) == 0:
        return None
    return (
        Part(signs=signs, scores=odd, noise=noise, odd=True, even=False),
        Part(signs=signs, scores=even, noise=noise, odd=False, even=True),
    )


def exact_values(masks: FloatArray, scores: FloatArray, index: Index) -> FloatArray:
    """An index from the scores of all 2^p masks, each asked at least once, (P,)."""
    p = masks.shape[1]
    numbers = (masks @ 2.0 ** np.arange(p)).astype(np.intp)
    table = np.bincount(numbers, scores, 2**p) / np.bincount(numbers, minlength=2**p)
    found = np.zeros(len(index.subsets(p)))
    for row, subset in enumerate(index.subsets(p)):
        change = level = table
        for j in subset[::-1]:  # the last first: the numbers of the features before it stay
            shown, hidden = np.moveaxis(change.reshape(-1, 2, 2**j), 1, 0)[::-1]
            change, level = (shown - hidden).ravel(), (shown + hidden).ravel() / 2
        for node in index.terms():
            values: Any = node.difference * change + node.level * level
            found[row] += _expectation(values, node).real
    return found


def _expectation(values: Any, node: Node) -> complex:
    """The expectation of a function of some features, by its values at all their masks."""
    odds = np.array([node.mass - node.sign, node.mass + node.sign]) / 2  # hidden, shown
    while len(values) > 1:
        values = values.reshape(-1, 2) @ odds
    return complex(values[0])


def _positive(matrix: FloatArray) -> FloatArray:
    """A symmetric matrix without the negative eigenvalues that rounding leaves in it."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


def _chance(missed: FloatArray, distinct: int) -> float:
    """The variance among answers to the same mask; 0 where too few were repeated."""
    repeated = len(missed) - distinct
    return float(missed @ missed) / repeated if repeated >= 5 else 0.0


def mask_keys(masks: FloatArray) -> Any:
    """A sortable key of fixed width for each mask, (N,)."""
    packed = np.packbits(np.asarray(masks, dtype=bool), axis=1)
    return np.ascontiguousarray(packed).view(f"V{packed.shape[1]}").ravel()
