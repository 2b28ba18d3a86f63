"""Laws of feature importances, for methods that bring their own posterior.

`normal_law(mean, cov)` and `NormalMixture` have exact marginals, `DrawsLaw` summarises draws, and
`PointMass` is a point estimate. Any object with the attributes of `eblime.protocols.Law` works too.
`NoiseVariance`, `Intercept`, `HalfLineLambda` and `RankBounds` are what a posterior returns.
"""

from __future__ import annotations

from eblime.core.lam import HalfLineLambda as HalfLineLambda
from eblime.core.laws import Draws as Draws
from eblime.core.laws import DrawsLaw as DrawsLaw
from eblime.core.laws import NormalMixture as NormalMixture
from eblime.core.laws import NoSpreadError as NoSpreadError
from eblime.core.laws import PointMass as PointMass
from eblime.core.laws import PointValue as PointValue
from eblime.core.laws import normal_law as normal_law
from eblime.core.mixture import Intercept as Intercept
from eblime.core.mixture import NoiseVariance as NoiseVariance
from eblime.core.ranking import RankBounds as RankBounds
