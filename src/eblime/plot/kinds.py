"""The kinds of picture that `Explanation.plot` draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eblime.plot.bars import intervals, means, valued
from eblime.plot.curves import convergence, densities, ranks, ridge
from eblime.plot.maps import importance_map, mean_map, sign_map, top_k_map, uncertainty_map
from eblime.plot.words import highlighted

__all__ = ["KINDS"]

KINDS: dict[str, Callable[..., Any]] = {
    "intervals": intervals,
    "means": means,
    "density": densities,
    "ranks": ranks,
    "lambda": ridge,
    "convergence": convergence,
    "map": importance_map,
    "mean_map": mean_map,
    "uncertainty": uncertainty_map,
    "top_k": top_k_map,
    "sign": sign_map,
    "values": valued,
    "text": highlighted,
}
