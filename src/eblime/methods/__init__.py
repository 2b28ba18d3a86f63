"""Methods: (masks, scores, weights) -> Posterior. NumPy and SciPy only."""

from eblime._lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
