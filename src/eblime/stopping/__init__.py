"""Stop rules: when the question is answered, and with what probability.

`rules` has `TopK`, `Ranking`, `Sign` and `Width`, combined with `&` and `|`, and reads texts such
as "top5"; `lars` has `LarsStable`. `rule` has what they share: verdicts, combinations, and what it
costs to look repeatedly.
"""

from eblime.stopping.lars import LarsStable
from eblime.stopping.rules import Ranking, Sign, TopK, Width

__all__ = ["LarsStable", "Ranking", "Sign", "TopK", "Width"]
