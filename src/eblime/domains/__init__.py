"""Domains: the kinds of input, one package each, described by a `Domain` record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eblime._lazy import lazy_names

if TYPE_CHECKING:
    from eblime.domains.record import Command as Command
    from eblime.domains.record import Domain as Domain
    from eblime.domains.record import Item as Item
    from eblime.domains.record import Option as Option

_HOMES = {
    "Command": "record",
    "Domain": "record",
    "Item": "record",
    "Option": "record",
}

__all__ = [*_HOMES]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
