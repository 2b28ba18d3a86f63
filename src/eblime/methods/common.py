"""Shared by the regressions: from a law of lambda to the posterior that users hold."""

from __future__ import annotations

import numpy as np

from eblime._types import FloatArray
from eblime.core.evidence import Evidence
from eblime.core.lam import LambdaLaw
from eblime.core.local import LocalMixture
from eblime.core.mixture import Mixture
from eblime.core.point import PointMass, PointValue
from eblime.core.scalar import Intercept, NoiseVariance
from eblime.core.spectrum import Response, Spectrum, effective_size
from eblime.posterior import Posterior
from eblime.protocols import Law, ScalarLaw

__all__ = ["bayesian_posterior", "evidence_of", "local_posterior", "point_posterior"]


def evidence_of(spectrum: Spectrum, response: Response, *, a: float, b: float) -> Evidence:
    """Likelihood of lambda with sigma^2 ~ inverse gamma(a, b), a flat intercept integrated out.

    Constant scores make a point mass, whatever Q is; it only must not be zero.
    """
    df = 2 * a + len(spectrum.root) - spectrum.flat
    floor = 2 * b + response.residual
    return Evidence(d=spectrum.d, k=response.k, floor=floor if response.unit else 1.0, df=df)


def bayesian_posterior(
    name: str, spectrum: Spectrum, response: Response, mixture: Mixture, *, law: Law | None = None
) -> Posterior:
    """Assemble the posterior from its mixture; `law` replaces the exact law of beta, if given."""
    extras: dict[str, ScalarLaw] = {"lam": mixture.lam, "sigma2": NoiseVariance(mixture=mixture)}
    intercept = _intercept(spectrum, response, mixture)
    if intercept is not None:
        extras["intercept"] = intercept
    if law is None or not response.unit:
        coefficients = mixture.coefficients
    else:
        coefficients = law.mean / response.unit
    kind = "penalised" if mixture.hidden else "free" if spectrum.flat else "no"
    return Posterior(
        law=mixture if law is None else law,
        estimand=f"weighted linear fit, {kind} intercept",
        method=name,
        n_masks=len(spectrum.rows),
        r2=_surrogate_r2(spectrum, response, coefficients),
        ess=effective_size(spectrum.root**2),
        extras=extras,
    )


def local_posterior(
    name: str, spectrum: Spectrum, response: Response, law: LocalMixture
) -> Posterior:
    """Assemble the posterior of a law with a scale for each feature.

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
    return Posterior(
        law=law,
        estimand=f"weighted linear fit, {'free' if spectrum.flat else 'no'} intercept",
        method=name,
        n_masks=len(spectrum.rows),
        r2=_surrogate_r2(spectrum, response, coefficients),
        ess=effective_size(spectrum.root**2),
        extras=extras,
    )


def point_posterior(
    name: str, spectrum: Spectrum, response: Response, coefficients: FloatArray, *, lam: LambdaLaw
) -> Posterior:
    """Assemble the result of a method that gives a point estimate, in the spectrum's units."""
    beta = response.unit * coefficients
    beta.flags.writeable = False
    intercept = response.mean - float(spectrum.centre @ beta)
    return Posterior(
        law=PointMass(mean=beta, method=name),
        estimand=f"weighted linear fit, {'free' if spectrum.flat else 'no'} intercept",
        method=name,
        n_masks=len(spectrum.rows),
        r2=_surrogate_r2(spectrum, response, coefficients),
        ess=effective_size(spectrum.root**2),
        extras={"lam": lam, "intercept": PointValue(value=intercept)},
    )


def _surrogate_r2(spectrum: Spectrum, response: Response, coefficients: FloatArray) -> float:
    """Weighted R^2 of the surrogate; 1 where constant scores are met, as scikit-learn has it."""
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
