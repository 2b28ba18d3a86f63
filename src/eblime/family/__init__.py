"""Relatives of LIME that are not methods, designs or stop rules: small modules of their own.

`averaged`: repeated explanations and where their differences come from (Averaged LIME). `DLIME`:
the rows of a cluster instead of random ones. `fit_mixture`: a mixture of regressions for a whole
model (DMM-MEN). `unravel`: active learning with a Gaussian process (UnRAVEL).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eblime.family.active import unravel as unravel
    from eblime.family.dlime import DLIME as DLIME
    from eblime.family.mixture import fit_mixture as fit_mixture
    from eblime.family.repeats import averaged as averaged

_HOMES = {"DLIME": "dlime", "averaged": "repeats", "fit_mixture": "mixture", "unravel": "active"}

__all__ = ["DLIME", "averaged", "fit_mixture", "unravel"]


def __getattr__(name: str) -> object:
    """Import a public name when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
