"""Games whose values are stored: tables of scores, and files of shapiq."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from eblime._checks import check_coalitions
from eblime._types import FloatArray

__all__ = ["StoredGame", "stored_game"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class StoredGame:
    """A function from coalitions, (n, p) of True and False, to stored values, (n,).

    Examples
    --------
    >>> import eblime
    >>> both = eblime.stored_game([0, 0, 0, 1], players=["salt", "sugar"])
    >>> both
    StoredGame(n_players=2, n_values=4)
    >>> both([[True, True], [True, False]])
    array([1., 0.])
    """

    players: Sequence[str]  # names
    values: Mapping[bytes, float]  # by coalition, packed into bits

    @property
    def n_players(self) -> int:
        """Number of players."""
        return len(self.players)

    def __call__(self, coalitions: ArrayLike) -> FloatArray:
        """Values of coalitions, (n, p) or one of (p,); one that is not stored is refused."""
        masks = check_coalitions(coalitions, self.n_players)
        try:
            return np.array([self.values[key] for key in _keys(masks)])
        except KeyError:
            stored = [key in self.values for key in _keys(masks)]
            missing = np.flatnonzero(masks[stored.index(False)]).tolist()
            raise ValueError(
                f"The value of the coalition {missing} is not stored; {len(self.values)} of "
                f"2^{self.n_players} are."
            ) from None

    def __repr__(self) -> str:
        """One line: how many players and values."""
        return f"StoredGame(n_players={self.n_players}, n_values={len(self.values)})"


def stored_game(
    source: str | os.PathLike[str] | ArrayLike | Mapping[tuple[int, ...], float],
    *,
    players: Sequence[str] | None = None,
) -> StoredGame:
    """A game from stored values, which serves as a model.

    Parameters
    ----------
    source
        A file of a precomputed game of shapiq (.npz or .json); or the values of all 2^p coalitions
        in counting order, the first player the lowest bit; or a dictionary from coalitions, tuples
        of players' numbers, to values. The values of a file are not normalised.
    players
        Names of the players; None takes those of the file, or numbers.

    Examples
    --------
    The game of three players that is worth 1 if the first two take part:

    >>> import eblime
    >>> from eblime.domains import PLAYERS
    >>> both = eblime.stored_game([0, 0, 0, 1, 0, 0, 0, 1])
    >>> both([[True, True, False], [True, False, True]])
    array([1., 0.])
    >>> method = eblime.Quadrature(index="shapley")
    >>> eblime.Explainer(both, PLAYERS, method=method).explain(both).posterior.mean.round(3)
    array([0.5, 0.5, 0. ])
    """
    names: Sequence[str] | None = None
    if isinstance(source, (str, os.PathLike)):
        masks, values, names = _read(Path(source))
    elif isinstance(source, Mapping):
        masks, values = _from_coalitions(source, None if players is None else len(players))
    else:
        masks, values = _from_table(np.asarray(source, dtype=np.float64))
    p = masks.shape[1]
    named = names if players is None else players
    if named is None:
        named = [f"player {j}" for j in range(p)]
    if len(named) != p:
        raise ValueError(f"`players` must name each of the {p} players; got {named!r:.60}.")
    if not np.isfinite(values).all():
        raise ValueError("`source` must have finite values; got NaN or infinity.")
    table = dict(zip(_keys(masks), values.tolist(), strict=True))
    if len(table) < len(masks):
        raise ValueError("`source` must have each coalition once; got one of them twice.")
    return StoredGame(players=tuple(map(str, named)), values=table)


def _keys(masks: FloatArray) -> list[bytes]:
    """Coalitions packed into bits."""
    return [row.tobytes() for row in np.packbits(masks > 0, axis=1)]


def _read(path: Path) -> tuple[FloatArray, FloatArray, Sequence[str] | None]:
    """Coalitions, values and names of a file of shapiq."""
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as found:
            if not {"coalitions", "values"} <= set(found):
                raise ValueError(f"{path} is not a game of shapiq: it has {sorted(found)}.")
            masks, values = (np.asarray(found[name], float) for name in ("coalitions", "values"))
        if masks.ndim != 2 or values.shape != masks.shape[:1] or not np.isin(masks, (0, 1)).all():
            raise ValueError(
                f"{path} is not a game of shapiq: it has coalitions of shape {masks.shape} and "
                f"values of shape {values.shape}."
            )
        return masks, values, None
    if path.suffix != ".json":
        raise ValueError(f"`source` must be a .npz or .json file of shapiq; got {path}.")
    text = path.read_text(encoding="utf8")
    try:
        tree: Any = json.loads(text)
        about, data = tree["metadata"], tree["data"]
        p, names = int(about["n_players"]), about.get("player_names")
        coalitions = {_coalition(words): float(value) for words, value in data.items()}
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"{path} is not a game of shapiq.") from error
    return *_from_coalitions(coalitions, p), names


def _coalition(words: str) -> tuple[int, ...]:
    """A coalition of a JSON file: numbers with commas between them."""
    return () if words == "Empty" else tuple(int(word) for word in words.split(","))


def _from_coalitions(
    found: Mapping[tuple[int, ...], float], p: int | None
) -> tuple[FloatArray, FloatArray]:
    """Masks and values of a dictionary; without a number of players it is the largest plus one."""
    for coalition in found:
        if not isinstance(coalition, (tuple, frozenset)):
            raise TypeError(f"`source` must have tuples as coalitions; got {coalition!r:.60}.")
    largest = max((max(coalition, default=-1) for coalition in found), default=-1)
    size = largest + 1 if p is None else p
    smallest = min((min(coalition, default=0) for coalition in found), default=0)
    if not size or largest >= size or smallest < 0:
        raise ValueError(
            f"`source` must have coalitions of players 0 to {max(size - 1, 0)}; got numbers from "
            f"{smallest} to {largest}."
        )
    masks = np.zeros((len(found), size))
    for row, coalition in enumerate(found):
        masks[row, list(coalition)] = 1
    return masks, np.array([float(value) for value in found.values()])


def _from_table(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Masks and values of all coalitions in counting order."""
    p = values.size.bit_length() - 1
    if values.ndim != 1 or p < 1 or values.size != 2**p:
        raise ValueError(
            f"`source` must have 2^p values, one for each coalition; got shape {values.shape}."
        )
    return ((np.arange(2**p)[:, None] >> np.arange(p)) & 1).astype(np.float64), values
