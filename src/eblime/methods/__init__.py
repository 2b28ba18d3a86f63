"""Methods: (masks, scores, weights) -> Posterior. NumPy and SciPy only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eblime._lazy import lazy_names

if TYPE_CHECKING:
    from eblime.methods.bayeslime import BayesLIME as BayesLIME
    from eblime.methods.bayesshap import BayesSHAP as BayesSHAP
    from eblime.methods.baylime import BayLIME as BayLIME
    from eblime.methods.eblime import EBLIME as EBLIME
    from eblime.methods.eblime import PublishedGrid as PublishedGrid
    from eblime.methods.lime import LIME as LIME
    from eblime.methods.quadrature import Quadrature as Quadrature
    from eblime.methods.regression import fit as fit
    from eblime.methods.regression import fit_targets as fit_targets

_HOMES = {
    "BayLIME": "baylime",
    "BayesLIME": "bayeslime",
    "BayesSHAP": "bayesshap",
    "EBLIME": "eblime",
    "LIME": "lime",
    "PublishedGrid": "eblime",
    "Quadrature": "quadrature",
    "fit": "regression",
    "fit_targets": "regression",
}

__all__ = [*_HOMES]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
