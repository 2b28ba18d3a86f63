"""Replacements of other libraries: `eblime.compat.lime`."""

from __future__ import annotations

from eblime._lazy import lazy_modules

__getattr__ = lazy_modules(__name__, ("lime",))
