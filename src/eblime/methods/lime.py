"""LIME: weighted ridge regression, a point estimate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from eblime._checks import check_choice, check_number
from eblime._types import FloatArray
from eblime.core.lam import FixedLambda
from eblime.core.posterior import Posterior
from eblime.core.spectrum import decompose, respond
from eblime.methods.common import point_posterior

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
    """

    alpha: float = 1.0
    intercept: Literal["flat", "none"] = "flat"

    def __post_init__(self) -> None:
        """Refuse settings that no ridge regression can have."""
        check_number("alpha", self.alpha)
        check_choice("intercept", self.intercept, ("flat", "none"))

    @property
    def name(self) -> str:
        """The method's name in tables and reports."""
        return "LIME"

    def fit(
        self,
        rng: np.random.Generator,
        masks: FloatArray,
        scores: FloatArray,
        weights: FloatArray,
    ) -> tuple[Posterior, ...]:
        """Fit every target, shape (N, T), from one decomposition of the masks: equation (1)."""
        spectrum = decompose(masks, weights, flat=self.intercept == "flat")
        pull = spectrum.basis * (np.sqrt(spectrum.d) / (spectrum.d + self.alpha))
        lam = FixedLambda(value=float(self.alpha))
        responses = [respond(spectrum, column, standardize=True) for column in scores.T]
        return tuple(
            point_posterior(self.name, spectrum, response, pull @ response.k, lam=lam)
            for response in responses
        )
