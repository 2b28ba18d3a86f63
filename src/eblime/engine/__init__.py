"""Asking the model: the loop, batches and their sizes, targets. Only the loop asks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eblime._lazy import lazy_names

if TYPE_CHECKING:
    from eblime.engine.game import Game as Game

_HOMES = {"Game": "game"}

__all__ = [*_HOMES]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
