"""Results: the explanation, its file, and its forms for other programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eblime._lazy import lazy_names

if TYPE_CHECKING:
    from eblime.results.indices import Interactions as Interactions

_HOMES = {"Interactions": "indices"}

__all__ = [*_HOMES]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
