"""EBLIME: Bayesian ridge regression with a random ridge parameter, the paper's method."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

import numpy as np

from eblime._checks import check_choice, check_count, check_number
from eblime._types import FloatArray
from eblime.answers import Answers
from eblime.core.lam import LambdaLaw, grid_lambda, gumbel_sample, half_line_lambda
from eblime.core.laws import DrawsLaw
from eblime.core.local import fit_local
from eblime.core.mixture import Mixture
from eblime.core.pairs import Pairs, find_pairs
from eblime.core.spectrum import Response, Spectrum, decompose, design_effect, respond
from eblime.methods.common import (
    allow_unequal_noise,
    bayesian_posterior,
    evidence_of,
    local_errors,
    local_posterior,
)
from eblime.posterior import Posterior

__all__ = ["EBLIME", "PublishedGrid", "common_ridge"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedGrid:
    """The paper's way to integrate over lambda: a uniform grid, and draws by Algorithms 1 and 2.

    Examples
    --------
    >>> import eblime
    >>> eblime.EBLIME.paper().grid.n_lambdas
    20000
    """

    n_lambdas: int = 20_000  # L
    upper: float = 1.0  # r
    draws: int | None = 2_500  # s; None integrates the same grid exactly
    sampler: Literal["categorical", "gumbel"] = "categorical"

    def __post_init__(self) -> None:
        """Refuse settings that no grid can have."""
        check_count("n_lambdas", self.n_lambdas)
        check_number("upper", self.upper)
        if self.draws is not None:
            check_count("draws", self.draws, minimum=2)
        check_choice("sampler", self.sampler, ("categorical", "gumbel"))

    @property
    def lambdas(self) -> FloatArray:
        """`r l / L` for l = 1 .. L, shape (L,)."""
        return self.upper * (np.arange(1, self.n_lambdas + 1) / self.n_lambdas)


@dataclass(frozen=True, slots=True, kw_only=True)
class EBLIME:
    """Bayesian ridge regression with a half-Cauchy on lambda^-1/2 and an inverse gamma on sigma^2.

    Each feature has its own scale, in addition to the common ridge parameter lambda.

    Parameters
    ----------
    a, b
        Shape and scale of the inverse gamma prior of sigma^2; weak by default. With standardised
        scores b is the scale at a mask of average weight.
    intercept
        "flat" integrates out a free intercept exactly; "none" has none, as in the paper.
    scale
        Scale of the half-Cauchy prior of lambda^-1/2.
    standardize
        Divide the scores by their weighted spread first (and undo it in the result), so that the
        answer does not depend on their units.
    grid
        None integrates over the whole half-line of lambda; a `PublishedGrid` integrates as the
        paper does.
    local
        Whether each feature has its own scale in addition to the common lambda, so that a few large
        importances are not shrunk because many are small. None, the default, is True with
        `grid=None` and False with a grid; True needs `grid=None`.
    noise
        "equal": the lack of fit is of the same size for all masks, beyond their weights.
        "unequal": intervals are widened where the residuals show that it is not, by a sandwich
        variance that allows for pairs of complementary masks. Needs `grid=None`.

    Notes
    -----
    Masks in complementary pairs, as the design "paired" asks them, have scores whose even part
    cancels out of the importances. With a free intercept and `grid=None`, the lack of fit is then
    that of the odd parts, from N / 2 observations (`core/pairs.py`). Weights that correct for
    uneven draws make N masks count as fewer (`design_effect` in `core/spectrum.py`).

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> masks = np.array([[1, 1], [1, 0], [0, 1], [0, 0], [1, 1], [0, 1]])
    >>> scores = masks @ [2.0, -1.0] + [0.1, -0.1, 0.0, 0.1, 0.0, -0.1]
    >>> post = eblime.fit(masks, scores, method=eblime.EBLIME())
    >>> post.mean.round(2), post.prob_positive().round(2)
    (array([ 1.96, -0.95]), array([1.  , 0.01]))
    """

    a: float = 1e-6
    b: float = 1e-6
    intercept: Literal["flat", "none"] = "flat"
    scale: float = 1.0
    standardize: bool = True
    grid: PublishedGrid | None = None
    local: bool | None = None
    noise: Literal["equal", "unequal"] = "equal"

    counts_repeats: ClassVar[bool] = True  # a mask that is asked twice counts twice

    def __post_init__(self) -> None:
        """Refuse settings that no prior can have, and decide `local` where it is None."""
        check_number("a", self.a)
        check_number("b", self.b)
        check_number("scale", self.scale)
        check_choice("intercept", self.intercept, ("flat", "none"))
        if not isinstance(self.standardize, bool):
            raise TypeError(f"`standardize` must be True or False; got {self.standardize!r}.")
        if not isinstance(self.grid, (PublishedGrid, type(None))):
            raise TypeError(f"`grid` must be a PublishedGrid or None; got {self.grid!r}.")
        if not isinstance(self.local, (bool, type(None))):
            raise TypeError(f"`local` must be True, False or None; got {self.local!r}.")
        if self.local is None:
            object.__setattr__(self, "local", self.grid is None)
        check_choice("noise", self.noise, ("equal", "unequal"))
        if self.grid is not None and (self.local or self.noise == "unequal"):
            raise ValueError(
                "`local=True` and `noise='unequal'` need `grid=None`; got a PublishedGrid. Set "
                "`local=False` and `noise='equal'`, or leave them out."
            )

    @classmethod
    def paper(
        cls,
        *,
        n_lambdas: int = 20_000,
        upper: float = 1.0,
        draws: int | None = 2_500,
        sampler: Literal["categorical", "gumbel"] = "categorical",
    ) -> EBLIME:
        """The published setting: no intercept, a = b = 1, scores as they are, lambda in (0, 1].

        Parameters
        ----------
        n_lambdas, upper
            L and r: the grid is L uniform values of (0, r].
        draws
            s, the number of draws by Algorithm 1; None integrates the same grid exactly.
        sampler
            How Algorithm 1 draws lambda: "gumbel" as printed (Algorithm 2), "categorical" by
            inverse cdf, which has the same law and takes milliseconds.
        """
        grid = PublishedGrid(n_lambdas=n_lambdas, upper=upper, draws=draws, sampler=sampler)
        return cls(a=1.0, b=1.0, intercept="none", standardize=False, grid=grid, local=False)

    @property
    def name(self) -> str:
        """The method's name in tables and reports."""
        if self.grid is not None:
            return "EBLIME (published grid)"
        ridge, unequal = not self.local, self.noise == "unequal"
        extras = ["common ridge"] * ridge + ["unequal noise"] * unequal
        return f"EBLIME ({', '.join(extras)})" if extras else "EBLIME"

    def fit(self, rng: np.random.Generator, answers: Answers) -> Posterior:
        """Fit one target."""
        return self.fit_targets(rng, [answers])[0]

    def fit_targets(
        self, rng: np.random.Generator, answers: Sequence[Answers]
    ) -> tuple[Posterior, ...]:
        """Fit several targets from one decomposition of the masks that they share."""
        masks, weights = answers[0].masks, answers[0].weights
        spectrum = decompose(masks, weights, flat=self.intercept == "flat")
        ridge: Callable[[Spectrum, Response], Mixture] = self._ridge
        if self.grid is None:
            pairs = find_pairs(masks[spectrum.rows]) if spectrum.flat else None
            effect = design_effect(spectrum, answers[0].sampling)
            ridge = partial(self._ridge, pairs=pairs, effect=effect)
        posteriors: list[Posterior] = []
        for target in answers:
            response = respond(spectrum, target.scores, standardize=self.standardize)
            # The same stream for every target: each gets the draws it would get alone.
            stream = rng if len(posteriors) == len(answers) - 1 else deepcopy(rng)
            posterior = self._fit_one(stream, target, spectrum, response, ridge)
            if self.noise == "unequal":
                posterior = allow_unequal_noise(posterior, spectrum, response, target)
            posteriors.append(posterior)
        return tuple(posteriors)

    def _fit_one(
        self,
        rng: np.random.Generator,
        answers: Answers,
        spectrum: Spectrum,
        response: Response,
        ridge: Callable[[Spectrum, Response], Mixture],
    ) -> Posterior:
        """Posterior of one target."""
        if self.local:
            law = fit_local(spectrum, response, ridge)
            errors = partial(local_errors, self._ridge, spectrum.flat, self.standardize)
            return local_posterior(self.name, answers, spectrum, response, law, errors=errors)
        mixture = ridge(spectrum, response)
        drawn = None if self.grid is None else _draws_law(rng, self.grid, mixture)
        return bayesian_posterior(self.name, answers, spectrum, response, mixture, law=drawn)

    def _ridge(
        self,
        spectrum: Spectrum,
        response: Response,
        pairs: Pairs | None = None,
        effect: float = 1.0,
    ) -> Mixture:
        """Law of beta with one common lambda."""
        # Standardised scores have a spread of one at the average weight, so b is scaled by that
        # weight. Otherwise the prior would dominate when a narrow kernel makes all weights small.
        weight = float(np.mean(spectrum.root**2)) if self.standardize else 1.0
        evidence = evidence_of(
            spectrum, response, a=self.a, b=self.b * weight, pairs=pairs, effect=effect
        )
        lam: LambdaLaw
        if self.grid is None:
            null = len(spectrum.d) < len(spectrum.basis)
            lam = half_line_lambda(evidence, scale=self.scale, null=null)
        else:
            lam = grid_lambda(evidence, self.grid.lambdas, scale=self.scale)
        return Mixture(basis=spectrum.basis, evidence=evidence, lam=lam, unit=response.unit)


def common_ridge() -> EBLIME:
    """`EBLIME(local=False)`, the method of the name "eblime-ridge"."""
    return EBLIME(local=False)


def _draws_law(rng: np.random.Generator, grid: PublishedGrid, mixture: Mixture) -> DrawsLaw | None:
    """Algorithm 1 with the chosen sampler of lambda; None where the grid is integrated exactly."""
    if grid.draws is None:
        return None
    if grid.sampler == "gumbel":
        lambdas = gumbel_sample(rng, mixture.lam, grid.draws)
    else:
        lambdas = mixture.lam.sample(grid.draws, rng)
    return DrawsLaw(draws=mixture.draw_given(rng, lambdas), source=mixture)
