"""Studies: many explanations, summarised in one table."""

from __future__ import annotations

from eblime._lazy import lazy_modules

__getattr__ = lazy_modules(
    __name__,
    (
        *("agreement", "contestants", "coverage", "faithfulness", "figures", "localisation"),
        *("metrics", "paper", "scores", "stability"),
    ),
)
