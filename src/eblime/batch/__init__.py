"""Many inputs at once: a run folder that survives crashes and can be resumed."""

from eblime._lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
