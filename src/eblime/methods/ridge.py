"""LIME and BayesLIME: a weighted ridge regression with lambda fixed, in closed form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from eblime._checks import check_choice, check_number
from eblime.answers import Answers
from eblime.methods.common import bayesian_posterior, point_posterior, regress
from eblime.posterior import Posterior


@dataclass(frozen=True, slots=True, kw_only=True)
class BayesLIME:
    """A Bayesian ridge regression whose ridge parameter is fixed at 1 (Slack et al., 2021).

    So it shrinks much with few masks and little with many. The published code draws 10,000 samples
    to find intervals; their law, a Student t with N degrees of freedom, is exact here.

    Parameters
    ----------
    intercept
        "penalised" adds a column of ones and shrinks it like a feature, as published; "flat"
        leaves the intercept free; "none" has none.
    finite
        Whether only masks that were not asked are uncertain, as for `EBLIME`.

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> masks = np.random.default_rng(0).integers(0, 2, size=(500, 2))
    >>> eblime.fit(masks, masks @ [1.0, -0.5], method=eblime.BayesLIME()).mean.round(1)
    array([ 1. , -0.5])
    """

    intercept: Literal["penalised", "none", "flat"] = "penalised"
    finite: bool = False

    name: ClassVar[str] = "BayesLIME"
    fits_together: ClassVar[bool] = True  # nothing is drawn

    def __post_init__(self) -> None:
        """Refuse an unknown intercept."""
        check_choice("intercept", self.intercept, ("penalised", "none", "flat"))

    def fit(self, rng: np.random.Generator, answers: Answers) -> Posterior:
        """Fit one target."""
        return self.fit_targets([answers])[0]

    def fit_targets(self, answers: Sequence[Answers]) -> list[Posterior]:
        """Fit several targets; those that share their masks share the decomposition."""
        flat, penalised = self.intercept == "flat", self.intercept == "penalised"
        counting = np.count_nonzero(answers[0].weights)
        if flat and counting < 2:
            raise ValueError(
                "BayesLIME with a flat intercept must have at least 2 masks of positive weight; "
                f"got {counting}."
            )
        # the method is scale-free, so that standardising changes nothing
        return [
            bayesian_posterior(self.name, problem, problem.fixed(1.0, penalised=penalised))
            for problem in regress(answers, flat=flat, penalised=penalised, finite=self.finite)
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class LIME:
    """lime's weighted ridge regression: a number for each feature, and no interval.

    Parameters
    ----------
    alpha
        The ridge parameter, 1 in lime.
    intercept
        "flat" leaves the intercept free, as lime does; "none" has none, as the paper's eq. (1).
    finite
        Whether to estimate the fit to all masks from the masks that were not asked, as `EBLIME`.

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
    finite: bool = False

    name: ClassVar[str] = "LIME"
    has_spread: ClassVar[bool] = False  # stop rules need a spread
    fits_together: ClassVar[bool] = True  # nothing is drawn

    def __post_init__(self) -> None:
        """Refuse settings that no ridge regression can have."""
        check_number("alpha", self.alpha)
        check_choice("intercept", self.intercept, ("flat", "none"))

    def fit(self, rng: np.random.Generator, answers: Answers) -> Posterior:
        """Fit one target."""
        return self.fit_targets([answers])[0]

    def fit_targets(self, answers: Sequence[Answers]) -> list[Posterior]:
        """Fit several targets; those that share their masks share the decomposition."""
        return [
            point_posterior(self.name, problem, problem.fixed(float(self.alpha)))
            for problem in regress(answers, flat=self.intercept == "flat", finite=self.finite)
        ]
