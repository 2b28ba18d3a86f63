"""Signals: windows, channels or frequency bands as features."""

from __future__ import annotations

from eblime.domains.signal.scene import SIGNAL, SignalScene

__all__ = ["SIGNAL", "SignalScene"]
