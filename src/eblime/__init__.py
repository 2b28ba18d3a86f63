"""Explanations of black-box predictions, with honest error bars.

Names are imported when first used, so that `import eblime` costs next to nothing.
"""

from eblime._lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
