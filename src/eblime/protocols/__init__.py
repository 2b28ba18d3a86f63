"""The protocols of the library on one page: what each kind of part must provide.

x --Domain--> Subject --> Neighbourhood --Design--> masks --in batches--> Model --> scores
                                             `--Kernel--> weights
Answers (masks, scores, weights, ends) --Method--> Posterior --Stop?--> next round, or Explanation
"""

from __future__ import annotations

from eblime.protocols.inputs import (
    ALL_HIDDEN,
    INPUT_ITSELF,
    Composite,
    Described,
    MaskedScene,
    Neighbourhood,
    RenderedScene,
    Renderer,
    Scene,
    Subject,
)
from eblime.protocols.methods import (
    Design,
    DesignParts,
    Kernel,
    Law,
    MaskDesign,
    Method,
    MethodParts,
    ScalarLaw,
    SharedMethod,
    Stop,
)
from eblime.protocols.models import (
    DeviceModel,
    MaskScorer,
    Model,
    RenderingModel,
)

__all__ = [
    "ALL_HIDDEN",
    "INPUT_ITSELF",
    "Composite",
    "Described",
    "Design",
    "DesignParts",
    "DeviceModel",
    "Kernel",
    "Law",
    "MaskDesign",
    "MaskScorer",
    "MaskedScene",
    "Method",
    "MethodParts",
    "Model",
    "Neighbourhood",
    "RenderedScene",
    "Renderer",
    "RenderingModel",
    "ScalarLaw",
    "Scene",
    "SharedMethod",
    "Stop",
    "Subject",
]
