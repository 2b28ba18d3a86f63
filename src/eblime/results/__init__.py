"""Results: the explanation, its file, and its forms for other programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eblime._lazy import lazy_names

if TYPE_CHECKING:
    from eblime.results.comparison import Comparison as Comparison
    from eblime.results.export import to_shap as to_shap
    from eblime.results.indices import Interactions as Interactions

_HOMES = {"comparison": ["Comparison"], "export": ["to_shap"], "indices": ["Interactions"]}

__all__ = [name for names in _HOMES.values() for name in names]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
