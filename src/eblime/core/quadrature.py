"""Posterior of importances under a prior over functions of the mask, given the answers so far.

The answers determine a Gaussian posterior of the function, and importances are linear functionals
of it. The parameters of the prior are integrated: the result is a mixture of normal laws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import special
from scipy.linalg import solve_triangular

from eblime._types import FloatArray, IntArray
from eblime.core.fit_quality import power_of_two
from eblime.core.indices import Index
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

_DRAWS = 8  # components of the mixture
_TEMPER = 4.0  # the information about the parameters counts for a quarter; see `Function.fit`
_STEPS = np.arange(-8.0, 9.0)[:, None]  # of log(psi); the integrands are smooth: 1 is fine enough
_STEP = 0.35  # share of the way to the posterior mean of log(psi)
_KNOWN_SUM = 1e-4  # variance of the sum, relative to the sum of variances, below which it is known
_TRUST = 40.0  # pairs predicted as well as expected that a prediction test begins with
_MOST_WIDENING = 5.0  # of the variance: what was far off in one round is known in the next
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
    held_out_r2: float  # of predicting the score of each mask from the others
    widening: float = 1.0  # of the variance, by the prediction errors of the last rounds

    @classmethod
    def fit(
        cls, table: Table, rounds: Sequence[tuple[Table, Table]] = (), twins: IntArray | None = None
    ) -> Function:
        """Fit the prior's parameters, and draw from a normal law around them.

        `rounds` are the last rounds: the answers before each of them, and those of the round.
        `twins` are those of `find_twins`: they get the same parameters.

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
        lead = len(best.vector) - table.n_features
        same = np.arange(len(best.vector))
        if twins is not None:
            same[lead:] = lead + twins
        best = replace(best, vector=best.vector[same])
        precision = np.linalg.inv(prior.cov)
        values, vectors = np.linalg.eigh(information(table.parts, best))
        known = (vectors * np.maximum(values, 0.0)) @ vectors.T  # without rounding below zero
        root = root_of_inverse(precision + known / _TEMPER)
        best = fit_scales(table, best)
        half = rng.standard_normal((_DRAWS // 2, len(best.vector))) @ root.T
        draws = best.vector + np.concatenate([half, -half])[:, same]
        # parameters that the answers fix use up degrees of freedom
        used = len(known) - float(np.trace(precision @ np.linalg.inv(precision + known)))
        n = len(table.parts[0].scores)
        levels = (np.arange(len(draws)) + 0.5) / len(draws)
        solutions = [solve_part(part, best, k) for k, part in enumerate(table.parts)]
        missed = [each.alpha / np.diag(each.inverse) for each in solutions]
        scores = [part.scores - part.even * part.scores.mean() for part in table.parts]
        return cls(
            table=table,
            best=best,
            draws=tuple(replace(best, vector=row) for row in draws),
            quantiles=np.stack([rng.permutation(levels) for _ in table.parts], axis=1),
            stretch=tuple(each.stretch for each in solutions),
            held_out_r2=1 - float(np.sum(np.square(missed)) / np.sum(np.square(scores))),
            df=max(1.0, n - used / len(table.parts)),
            widening=widening(rounds, best),
        )

    def laws(self, indices: Sequence[Index]) -> list[NormalMixture]:
        """The posteriors of several indices: mixtures of normal laws over the same draws."""
        found = [
            self._conditional_moments(indices, parameters, levels)
            for parameters, levels in zip(self.draws, self.quantiles, strict=True)
        ]
        laws = []
        for column in zip(*found, strict=True):
            means = np.stack([mean for mean, _ in column])
            centre = means.mean(axis=0)
            laws.append(
                NormalMixture(
                    weights=np.full(len(found), 1 / len(found)),
                    means=centre + np.sqrt(self.widening) * (means - centre),
                    covs=self.widening * np.stack([cov for _, cov in column]),
                    unit=self.table.unit,
                )
            )
        return laws

    def _conditional_moments(
        self, indices: Sequence[Index], parameters: Parameters, levels: FloatArray
    ) -> list[tuple[FloatArray, FloatArray]]:
        """Means and covariances given the parameters, at quantiles of the parts' amplitudes."""
        walsh, parts = parameters.walsh, self.table.parts
        if all(index.ignores_even for index in indices):
            parts = parts[:1]  # the odd part comes first
        roots = [root_of_part(part, parameters, number) for number, part in enumerate(parts)]
        scores = [part.scores for part in parts]
        right = [solve_triangular(*pair, lower=True) for pair in zip(roots, scores, strict=True)]
        scale = [
            float(known @ known) * stretch / (2 * special.gammaincinv(self.df / 2, level))
            for known, stretch, level in zip(right, self.stretch, levels, strict=False)
        ]
        released = Released.of(parameters, parts[0], roots[0], right[0])
        found = []
        for index in indices:
            size = len(index.subsets(self.table.n_features))
            mean, cov = np.zeros(size), np.zeros((size, size))
            shift, spread = np.zeros(size), np.zeros(size)  # of the means, of the variances
            for part, root, known, amplitude in zip(parts, roots, right, scale, strict=True):
                cross = walsh.cross(part, index, part.signs)
                pull = solve_triangular(root, cross.T, lower=True)
                mean += known @ pull
                left = walsh.own(part, index) - pull.T @ pull
                cov += amplitude * left
                if part.odd and index.order == 1:
                    shift, within, between = released.moments(pull, np.diag(left))
                    spread = amplitude * (within - np.diag(left)) + between
            found.append(_with_marginals(mean, cov, shift, spread))
        return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Released:
    """The linear variance of each feature, released in turn: F values of psi and their weights.

    One number, `linear`, is not right for all features: one whose own effect is far larger than its
    interactions would be shrunk. So the extra variance of a feature is multiplied by psi, and
    `psi^1/2` is half-Cauchy, as for the local scales of EBLIME.

    Notes
    -----
    psi changes the covariance of the answers by a matrix of rank one. Let `known` be the n scores
    and s the signs of the feature, both times the inverse root of the covariance at the fitted psi,
    d the change of the extra variance, and `f = 1 + d s's`. The amplitude is multiplied by
    `share = 1 - d (s'known)^2 / (f known'known)`, with one more answer at the fitted psi, so that
    few answers do not make it zero, and the evidence by `f^-1/2 share^(-n/2)`. With x the product
    of s and the covariances of an importance, the mean of that importance moves by
    `d (s'known) (2 - x) / f`, and its variance v over the amplitude becomes
    `share (v + d (2 - x)^2 / f)`.
    """

    signs: FloatArray  # (n, p)
    along: FloatArray  # (p,) s'known
    pull: FloatArray  # (F, p) d / f
    share: FloatArray  # (F, p)
    logs: FloatArray  # (F, p) log(psi)
    weights: FloatArray  # (F, p), sums to one for each feature

    @classmethod
    def of(
        cls, parameters: Parameters, part: Part, root: FloatArray, known: FloatArray
    ) -> Released:
        """Release each feature, given the root of a part's covariance and the scores over it."""
        signs, n = solve_triangular(root, part.signs, lower=True), len(known)
        delta, along = parameters.walsh.extra * np.expm1(_STEPS), known @ signs
        f = np.maximum(1 + delta * (signs**2).sum(axis=0), 1e-12)
        fall = delta * along**2 / (f * float(known @ known))
        share = (np.maximum(1 - fall, 0.0) + 1 / n) / (1 + 1 / n)
        logs = np.log(parameters.psi) + _STEPS + np.zeros_like(along)
        evidence = -0.5 * (np.log(f) + n * np.log(share))
        weights = special.softmax(evidence + 0.5 * logs - np.logaddexp(0.0, logs), axis=0)
        return cls(
            signs=signs, along=along, pull=delta / f, share=share, logs=logs, weights=weights
        )

    def moments(
        self, pull: FloatArray, left: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """How far the means move, the mean variance over the amplitude, and the moves' variance.

        `pull` are the covariances of the importances with the scores, times the inverse root,
        (n, p), and `left` the variances of the importances over the amplitude at the fitted psi.
        """
        far = 2 - (pull * self.signs).sum(axis=0)
        moves = self.pull * self.along * far
        shift = (self.weights * moves).sum(axis=0)
        variances = self.share * np.maximum(left + self.pull * far**2, 0.0)
        within = (self.weights * variances).sum(axis=0)
        return shift, within, (self.weights * (moves - shift) ** 2).sum(axis=0)


def fit_scales(table: Table, best: Parameters) -> Parameters:
    """The parameters with psi a third of the way from one to its posterior mean, in logs.

    The others' psi enter as fixed numbers when one is released. Moved all the way, they would be
    treated as known, and the intervals would be too narrow.
    """
    part = table.parts[0]
    root = root_of_part(part, best, 0)
    released = Released.of(best, part, root, solve_triangular(root, part.scores, lower=True))
    target = (released.weights * released.logs).sum(axis=0)
    return replace(best, psi=np.exp(_STEP * target))


def _with_marginals(
    mean: FloatArray, cov: FloatArray, shift: FloatArray, spread: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Move the means, and add to the variances with all correlations kept.

    A sum that was known, as that of Shapley values is once both ends were asked, stays as it was.
    """
    before = np.maximum(np.diag(cov), 0.0)
    after = np.maximum(before + spread, 0.0)
    scale = np.sqrt(np.divide(after, before, out=np.ones_like(after), where=before > 0))
    moved, scaled = mean + shift, cov * scale * scale[:, None]
    if float(cov.sum()) <= _KNOWN_SUM * float(before.sum()) and after.sum() > 0:
        share = after / after.sum()
        keep = np.eye(len(after)) - share[:, None]  # takes the change of the sum from each value
        moved, scaled = moved - share * shift.sum(), keep @ scaled @ keep.T
    return moved, scaled


def widening(rounds: Sequence[tuple[Table, Table]], best: Parameters) -> float:
    """The factor of the variance that the prediction errors of rounds ask for, 1 to 5.

    Masks that are chosen by a fit favour what it knows, and make intervals too narrow. But every
    round is a test of the fit before it: `(sum z^2 + 40) / (n + 40)`, with z the n standardised
    errors. `best` are the parameters for all answers, where the searches begin.
    """
    squares = count = _TRUST
    for before, after in rounds:
        if before.split and after.split:
            fitted = fit_parameters(before.parts, before.prior(), best.vector)
            errors = prediction_errors(before, after, fitted)
            squares, count = squares + float(errors @ errors), count + len(errors)
    return float(np.clip(squares / count, 1.0, _MOST_WIDENING))


def prediction_errors(before: Table, after: Table, parameters: Parameters) -> FloatArray:
    """Errors of predicting the odd part of later answers, standardised jointly, (n,).

    With L the root of the predictive covariance, nugget included, in the units of the amplitude A
    of the answers before, they are `L^-1 (odd - mean) / sqrt(A)`.
    """
    part, new, walsh = before.parts[0], after.parts[0], parameters.walsh
    root = root_of_part(part, parameters, 0)
    known = solve_triangular(root, part.scores, lower=True)
    pull = solve_triangular(root, walsh.covariance(part, part.signs, new.signs), lower=True)
    own = walsh.covariance(part, new.signs, new.signs)
    add_noise(new, own, parameters.nugget(0) + 1e-9 * float(own[0, 0]))  # rounding errors of pull
    missed = new.scores * (after.unit / before.unit) - known @ pull
    errors = solve_triangular(np.linalg.cholesky(own - pull.T @ pull), missed, lower=True)
    return np.asarray(errors / np.sqrt(known @ known / len(known)))


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
    missed, repeated = scores - mean[place.ravel()], len(scores) - len(known)
    # the variance among answers to the same mask; 0 where too few were repeated
    chance = float(missed @ missed) / repeated if repeated >= 5 else 0.0
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
            odds = np.array([node.mass - node.sign, node.mass + node.sign]) / 2  # hidden, shown
            while len(values) > 1:  # the expectation over one feature after the other
                values = values.reshape(-1, 2) @ odds
            found[row] += complex(values[0]).real
    return found


def find_twins(masks: FloatArray, scores: FloatArray) -> IntArray:
    """For each feature, the first one that it could change places with: no answer would change.

    Twins must have the same importance, but draws of the parameters are not symmetric.
    """
    strength = np.abs((2 * masks - 1).T @ (scores - scores.mean()))
    twins = np.arange(masks.shape[1])
    for j, size in enumerate(strength):
        for i in np.flatnonzero(np.isclose(strength[:j], size) & (twins[:j] == np.arange(j))):
            swapped = masks.copy()
            swapped[:, i], swapped[:, j] = masks[:, j], masks[:, i]
            keys = np.unique(mask_keys(np.concatenate([masks, swapped])), return_inverse=True)[1]
            one, two = np.split(keys.ravel(), 2)
            first, second = np.lexsort([scores, one]), np.lexsort([scores, two])
            if np.array_equal(one[first], two[second]) and np.allclose(
                scores[first], scores[second], rtol=1e-9, atol=0.0
            ):
                twins[j] = i
                break
    return twins


def mask_keys(masks: FloatArray) -> Any:
    """A sortable key of fixed width for each mask, (N,)."""
    packed = np.packbits(np.asarray(masks, dtype=bool), axis=1)
    return np.ascontiguousarray(packed).view(f"V{packed.shape[1]}").ravel()
