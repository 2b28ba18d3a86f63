"""Tables: columns or groups of columns as features of a row."""

from __future__ import annotations

from eblime.domains.tabular.scene import TABULAR, TableScene

__all__ = ["TABULAR", "TableScene"]
