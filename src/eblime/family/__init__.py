"""Relatives of LIME that are not methods, designs or stop rules: small modules of their own.

`averaged`: repeated explanations and where their differences come from (Averaged LIME). `DLIME`:
the rows of a cluster instead of random ones. `fit_mixture`: a mixture of regressions for a whole
model (DMM-MEN). `unravel`: active learning with a Gaussian process (UnRAVEL).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eblime._lazy import lazy_names

if TYPE_CHECKING:
    from eblime.family.active import ActiveExplanation as ActiveExplanation
    from eblime.family.active import unravel as unravel
    from eblime.family.dlime import DLIME as DLIME
    from eblime.family.mixture import Component as Component
    from eblime.family.mixture import RegressionMixture as RegressionMixture
    from eblime.family.mixture import fit_mixture as fit_mixture
    from eblime.family.repeats import AveragedExplanation as AveragedExplanation
    from eblime.family.repeats import averaged as averaged
    from eblime.family.systems import AveragedLIME as AveragedLIME
    from eblime.family.systems import ClusterLIME as ClusterLIME
    from eblime.family.systems import RegressionsOfRows as RegressionsOfRows
    from eblime.family.systems import StableLIME as StableLIME
    from eblime.family.systems import UnRAVEL as UnRAVEL

_HOMES = {
    "ActiveExplanation": "active",
    "unravel": "active",
    "DLIME": "dlime",
    "Component": "mixture",
    "RegressionMixture": "mixture",
    "fit_mixture": "mixture",
    "AveragedExplanation": "repeats",
    "averaged": "repeats",
    "AveragedLIME": "systems",
    "ClusterLIME": "systems",
    "RegressionsOfRows": "systems",
    "StableLIME": "systems",
    "UnRAVEL": "systems",
}

__all__ = [*_HOMES]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
