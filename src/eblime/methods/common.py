"""Shared by the regressions: from a law of lambda to the posterior that users hold."""

from __future__ import annotations

from collections import ChainMap, UserDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import numpy as np

from eblime._types import FloatArray
from eblime.answers import Answers
from eblime.core import fit_quality as quality
from eblime.core.aliasing import Aliasing, find_aliasing
from eblime.core.derived import noise_factors
from eblime.core.lam import Evidence, LambdaLaw
from eblime.core.laws import PointMass, PointValue, normal_law
from eblime.core.local import LocalMixture
from eblime.core.mixture import Intercept, Mixture, NoiseVariance
from eblime.core.pairs import MOST_EVEN, Pairs, even_share, find_pairs, odd_evidence, pair_numbers
from eblime.core.population import find_population, without_rounding
from eblime.core.spectrum import (
    Response,
    Spectrum,
    centred_rows,
    decompose,
    design_effect,
    effective_size,
    is_well_conditioned,
    reflection,
    rescale,
    respond,
)
from eblime.posterior import Posterior
from eblime.protocols import Law, ScalarLaw

_MET = 1e-10  # share of a row that counts as met by the masks alone
_LEAST_PENALTY = 1e-3  # of lambda
_PER_MASK = 0.5  # what a feature per mask adds to variances, where masks come in pairs
_BLOCK, _ROWS = 1 << 15, 500  # numbers and rows held at once
_WIDE = 100  # features from which on leverages have six digits
LINEAR_FIT = "weighted linear fit, "  # how the estimand of every regression begins


@dataclass(frozen=True, slots=True, kw_only=True)
class Regression:
    """The weighted regression of one target, before anything about lambda."""

    answers: Answers
    spectrum: Spectrum
    response: Response
    pairs: Pairs | None = None  # complements, of which only the odd part counts
    effect: float = 1.0  # how many masks count as one (`design_effect`)
    finite: bool = False  # whether only masks that were not asked are uncertain
    aliased: float = 1.0  # of the variance of the lack of fit, what reaches the importances

    def evidence(self, *, a: float = 0.0, b: float = 0.0) -> Evidence:
        """Likelihood of lambda with sigma^2 ~ inverse gamma(a, b), a flat intercept integrated out.

        Constant scores give a point mass whatever Q is, and Q is set to one.
        """
        spectrum, response = self.spectrum, self.response
        df = 2 * a + (spectrum.count - spectrum.flat) / self.effect
        floor = 2 * b + response.residual if response.unit else 1.0
        evidence = Evidence(d=spectrum.d, k=response.k, floor=floor, df=df)
        if self.pairs is None or not response.unit:
            return evidence
        df = 2 * a + spectrum.count / 2 / self.effect
        return odd_evidence(evidence, spectrum, response, self.pairs, df=df, factor=self.aliased)

    def law(self, lam: LambdaLaw, evidence: Evidence, matrix: FloatArray | None = None) -> Mixture:
        """The law of the coefficients, or of `matrix @ coefficients`."""
        unit = self.response.unit
        return Mixture(
            basis=self.spectrum.basis, evidence=evidence, lam=lam, unit=unit, matrix=matrix
        )

    def fixed(self, lam: float, *, penalised: bool = False) -> Mixture:
        """The law at one lambda, with an improper prior of sigma^2.

        With a penalised intercept, the first coefficient is not an importance.
        """
        matrix = np.eye(len(self.spectrum.basis))[1:] if penalised else None
        return self.law(PointValue(value=lam), self.evidence(), matrix)


def regress(
    answers: Sequence[Answers],
    *,
    flat: bool,
    standardize: bool = True,
    penalised: bool = False,
    corrected: bool = False,
    finite: bool = False,
) -> list[Regression]:
    """The regression of each target; those that share their masks share the decomposition.

    A free intercept may be integrated out (`flat`), the scores divided by their weighted spread
    (`standardize`), or a first column of ones added to the masks (`penalised`). `corrected` counts
    complementary pairs and uneven draws as fewer masks; for `finite` see `with_population`.
    """
    known: dict[tuple[int, int], tuple[Spectrum, Pairs | None, float, Aliasing | None]] = {}
    found = []
    for target in answers:
        key = (id(target.masks), id(target.weights))
        if key not in known:
            columns, pairs, effect, aliasing = target.masks, None, 1.0, None
            if penalised:
                columns = np.column_stack([np.ones(len(columns)), columns])
            spectrum = decompose(columns, target.weights, flat=flat)
            if corrected and target.sampling is not None:
                effect = design_effect(spectrum, target.sampling)
            if corrected and flat:
                columns = columns if spectrum.rows.all() else columns[spectrum.rows]
                pairs = find_pairs(columns)
                if pairs is not None and even_share(spectrum, pairs) <= MOST_EVEN:
                    aliasing = find_aliasing(columns, pairs)
            known[key] = spectrum, pairs, effect, aliasing
        spectrum, pairs, effect, aliasing = known[key]
        problem = Regression(
            answers=target,
            spectrum=spectrum,
            response=respond(spectrum, target.scores, standardize=standardize),
            pairs=pairs,
            effect=effect,
            finite=finite,
        )
        if aliasing is not None and pairs is not None:
            response = problem.response
            missed = response.residual * response.unit**2 / float(spectrum.root @ spectrum.root)
            factor = aliasing.factor(pairs, target.scores[spectrum.rows], missed)
            problem = replace(problem, aliased=factor)
        found.append(problem)
    return found


def bayesian_posterior(
    name: str,
    problem: Regression,
    mixture: Mixture,
    *,
    law: Law | None = None,
    unequal: bool = False,
) -> Posterior:
    """Assemble the posterior from its mixture; `law` replaces the exact law of beta, if given.

    `unequal` stretches that law to a variance that allows for unequal noise; lambda, sigma^2 and
    the intercept keep theirs.
    """
    extras: dict[str, ScalarLaw] = {"lam": mixture.lam, "sigma2": NoiseVariance(mixture=mixture)}
    spectrum, response, penalised = problem.spectrum, problem.response, mixture.matrix is not None
    if penalised:  # the intercept is the coefficient of a column of ones
        first = np.eye(len(mixture.basis))[0]
        extras["intercept"] = Intercept(law=mixture.along(first, noise=0.0, offset=0.0))
    elif spectrum.flat:  # `y_bar - z_bar' beta` plus noise of variance sigma^2 / sum w
        noise = 1 / float(spectrum.root @ spectrum.root)
        mean = mixture.along(-spectrum.centre, noise=noise, offset=response.mean)
        extras["intercept"] = Intercept(law=mean)
    coefficients = mixture.coefficients
    if law is not None and response.unit:
        coefficients = law.mean / response.unit
    posterior = _assemble(name, problem, mixture, coefficients)
    if penalised:
        posterior = replace(posterior, estimand=f"{LINEAR_FIT}penalised intercept")
    if unequal and response.unit and len(spectrum.root) > 1:
        groups = pair_numbers(problem.answers.masks)
        law = mixture.stretch(noise_factors(spectrum, response, mixture, groups))
    posterior = replace(posterior, law=mixture if law is None else law, extras=extras)
    return with_population(posterior, problem)


def local_posterior(
    name: str,
    problem: Regression,
    law: LocalMixture,
    *,
    unequal: bool,
    errors: Callable[[Answers], FloatArray],
) -> Posterior:
    """Assemble the posterior of a law with a scale for each feature.

    `unequal` allows for unequal noise. `errors` are held out where there are hardly more masks than
    features, or fewer.
    """
    answers, spectrum, response = problem.answers, problem.spectrum, problem.response
    coefficients = law.mean / response.unit if response.unit else np.zeros_like(law.mean)
    posterior = _assemble(name, problem, law, coefficients)
    if is_well_conditioned(spectrum) and law.evidence.df > 2 and response.unit:
        missed, squares = _leave_out(problem, law, coefficients)
        held = _r2_of_rows(problem, missed)
        if unequal:
            law = law.stretch(law.noise_factors(problem.aliased * squares))
    else:
        held = held_out(answers, errors)
        if unequal and response.unit and len(spectrum.root) > len(law.evidence.d) + 1:
            scaled, groups = rescale(spectrum, np.exp(-law.fitted / 2)), pair_numbers(answers.masks)
            moved = replace(response, y=response.y - spectrum.masks @ law.origin)
            law = law.stretch(noise_factors(scaled, moved, law.base, groups))
    pairs = problem.pairs
    if pairs is not None and response.unit and even_share(spectrum, pairs) <= MOST_EVEN:
        n, p = spectrum.masks.shape
        law = law.stretch(np.full(p, np.sqrt(1 + _PER_MASK * min(p / n, 1.0))))
    posterior = replace(posterior, law=law, held_out=held)
    posterior = with_population(replace(posterior, extras=_local_extras(law, problem)), problem)
    if not isinstance(posterior.law, LocalMixture):  # all masks are known
        return posterior
    law = posterior.law.with_signs()
    if law.odds is None:
        return posterior
    r2 = _assemble(name, problem, law, law.mean / response.unit).r2
    return replace(posterior, law=law, r2=r2, extras=_local_extras(law, problem))


def _local_extras(law: LocalMixture, problem: Regression) -> Deferred:
    """The laws of lambda, sigma^2 and the intercept."""
    extras: dict[str, Callable[[], ScalarLaw]] = {"sigma2": partial(_local_noise, law)}
    if law.scale is not None:
        extras["lam"] = partial(_local_lambda, law)
    if problem.spectrum.flat:
        extras["intercept"] = partial(_local_intercept, law, problem)
    return Deferred(extras)


class Deferred(UserDict[str, Any]):
    """Laws by name, each computed when it is read."""

    def __getitem__(self, name: str) -> ScalarLaw:
        """The law of that name."""
        law: ScalarLaw = self.data[name]()
        return law


def _local_lambda(law: LocalMixture) -> ScalarLaw:
    return law.base.lam


def _local_noise(law: LocalMixture) -> ScalarLaw:
    return NoiseVariance(mixture=law.base)


def _local_intercept(law: LocalMixture, problem: Regression) -> Intercept:
    """The posterior of the intercept.

    It has the spread that the fitted precisions give it, about the value at which the posterior
    means of the importances put it.
    """
    spectrum, scales = problem.spectrum, np.exp(-law.fitted / 2)
    offset = problem.response.mean + float(spectrum.centre @ (scales * law.base.mean - law.mean))
    noise = 1 / float(spectrum.root @ spectrum.root)
    return Intercept(law=law.base.along(-spectrum.centre * scales, noise=noise, offset=offset))


def _leave_out(
    problem: Regression, law: LocalMixture, coefficients: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Residuals of each row without itself and its partner, (n,), for well-conditioned masks.

    And the sum of squares of the masks times their residuals, (p, p), in which a pair counts as one
    row; the residuals are corrected by `hc_factors`.

    The fit at mask i moves by `h_i = w_i x_i' Cov(beta | Y) x_i / sigma^2` with its own score: the
    derivative of a posterior mean is a posterior variance. That of all features together is the
    one of a ridge regression whose penalties give each feature its own posterior variance, so that
    the fitted scales do not count as known. A mask that decides a coefficient nearly alone moves
    the fit too far for a derivative: its residual is that of the ridge regression itself, for which
    the formula is exact. The rows are done in blocks that stay in the cache.
    """
    spectrum, pairs = problem.spectrum, problem.pairs
    evidence, lam, scales = law.evidence, np.exp(law.log_lambda), np.exp(-law.fitted / 2)
    sigma2 = float(evidence.q(np.array([lam]))[0]) / (evidence.df - 2)
    precision = 1 / (law.basis**2 @ (1 / (evidence.d + lam)))  # of each coefficient in turn
    released = sigma2 * (law.unit * scales / law.sd) ** 2
    penalty = np.maximum(released - precision + lam, _LEAST_PENALTY * lam)
    gram = (law.basis * evidence.d) @ law.basis.T
    n, p = spectrum.masks.shape
    single = np.float32 if p > _WIDE else np.float64  # a product of many columns takes the time
    exact = scales * scales[:, None] * np.linalg.inv(gram + np.diag(penalty))
    spread = exact.astype(single)
    moved = (
        coefficients
        - law.origin
        - exact @ (law.basis @ (np.sqrt(evidence.d) * evidence.k) / scales)
    )
    most = quality.share_of_others(spectrum.root**2) if spectrum.flat else np.ones(n)
    missed = centred_rows(spectrum, problem.response.y - spectrum.masks @ coefficients)
    axis, move = reflection(spectrum, spectrum.masks)
    opens = np.zeros(n + 1, dtype=bool)
    if pairs is not None:
        opens[pairs.first] = True  # its complement comes next
    total = np.linalg.norm(spectrum.root)
    own, squares, start, step = 0.0, np.zeros((p, p)), 0, max(_ROWS, _BLOCK // p)
    while start < n:
        stop = min(start + step, n)
        stop += int(opens[stop - 1])
        block, start = slice(start, stop), stop
        rows = np.multiply.outer(axis[block], -move)
        rows += spectrum.masks[block]
        turned = rows.astype(single) @ spread
        free = most[block] - np.einsum("np,np->n", turned, rows)
        few = np.flatnonzero(free < quality.DECIDED)
        if few.size:
            some = rows[few]
            free[few] = most[block][few] - np.einsum("np,np->n", some @ exact, some)
            missed[block][few] += some @ moved
        error, free = missed[block], np.maximum(free, _MET)
        first = np.flatnonzero(opens[block])
        mean = spectrum.flat * spectrum.root[block] / total
        cross = -np.einsum("np,np->n", turned[first], rows[first + 1])
        cross -= mean[first] * mean[first + 1]
        rows *= (error * quality.hc_factors(free))[:, None]
        missed[block] = quality.without_each(error, free, cross, first, first + 1)[0]
        if pairs is not None:
            rows[first] += rows[first + 1]
            rows = np.delete(rows, first + 1, axis=0)
            own += float(np.sum(1 - (free[first] + free[first + 1]) / 2 + cross))
        squares += rows.T @ rows
    if pairs is not None and problem.aliased < 1:
        fresh = float(np.mean(spectrum.root**2) * np.trace(exact)) / 2  # leverage of other masks
        own = min(own / len(pairs.first), 1 - _MET)
        kept = (1 - own) ** 2 * (1 + problem.aliased * fresh) / (1 - problem.aliased * own)
        odd = (1 - np.sqrt(kept)) * (missed[pairs.first] - missed[pairs.second]) / 2
        missed[pairs.first] -= odd
        missed[pairs.second] += odd
    return missed, squares


def _r2_of_rows(problem: Regression, missed: FloatArray) -> float:
    """Held-out R^2 of the rows that are `missed`; NaN for scores that are constant."""
    spectrum = problem.spectrum
    root, y = spectrum.root, centred_rows(spectrum, problem.response.y)
    if not spectrum.flat:
        y = y - root * (root @ y) / (root @ root)
    if not y.any() or quality.is_constant(y / root):
        return np.nan
    total = root * quality.from_others(y / root, root**2, problem.pairs)
    return 1 - float(np.sum(missed**2) / np.sum(total**2))


def with_population(posterior: Posterior, problem: Regression) -> Posterior:
    """The posterior of the fit to all masks, given that of a regression on those that were asked.

    Only masks that were not asked are uncertain. Nothing changes where masks do not decide the
    input, were drawn unevenly, or are a tiny part of all. If the problem is not `finite`, only the
    loop's answers to all masks count, which leave nothing open.
    """
    answers, spectrum, law = problem.answers, problem.spectrum, posterior.law
    finite, uneven = problem.finite, answers.noisy or answers.sampling is not None
    if uneven or not problem.response.unit or not (finite or answers.original is not None):
        return posterior
    free = spectrum.flat or len(spectrum.basis) > answers.n_features  # or penalised, by very little
    population = find_population(answers.masks, answers.weights, flat=free)
    if population is None or not (finite or population.complete):
        return posterior
    p, known = len(law.mean), isinstance(law, PointMass) or population.complete
    if not known and not (np.isfinite(law.sd) & (law.sd > 0)).all():
        return posterior
    cov, sigma2 = np.zeros((p, p)), 0.0
    if not known and isinstance(law, LocalMixture):
        cov, sigma2 = law.ridge_moments()
    elif not known:
        cov, sigma2 = law.cov, posterior.sigma2.mean
    mean, variance = population.moments(answers.scores, law.mean, cov, sigma2)
    if not known:
        assert isinstance(law, (LocalMixture, Mixture))
        factors = np.sqrt(variance / np.diag(cov))
        return replace(posterior, law=law.stretch(factors, mean - law.mean))
    if population.complete:
        mean = without_rounding(mean, answers.scores)
    total = population.weights.sum() if free else np.inf
    level = population.weights @ (answers.scores - answers.masks @ mean) / total
    known_level: Any = {"intercept": PointValue(value=float(level))}
    extras = ChainMap(known_level, cast("Any", posterior.extras))  # the others are not read here
    if population.complete:  # nothing is held out
        missed = answers.scores - answers.masks @ mean - level
        r2 = quality.weighted_r2(answers.scores, answers.weights, missed)
        posterior = replace(posterior, r2=r2, held_out=r2, extras=extras)
    if isinstance(law, PointMass):
        return replace(posterior, law=replace(law, mean=mean), extras=extras)
    return replace(posterior, law=normal_law(mean, cov))


def point_posterior(name: str, problem: Regression, mixture: Mixture) -> Posterior:
    """Assemble the result of a method that gives the mean of a mixture as a point estimate."""
    beta = mixture.mean
    beta.flags.writeable = False
    intercept = problem.response.mean - float(problem.spectrum.centre @ beta)
    posterior = replace(
        _assemble(name, problem, mixture, mixture.coefficients),
        law=PointMass(mean=beta, method=name),
        extras={"lam": mixture.lam, "intercept": PointValue(value=intercept)},
    )
    return with_population(posterior, problem)


def _assemble(name: str, problem: Regression, law: Law, coefficients: FloatArray) -> Posterior:
    """The posterior of a regression; R^2 is that of the coefficients."""
    held, answers, spectrum = None, problem.answers, problem.spectrum
    if isinstance(law, Mixture):
        held = held_out(answers, partial(_ridge_errors, law, spectrum.flat))
    y, root = problem.response.y, spectrum.root
    total = y if spectrum.flat else y - root * (root @ y) / (root @ root)
    missed = y - spectrum.masks @ coefficients
    scale = float(y @ y) * np.finfo(float).eps ** 2 * len(y)
    r2 = 1.0 if float(missed @ missed) <= scale else 0.0  # of constant scores, as in scikit-learn
    if float(total @ total) > scale:
        r2 = 1 - float(missed @ missed) / float(total @ total)
    return Posterior(
        law=law,
        estimand=f"{LINEAR_FIT}{'free' if spectrum.flat else 'no'} intercept",
        method=name,
        n_masks=len(spectrum.rows),
        r2=r2,
        ess=effective_size(spectrum.root**2),
        held_out=held,
        score_range=quality.score_range(answers.scores, answers.weights),
    )


def held_out(answers: Answers, errors: Callable[[Answers], FloatArray]) -> float:
    """The held-out R^2 of answers, by a function from those with weight to `y_i - yhat_(-i)`.

    NaN for constant scores or a single mask.
    """
    rows = answers.weights > 0
    if not rows.all():
        answers = answers.take(np.flatnonzero(rows))
    if quality.is_constant(answers.scores):
        return np.nan
    pairs = find_pairs(answers.masks)
    return quality.held_out_r2(answers.scores, answers.weights, errors(answers), pairs)


def _ridge_errors(mixture: Mixture, flat: bool, answers: Answers) -> FloatArray:
    """Each answer predicted by the fit to all others, for a regression with one lambda."""
    masks, pairs = answers.masks, find_pairs(answers.masks)
    if mixture.matrix is not None:
        masks = np.column_stack([np.ones(len(masks)), masks])
    return quality.leave_one_out(
        masks, answers.scores, answers.weights, mixture, flat=flat, pairs=pairs
    )
