"""Relatives of LIME that are not methods, designs or stop rules, each with the name of its paper.

`SLIME`, `AveragedLIME`, `DLIME`, `DMMMEN` and `UnRAVEL` are systems: their `explain` takes an
explainer and an input, and `eblime.compare` knows them by name. `averaged` says where differences
between repeated explanations come from; `fit_mixture` is DMM-MEN for a whole model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eblime._lazy import lazy_names

if TYPE_CHECKING:
    from eblime.family.active import Search as Search
    from eblime.family.active import UnRAVEL as UnRAVEL
    from eblime.family.mixture import DMMMEN as DMMMEN
    from eblime.family.mixture import Component as Component
    from eblime.family.mixture import RegressionMixture as RegressionMixture
    from eblime.family.mixture import fit_mixture as fit_mixture
    from eblime.family.systems import DLIME as DLIME
    from eblime.family.systems import SLIME as SLIME
    from eblime.family.systems import AveragedExplanation as AveragedExplanation
    from eblime.family.systems import AveragedLIME as AveragedLIME
    from eblime.family.systems import averaged as averaged

_HOMES = {  # module -> its names
    "active": ("Search", "UnRAVEL"),
    "mixture": ("Component", "DMMMEN", "RegressionMixture", "fit_mixture"),
    "systems": ("AveragedExplanation", "AveragedLIME", "DLIME", "SLIME", "averaged"),
}

__all__ = [name for names in _HOMES.values() for name in names]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
