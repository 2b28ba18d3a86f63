"""Laws of feature importances, for methods that bring their own posterior.

`normal_law(mean, cov)` and `NormalMixture` have exact marginals, `DrawsLaw` summarises draws, and
`PointMass` is a point estimate. Any object with the attributes of `eblime.protocols.Law` works too.
`NoiseVariance`, `Intercept`, `PanelLambda` and `Ranking` are what a posterior returns.
"""

from __future__ import annotations

from eblime.core.draws import Draws, DrawsLaw
from eblime.core.lambda_quadrature import PanelLambda
from eblime.core.normal import NormalMixture, normal_law
from eblime.core.point import NoSpreadError, PointMass, PointValue
from eblime.core.ranking import Ranking
from eblime.core.scalar import Intercept, NoiseVariance

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
    "Ranking",
    "normal_law",
]
