"""Relatives of LIME, each with the name of its paper.

`SLIME`, `DLIME`, `DMMMEN` and `UnRAVEL` are systems: their `explain` takes an explainer and an
input, and `eblime.compare` knows them by name. `averaged` says where differences between repeated
explanations come from; `fit_mixture` is DMM-MEN for a whole model. `KernelLaw` is the design of
GLIME, and `stratified_lime` that of stratified LIME.
"""

from eblime._lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
