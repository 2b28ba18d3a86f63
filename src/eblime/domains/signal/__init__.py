"""Signals: windows, channels or frequency bands as features."""

from eblime.domains.signal.scene import SIGNAL as SIGNAL
from eblime.domains.signal.scene import SignalScene as SignalScene
