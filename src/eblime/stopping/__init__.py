"""Stop rules: when the question is answered, and with what probability.

`rules` has `TopK`, `Ranking`, `Sign` and `Width`, combined with `&` and `|`, and reads texts such
as "top5"; `lars` has `LarsStable`. `rule` has what they share: verdicts, combinations, and what it
costs to look repeatedly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eblime._lazy import lazy_names

if TYPE_CHECKING:
    from eblime.stopping.lars import LarsStable as LarsStable
    from eblime.stopping.rules import Ranking as Ranking
    from eblime.stopping.rules import Sign as Sign
    from eblime.stopping.rules import TopK as TopK
    from eblime.stopping.rules import Width as Width

_HOMES = {
    "LarsStable": "lars",
    "Ranking": "rules",
    "Sign": "rules",
    "TopK": "rules",
    "Width": "rules",
}

__all__ = [*_HOMES]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
