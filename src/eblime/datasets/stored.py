"""Stored answers of models to every mask of an input: studies of sampling call no model.

Two files in a folder: `imagenet-p13.npz`, EfficientNet-Lite0 on 40 photos with 11 to 13 superpixels
(hidden ones black), and `games-dev.npz`, 150 of the precomputed games of shapiq (image classifiers,
a sentiment model, and models of tables). The folder is EBLIME_TABLES if that is set, else `tables`
beside the folder EBLIME_DATA.
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

import numpy as np

from eblime._types import FloatArray
from eblime.datasets.cache import local_folder

__all__ = ["stored_game_names", "stored_games", "stored_photos"]


def stored_photos() -> list[FloatArray]:
    """The scores of all masks of each photo; mask k shows superpixel j if bit j of k is set."""
    return _photos(_file("imagenet-p13.npz"))


def stored_games() -> list[FloatArray]:
    """The values of all coalitions of each game that is not constant, in the same order."""
    return [values for _, values in _games(_file("games-dev.npz"))]


def stored_game_names() -> list[str]:
    """The names of `stored_games`, `kind/name`."""
    return [name for name, _ in _games(_file("games-dev.npz"))]


@lru_cache(maxsize=1)
def _photos(path: Path) -> list[FloatArray]:
    """The scores of each photo in a file."""
    with np.load(path, allow_pickle=False) as stored:
        count = len(stored["names"])
        return [stored[f"scores_{k}"].astype(np.float64) for k in range(count)]


@lru_cache(maxsize=1)
def _games(path: Path) -> list[tuple[str, FloatArray]]:
    """Names and values of the games in a file that are not constant."""
    with np.load(path, allow_pickle=False) as stored:
        found = [(name, stored[name].astype(np.float64)) for name in sorted(stored.files)]
    varying = [(name, values) for name, values in found if np.ptp(values) > 0]
    order = np.random.default_rng(0).permutation(len(varying))  # the first few are of all kinds
    return [varying[k] for k in order]


def _file(name: str) -> Path:
    """The path of a file of answers."""
    folder = _folder()
    if folder is None or not (folder / name).exists():
        raise FileNotFoundError(
            f"{name} was not found{'' if folder is None else f' in {folder}'}. Set EBLIME_TABLES "
            "to the folder that has it."
        )
    return folder / name


def _folder() -> Path | None:
    """The folder of stored answers; None if neither environment variable is set."""
    named = os.environ.get("EBLIME_TABLES")
    if named:
        return Path(named)
    data = local_folder()
    return None if data is None else data.resolve().parent / "tables"
