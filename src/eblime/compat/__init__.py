"""Replacements of other libraries: `eblime.compat.lime`."""

from eblime._lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
