"""Texts: words, sentences or characters as features."""

from __future__ import annotations

from eblime.domains.text.scene import TEXT, TextScene, read_text

__all__ = ["TEXT", "TextScene", "read_text"]
