"""Designs: which masks to ask about.

`masks` has functions of (rng, n_masks, p) that decide all masks at once; `rounds` has the designs
that the loop uses, which may decide round by round.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eblime._lazy import lazy_names

if TYPE_CHECKING:
    from eblime.designs.adaptive import Adaptive as Adaptive
    from eblime.designs.adaptive import Focused as Focused
    from eblime.designs.adaptive import Information as Information
    from eblime.designs.masks import KernelLaw as KernelLaw
    from eblime.designs.masks import bernoulli as bernoulli
    from eblime.designs.masks import exhaustive as exhaustive
    from eblime.designs.masks import leverage as leverage
    from eblime.designs.masks import paired as paired
    from eblime.designs.masks import screening as screening
    from eblime.designs.masks import sizes as sizes
    from eblime.designs.masks import stratified as stratified
    from eblime.designs.masks import stratified_lime as stratified_lime
    from eblime.designs.rounds import one_shot as one_shot

_HOMES = {  # module -> its names
    "adaptive": ("Adaptive", "Focused", "Information"),
    "masks": (
        "KernelLaw",
        "bernoulli",
        "exhaustive",
        "leverage",
        "paired",
        "screening",
        "sizes",
        "stratified",
        "stratified_lime",
    ),
    "rounds": ("one_shot",),
}

__all__ = [name for names in _HOMES.values() for name in names]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
