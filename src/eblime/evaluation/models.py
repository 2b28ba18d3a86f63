"""Models that several studies explain, loaded or trained once per process."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from eblime._types import IntArray

if TYPE_CHECKING:
    from eblime.datasets.tabular import TableData
    from eblime.models.torch import TorchModel

__all__ = ["photo_classifier", "table_and_forest"]


@lru_cache(maxsize=1)
def photo_classifier() -> TorchModel:
    """The ImageNet classifier."""
    from eblime.datasets.imagenet import efficientnet_lite0

    return efficientnet_lite0()


@lru_cache(maxsize=2)
def table_and_forest(name: str) -> tuple[TableData, Any, IntArray]:
    """A table, its random forest, and the rows that the forest was not trained on."""
    from eblime.datasets.tabular import TABLES, forest, split_rows

    table = TABLES[name]()
    return table, forest(table), split_rows(table)[1]
