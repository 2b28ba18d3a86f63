"""Plots of explanations: Explanation -> matplotlib Axes.

Every function draws on the given axes, or on new ones, and returns them; none calls `show`. The
colours are those of Okabe and Ito: colour-blind readers can distinguish them, and they differ in
lightness when printed in grey.
"""

from __future__ import annotations

from eblime._lazy import lazy_modules

__getattr__ = lazy_modules(
    __name__,
    ("bars", "canvas", "curves", "maps", "pairs", "poster", "runs", "style", "text", "widths"),
)
