"""Models: adapters that give every kind of model one signature, batch in and scores out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eblime._lazy import lazy_names

if TYPE_CHECKING:
    from eblime.models.stored_game import StoredGame as StoredGame

_HOMES = {"StoredGame": "stored_game"}

__all__ = [*_HOMES]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
