"""Explanations of black-box predictions, with honest error bars.

Names are imported when first used, so that `import eblime` costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eblime._lazy import lazy_names
from eblime._version import __version__ as __version__

if TYPE_CHECKING:
    from eblime.batch.results import open_run as open_run
    from eblime.batch.run import explain_many as explain_many
    from eblime.engine.cache import AnswerCache as AnswerCache
    from eblime.engine.calls import Calls as Calls
    from eblime.engine.calls import ModelError as ModelError
    from eblime.engine.calls import Retry as Retry
    from eblime.explainers.compare import compare as compare
    from eblime.explainers.general import Explainer as Explainer
    from eblime.explainers.image import ImageExplainer as ImageExplainer
    from eblime.explainers.prompt import PromptExplainer as PromptExplainer
    from eblime.explainers.signal import SignalExplainer as SignalExplainer
    from eblime.explainers.tabular import TabularExplainer as TabularExplainer
    from eblime.explainers.text import TextExplainer as TextExplainer
    from eblime.explainers.volume import VolumeExplainer as VolumeExplainer
    from eblime.games import game as game
    from eblime.methods.bayesshap import BayesSHAP as BayesSHAP
    from eblime.methods.baylime import BayLIME as BayLIME
    from eblime.methods.eblime import EBLIME as EBLIME
    from eblime.methods.quadrature import Quadrature as Quadrature
    from eblime.methods.regression import fit as fit
    from eblime.methods.ridge import LIME as LIME
    from eblime.methods.ridge import BayesLIME as BayesLIME
    from eblime.models.adapt import as_model as as_model
    from eblime.models.keras import KerasModel as KerasModel
    from eblime.models.onnx import OnnxModel as OnnxModel
    from eblime.models.torch import TorchModel as TorchModel
    from eblime.posterior import Posterior as Posterior
    from eblime.reporting.page import report as report
    from eblime.results.explanation import Explanation as Explanation
    from eblime.results.storage import load as load
    from eblime.stopping.rules import Ranking as Ranking
    from eblime.stopping.rules import Sign as Sign
    from eblime.stopping.rules import TopK as TopK
    from eblime.stopping.rules import Width as Width

_HOMES = {  # module -> its names
    "batch.results": ("open_run",),
    "batch.run": ("explain_many",),
    "engine.cache": ("AnswerCache",),
    "engine.calls": ("Calls", "ModelError", "Retry"),
    "explainers.compare": ("compare",),
    "explainers.general": ("Explainer",),
    "explainers.image": ("ImageExplainer",),
    "explainers.prompt": ("PromptExplainer",),
    "explainers.signal": ("SignalExplainer",),
    "explainers.tabular": ("TabularExplainer",),
    "explainers.text": ("TextExplainer",),
    "explainers.volume": ("VolumeExplainer",),
    "games": ("game",),
    "methods.bayesshap": ("BayesSHAP",),
    "methods.baylime": ("BayLIME",),
    "methods.eblime": ("EBLIME",),
    "methods.quadrature": ("Quadrature",),
    "methods.regression": ("fit",),
    "methods.ridge": ("BayesLIME", "LIME"),
    "models.adapt": ("as_model",),
    "models.keras": ("KerasModel",),
    "models.onnx": ("OnnxModel",),
    "models.torch": ("TorchModel",),
    "posterior": ("Posterior",),
    "reporting.page": ("report",),
    "results.explanation": ("Explanation",),
    "results.storage": ("load",),
    "stopping.rules": ("Ranking", "Sign", "TopK", "Width"),
}

_MODULES = (
    *("compat", "core", "datasets", "designs", "family", "games", "kernels", "measures", "methods"),
    *("plot", "results", "scores", "stopping", "testing"),
)

__all__ = ["__version__", *(name for names in _HOMES.values() for name in names)]

__getattr__, _ = lazy_names(__name__, _HOMES, _MODULES)


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(__all__)
