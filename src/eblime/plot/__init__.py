"""Plots of explanations: Explanation -> matplotlib Axes.

Every function draws on the axes it is given, or on new ones, and returns them; none calls `show`.
The colours are those of Okabe and Ito: colour-blind readers can tell them apart, and in grey print
they differ in lightness.
"""

from __future__ import annotations

from eblime._lazy import lazy_modules

__getattr__ = lazy_modules(
    __name__, ("bars", "canvas", "curves", "kinds", "maps", "poster", "style", "words")
)
