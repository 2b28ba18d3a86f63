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

_HOMES = {
    "BayLIME": "baylime",
    "BayesLIME": "ridge",
    "BayesSHAP": "bayesshap",
    "EBLIME": "eblime",
    "LIME": "ridge",
    "PublishedGrid": "eblime",
    "Quadrature": "quadrature",
    "fit": "regression",
    "fit_targets": "regression",
}

__all__ = [*_HOMES]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
