"""Players of a cooperative game: the features are players, and an input is its mask."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from eblime._checks import check_count
from eblime._types import FloatArray
from eblime.domains.record import Domain

__all__ = ["PLAYERS", "PlayersScene", "read_players"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayersScene:
    """The players by name; the model gets masks of zeros and ones."""

    features: Sequence[str]

    domain = "players"
    sizes = (4096,)  # batch sizes worth trying

    @property
    def n_features(self) -> int:
        """Number of players."""
        return len(self.features)

    def inputs(self, masks: FloatArray) -> FloatArray:
        """The masks themselves."""
        return masks


def read_players(x: Any) -> PlayersScene:
    """The players of a game.

    Parameters
    ----------
    x
        A game with an attribute `players`, the names of the players, or their number.
    """
    found = getattr(x, "players", x)
    if isinstance(found, (int, np.integer)):
        check_count("x", found)  # type: ignore[arg-type]  # NumPy integers are checked too
        found = [f"player {j}" for j in range(found)]
    if isinstance(found, (str, bytes)) or not isinstance(found, Iterable):
        raise TypeError(
            "`x` must be a game with `players`, the names of the players, or their number; got "
            f"{x!r:.60}."
        )
    features = tuple(str(name) for name in found)
    if not features:
        raise ValueError("`x` must have at least one player.")
    return PlayersScene(features=features)


PLAYERS = Domain(
    name="players", feature="player", scene=PlayersScene, read=read_players, design="paired"
)
