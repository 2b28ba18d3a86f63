"""Many inputs at once: a run folder that survives crashes and can be resumed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eblime._lazy import lazy_names

if TYPE_CHECKING:
    from eblime.batch.results import Run as Run
    from eblime.batch.workers import Workers as Workers

_HOMES = {"results": ["Run"], "workers": ["Workers"]}

__all__ = [name for names in _HOMES.values() for name in names]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
