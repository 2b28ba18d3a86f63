"""Methods: (masks, scores, weights) -> Posterior. NumPy and SciPy only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eblime._lazy import lazy_names

if TYPE_CHECKING:
    from eblime.methods.bayesshap import BayesSHAP as BayesSHAP
    from eblime.methods.baylime import BayLIME as BayLIME
    from eblime.methods.eblime import EBLIME as EBLIME
    from eblime.methods.eblime import PublishedGrid as PublishedGrid
    from eblime.methods.quadrature import Quadrature as Quadrature
    from eblime.methods.regression import fit as fit
    from eblime.methods.regression import fit_targets as fit_targets
    from eblime.methods.ridge import LIME as LIME
    from eblime.methods.ridge import BayesLIME as BayesLIME

_HOMES = {  # module -> its names
    "bayesshap": ("BayesSHAP",),
    "baylime": ("BayLIME",),
    "eblime": ("EBLIME", "PublishedGrid"),
    "quadrature": ("Quadrature",),
    "regression": ("fit", "fit_targets"),
    "ridge": ("BayesLIME", "LIME"),
}

__all__ = [name for names in _HOMES.values() for name in names]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
