"""Designs: which masks to ask about.

`masks` has functions of (rng, n_masks, p) that decide all masks at once; `rounds` has the designs
that the loop uses, which may decide round by round.
"""

from eblime._lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
