"""Plots of explanations: Explanation -> matplotlib Axes.

Every function draws on the given axes, or on new ones, and returns them; none calls `show`. The
colours are those of Okabe and Ito: colour-blind readers can distinguish them, and they differ in
lightness when printed in grey.
"""

from eblime._lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
