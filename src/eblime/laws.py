"""Laws of feature importances, for methods that bring their own posterior.

`normal_law(mean, cov)` and `NormalMixture` have exact marginals, `DrawsLaw` summarises draws, and
`PointMass` is a point estimate. Any object with the attributes of `eblime.protocols.Law` works too.
`NoiseVariance`, `Intercept`, `PanelLambda` and `RankBounds` are what a posterior returns.
"""

from __future__ import annotations

from eblime.core.lam import PanelLambda
from eblime.core.laws import (
    Draws,
    DrawsLaw,
    NormalMixture,
    NoSpreadError,
    PointMass,
    PointValue,
    normal_law,
)
from eblime.core.mixture import Intercept, NoiseVariance
from eblime.core.ranking import RankBounds

__all__ = [
    "Draws",
    "DrawsLaw",
    "Intercept",
    "NoSpreadError",
    "NoiseVariance",
    "NormalMixture",
    "PanelLambda",
    "PointMass",
    "PointValue",
    "RankBounds",
    "normal_law",
]
