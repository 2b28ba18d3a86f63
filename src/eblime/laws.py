"""Laws of feature importances, for methods that bring their own posterior.

`normal_law(mean, cov)` and `NormalMixture` have exact marginals, `DrawsLaw` summarises draws, and
`PointMass` is a point estimate. Any object with the attributes of `eblime.protocols.Law` works too.
"""

from __future__ import annotations

from eblime.core.draws import Draws, DrawsLaw
from eblime.core.normal import NormalMixture, normal_law
from eblime.core.point import NoSpreadError, PointMass, PointValue

__all__ = [
    "Draws",
    "DrawsLaw",
    "NoSpreadError",
    "NormalMixture",
    "PointMass",
    "PointValue",
    "normal_law",
]
