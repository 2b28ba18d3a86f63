"""Texts: words, sentences or characters as features."""

from __future__ import annotations

from eblime.domains.text.scene import TEXT

__all__ = ["TEXT"]
