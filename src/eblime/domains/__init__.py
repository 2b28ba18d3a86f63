"""Domains: the kinds of input, one package each, described by a `Domain` record."""

from eblime.domains.record import Command, Domain, Item, Option

__all__ = ["Command", "Domain", "Item", "Option"]
