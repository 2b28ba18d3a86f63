"""Shared by the regressions: from a law of lambda to the posterior that users hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from eblime._types import FloatArray
from eblime.answers import Answers
from eblime.core.derived import StretchedLaw, noise_factors
from eblime.core.fit_quality import HeldOut, held_out_r2, is_constant, leave_one_out, score_range
from eblime.core.lam import Evidence
from eblime.core.laws import PointMass, PointValue
from eblime.core.local import LocalMixture, fit_precisions, law_at
from eblime.core.mixture import Intercept, Mixture, NoiseVariance
from eblime.core.pairs import Pairs, odd_evidence, pair_numbers
from eblime.core.spectrum import (
    Response,
    Spectrum,
    decompose,
    effective_size,
    rescale,
    respond,
)
from eblime.posterior import Posterior
from eblime.protocols import Law, ScalarLaw

__all__ = [
    "LINEAR_FIT",
    "allow_unequal_noise",
    "bayesian_posterior",
    "evidence_of",
    "fixed_ridge",
    "held_out",
    "local_errors",
    "local_posterior",
    "point_posterior",
]

LINEAR_FIT = "weighted linear fit, "  # how the estimand of every regression begins


def evidence_of(
    spectrum: Spectrum,
    response: Response,
    *,
    a: float,
    b: float,
    pairs: Pairs | None = None,
    effect: float = 1.0,
) -> Evidence:
    """Likelihood of lambda with sigma^2 ~ inverse gamma(a, b), a flat intercept integrated out.

    Constant scores give a point mass whatever Q is, and Q is set to one. With `pairs`, the lack of
    fit is that of the odd parts. N masks count as `N / effect` (`design_effect`).
    """
    n = spectrum.count
    df = 2 * a + (n - spectrum.flat) / effect
    floor = 2 * b + response.residual
    if not response.unit:
        return Evidence(d=spectrum.d, k=response.k, floor=1.0, df=df)
    evidence = Evidence(d=spectrum.d, k=response.k, floor=floor, df=df)
    if pairs is None:
        return evidence
    return odd_evidence(evidence, spectrum, response, pairs, df=2 * a + n / 2 / effect)


def fixed_ridge(spectrum: Spectrum, response: Response, lam: float, *, hidden: int = 0) -> Mixture:
    """The law of the coefficients at one lambda, with an improper prior of sigma^2."""
    return Mixture(
        basis=spectrum.basis,
        evidence=evidence_of(spectrum, response, a=0.0, b=0.0),
        lam=PointValue(value=lam),
        unit=response.unit,
        hidden=hidden,
    )


def bayesian_posterior(
    name: str,
    answers: Answers,
    spectrum: Spectrum,
    response: Response,
    mixture: Mixture,
    *,
    law: Law | None = None,
) -> Posterior:
    """Assemble the posterior from its mixture; `law` replaces the exact law of beta, if given."""
    extras: dict[str, ScalarLaw] = {"lam": mixture.lam, "sigma2": NoiseVariance(mixture=mixture)}
    intercept = _intercept(spectrum, response, mixture)
    if intercept is not None:
        extras["intercept"] = intercept
    coefficients = mixture.coefficients
    if law is not None and response.unit:
        coefficients = law.mean / response.unit
    posterior = _assemble(name, answers, spectrum, response, mixture, coefficients)
    if mixture.hidden:
        posterior = replace(posterior, estimand=f"{LINEAR_FIT}penalised intercept")
    return replace(posterior, law=mixture if law is None else law, extras=extras)


def local_posterior(
    name: str,
    answers: Answers,
    spectrum: Spectrum,
    response: Response,
    law: LocalMixture,
    *,
    errors: Callable[[Answers], FloatArray],
) -> Posterior:
    """Assemble the posterior of a law with a scale for each feature; `errors` are held out.

    The intercept has the spread that the fitted precisions give it, about the value at which the
    posterior means of the importances put it.
    """
    coefficients = law.mean / response.unit if response.unit else np.zeros_like(law.mean)
    base = law.base
    extras: dict[str, ScalarLaw] = {"lam": base.lam, "sigma2": NoiseVariance(mixture=base)}
    if spectrum.flat:
        scales = np.exp(-law.fitted / 2)
        moved = spectrum.centre @ (scales * base.mean - law.mean)
        noise = 1 / float(spectrum.root @ spectrum.root)
        direction, offset = -spectrum.centre * scales, response.mean + float(moved)
        extras["intercept"] = Intercept(law=base.along(direction, noise=noise, offset=offset))
    posterior = _assemble(name, answers, spectrum, response, base, coefficients)
    return replace(posterior, law=law, extras=extras, held_out=held_out(answers, errors))


def point_posterior(
    name: str, answers: Answers, spectrum: Spectrum, response: Response, mixture: Mixture
) -> Posterior:
    """Assemble the result of a method that gives the mean of a mixture as a point estimate."""
    beta = mixture.mean
    beta.flags.writeable = False
    intercept = response.mean - float(spectrum.centre @ beta)
    posterior = _assemble(name, answers, spectrum, response, mixture, mixture.coefficients)
    return replace(
        posterior,
        law=PointMass(mean=beta, method=name),
        extras={"lam": mixture.lam, "intercept": PointValue(value=intercept)},
    )


def _assemble(
    name: str,
    answers: Answers,
    spectrum: Spectrum,
    response: Response,
    mixture: Mixture,
    coefficients: FloatArray,
) -> Posterior:
    """The posterior of a regression; R^2 is that of the coefficients."""
    return Posterior(
        law=mixture,
        estimand=f"{LINEAR_FIT}{'free' if spectrum.flat else 'no'} intercept",
        method=name,
        n_masks=len(spectrum.rows),
        r2=_surrogate_r2(spectrum, response, coefficients),
        ess=effective_size(spectrum.root**2),
        held_out=held_out(answers, partial(_ridge_errors, mixture, spectrum.flat)),
        score_range=score_range(answers.scores, answers.weights),
    )


def allow_unequal_noise(
    posterior: Posterior, spectrum: Spectrum, response: Response, answers: Answers
) -> Posterior:
    """Stretch the law of the importances to a variance that allows for unequal noise.

    The extras (lambda, sigma^2, the intercept) keep their laws.
    """
    law, masks = posterior.law, answers.masks
    assert isinstance(law, (Mixture, LocalMixture))
    if not response.unit or len(spectrum.root) < 2:
        return posterior
    groups = pair_numbers(masks)
    if isinstance(law, Mixture):
        mixture = law
    else:  # the base is the law of the importances divided by their fitted scales
        scales = np.exp(-law.fitted / 2)
        spectrum, masks, mixture = rescale(spectrum, scales), masks * scales, law.base
    factors = noise_factors(spectrum, response, mixture, masks, answers.scores, groups)
    return replace(posterior, law=StretchedLaw(law=law, factors=factors))


def _surrogate_r2(spectrum: Spectrum, response: Response, coefficients: FloatArray) -> float:
    """Weighted R^2 of the surrogate; 1 for constant scores that it fits, as in scikit-learn."""
    y, root = response.y, spectrum.root
    total = y if spectrum.flat else y - root * (root @ y) / (root @ root)
    missed = y - spectrum.masks @ coefficients
    scale = float(y @ y) * np.finfo(float).eps ** 2 * len(y)
    if float(total @ total) <= scale:
        return 1.0 if float(missed @ missed) <= scale else 0.0
    return 1 - float(missed @ missed) / float(total @ total)


def _intercept(spectrum: Spectrum, response: Response, mixture: Mixture) -> Intercept | None:
    """Posterior of the intercept: `y_bar - z_bar' beta` plus noise of variance sigma^2 / sum w."""
    if mixture.hidden:  # penalised: the coefficient of a column of ones
        first = np.eye(len(mixture.basis))[0]
        return Intercept(law=mixture.along(first, noise=0.0, offset=0.0))
    if not spectrum.flat:
        return None
    noise = 1 / float(spectrum.root @ spectrum.root)
    return Intercept(law=mixture.along(-spectrum.centre, noise=noise, offset=response.mean))


_FOLDS = 3


def held_out(answers: Answers, errors: Callable[[Answers], FloatArray]) -> HeldOut:
    """The held-out R^2 of answers, by a function from those with weight to `y_i - yhat_(-i)`."""
    return HeldOut(compute=partial(_r2_of_errors, answers, errors))


def _r2_of_errors(answers: Answers, errors: Callable[[Answers], FloatArray]) -> float:
    """Weighted R^2 of the predictions; NaN for constant scores or a single mask."""
    rows = answers.weights > 0
    if not rows.all():
        answers = answers.take(np.flatnonzero(rows))
    if is_constant(answers.scores):
        return np.nan
    return held_out_r2(answers.scores, answers.weights, errors(answers))


def _ridge_errors(mixture: Mixture, flat: bool, answers: Answers) -> FloatArray:
    """Each answer predicted by the fit to all others, for a regression with one lambda."""
    masks = answers.masks
    if mixture.hidden:
        masks = np.column_stack([np.ones(len(masks)), masks])
    return leave_one_out(masks, answers.scores, answers.weights, mixture, flat=flat)


def local_errors(
    ridge: Callable[[Spectrum, Response], Mixture], flat: bool, standardize: bool, answers: Answers
) -> FloatArray:
    """Each answer predicted by the others, for a regression with a scale for each feature.

    The scales are fitted without a third of the answers, which include the one to predict; given
    the scales, that one alone is left out. Scales that had seen it would flatter the result.
    """

    def read(answers: Answers) -> tuple[Spectrum, Response]:
        spectrum = decompose(answers.masks, answers.weights, flat=flat)
        return spectrum, respond(spectrum, answers.scores, standardize=standardize)

    spectrum, response = read(answers)
    fold = np.random.default_rng(0).permutation(answers.n_masks) % _FOLDS
    missed = np.empty(answers.n_masks)
    for number in np.unique(fold):
        rows = fold == number
        others = read(answers.take(np.flatnonzero(~rows)))
        fitted = fit_precisions(*others, ridge)
        law, masks = law_at(fitted, spectrum, response, ridge), answers.masks * np.exp(-fitted / 2)
        missed[rows] = leave_one_out(
            masks, answers.scores, answers.weights, law, flat=flat, only=rows
        )
    return missed
