"""Explanations of black-box predictions, with honest error bars.

Names are imported when first used, so that `import eblime` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from eblime._lazy import lazy_modules
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

_HOMES = {
    "AnswerCache": "eblime.engine.cache",
    "BayesLIME": "eblime.methods.ridge",
    "BayesSHAP": "eblime.methods.bayesshap",
    "BayLIME": "eblime.methods.baylime",
    "Calls": "eblime.engine.calls",
    "Explainer": "eblime.explainers.general",
    "Explanation": "eblime.results.explanation",
    "ImageExplainer": "eblime.explainers.image",
    "KerasModel": "eblime.models.keras",
    "ModelError": "eblime.engine.calls",
    "OnnxModel": "eblime.models.onnx",
    "PromptExplainer": "eblime.explainers.prompt",
    "SignalExplainer": "eblime.explainers.signal",
    "Retry": "eblime.engine.calls",
    "TabularExplainer": "eblime.explainers.tabular",
    "TextExplainer": "eblime.explainers.text",
    "TorchModel": "eblime.models.torch",
    "VolumeExplainer": "eblime.explainers.volume",
    "as_model": "eblime.models.adapt",
    "EBLIME": "eblime.methods.eblime",
    "LIME": "eblime.methods.ridge",
    "Posterior": "eblime.posterior",
    "Quadrature": "eblime.methods.quadrature",
    "Ranking": "eblime.stopping.rules",
    "Sign": "eblime.stopping.rules",
    "TopK": "eblime.stopping.rules",
    "Width": "eblime.stopping.rules",
    "compare": "eblime.explainers.compare",
    "explain_many": "eblime.batch.run",
    "fit": "eblime.methods.regression",
    "open_run": "eblime.batch.results",
    "load": "eblime.results.storage",
    "game": "eblime.games",
    "report": "eblime.reporting.page",
}

__all__ = ["__version__", *_HOMES]

_PACKAGES = (
    "compat",
    "core",
    "datasets",
    "designs",
    "family",
    "games",
    "kernels",
    "measures",
    "scores",
)
_module = lazy_modules("eblime", (*_PACKAGES, "methods", "plot", "results", "stopping", "testing"))


def __getattr__(name: str) -> object:
    """Import a public name, or one of the packages that the documentation names."""
    if name not in _HOMES:
        return _module(name)
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(__all__)
