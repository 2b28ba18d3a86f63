"""Tables: columns or groups of columns as features of a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eblime._field_checks import NAMES, check_object
from eblime.domains.record import Domain

__all__ = ["TABULAR", "TableScene"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableScene:
    """What an explanation keeps of a row: its features and its values in readable form."""

    features: Sequence[str]  # such as "30 < age <= 45"
    columns: Sequence[str]  # name of each feature, without its value
    values: Sequence[str]  # value of each feature in the row

    domain = "tabular"

    @property
    def n_features(self) -> int:
        """Number of features, p."""
        return len(self.features)

    def details(self) -> dict[str, list[str]]:
        """The column of each feature, the row's value and the feature in words."""
        return {
            "column": list(self.columns),
            "value": list(self.values),
            "bin": list(self.features),
        }


_FIELDS = {"features": NAMES, "columns": NAMES, "values": NAMES}

TABULAR = Domain(
    name="tabular",
    feature="column",
    scene=TableScene,
    check_scene=lambda scene: check_object(scene, _FIELDS),
    picture="means",
)
