"""LIME: weighted ridge regression, a point estimate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from eblime._checks import check_choice, check_number
from eblime.answers import Answers
from eblime.core.lam import FixedLambda
from eblime.core.mixture import Mixture
from eblime.core.spectrum import decompose, respond
from eblime.methods.common import evidence_of, point_posterior
from eblime.posterior import Posterior

__all__ = ["LIME"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LIME:
    """Weighted ridge regression as in lime: a mean, and no spread.

    Parameters
    ----------
    alpha
        The ridge parameter, 1 in lime.
    intercept
        "flat" leaves the intercept free, as lime does; "none" has none, as the paper's eq. (1).

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> masks = np.random.default_rng(0).integers(0, 2, size=(500, 2))
    >>> eblime.fit(masks, masks @ [1.0, -0.5], method=eblime.LIME()).mean.round(1)
    array([ 1. , -0.5])
    """

    alpha: float = 1.0
    intercept: Literal["flat", "none"] = "flat"

    counts_repeats: ClassVar[bool] = True  # a mask that is asked twice counts twice

    def __post_init__(self) -> None:
        """Refuse settings that no ridge regression can have."""
        check_number("alpha", self.alpha)
        check_choice("intercept", self.intercept, ("flat", "none"))

    @property
    def has_spread(self) -> bool:
        """False: it states no uncertainty, which stop rules need."""
        return False

    @property
    def name(self) -> str:
        """The method's name in tables and reports."""
        return "LIME"

    def fit(self, rng: np.random.Generator, answers: Answers) -> Posterior:
        """Fit one target."""
        return self.fit_targets(rng, [answers])[0]

    def fit_targets(
        self, rng: np.random.Generator, answers: Sequence[Answers]
    ) -> tuple[Posterior, ...]:
        """Fit several targets from one decomposition of the masks that they share."""
        masks, weights = answers[0].masks, answers[0].weights
        spectrum = decompose(masks, weights, flat=self.intercept == "flat")
        posteriors = []
        for target in answers:
            response = respond(spectrum, target.scores, standardize=True)
            mixture = Mixture(
                basis=spectrum.basis,
                evidence=evidence_of(spectrum, response, a=0.0, b=0.0),
                lam=FixedLambda(value=float(self.alpha)),
                unit=response.unit,
            )
            posteriors.append(point_posterior(self.name, target, spectrum, response, mixture))
        return tuple(posteriors)
