"""What lime has at `lime.lime_tabular`."""

from __future__ import annotations

from eblime.compat.lime._recurrent import RecurrentTabularExplainer
from eblime.compat.lime._table import TableDomainMapper
from eblime.compat.lime._tabular import LimeTabularExplainer
from eblime.compat.lime.discretize import (
    BaseDiscretizer,
    DecileDiscretizer,
    EntropyDiscretizer,
    QuartileDiscretizer,
    StatsDiscretizer,
)

__all__ = [
    "BaseDiscretizer",
    "DecileDiscretizer",
    "EntropyDiscretizer",
    "LimeTabularExplainer",
    "QuartileDiscretizer",
    "RecurrentTabularExplainer",
    "StatsDiscretizer",
    "TableDomainMapper",
]
