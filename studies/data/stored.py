"""Stored answers of models to every mask of an input: studies of sampling call no model.

- `imagenet-p13.npz`, EfficientNet-Lite0 on 40 photos with 11 to 13 superpixels (hidden ones black).
  It is part of this folder, with probabilities as whole numbers of 1/65535;
- `imagenet-p40.npz`, the same on 20 photos with 28 to 45 superpixels, for 5,000 masks and their
  complements;
- `games-dev.npz`, 150 of the precomputed games that shapiq 1.4.1 shipped (image classifiers, a
  sentiment model, and models of tables).

EBLIME_TABLES is the folder of the files. If it is not set, they are looked for in `tables` beside
the folder EBLIME_DATA, and then here. The last two files are not part of the repository.
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

import numpy as np

from eblime._types import FloatArray
from studies.data.files import local_folder

__all__ = ["FILES", "answers_file", "stored_games", "stored_photos"]

FILES = {  # of a data set
    "stored-photos": "imagenet-p13.npz",
    "stored-games": "games-dev.npz",
    "games": "games-dev.npz",
    "p13": "imagenet-p13.npz",
    "p40": "imagenet-p40.npz",
}


def stored_photos() -> list[FloatArray]:
    """The scores of all masks of each photo; mask k shows superpixel j if bit j of k is set."""
    return _photos(*_version(answers_file("imagenet-p13.npz")))


def stored_games() -> dict[str, FloatArray]:
    """The values of all coalitions of each game that is not constant, by its name `kind/name`."""
    return _games(*_version(answers_file("games-dev.npz")))


def _version(path: Path) -> tuple[Path, int]:
    """A path and when its file was written, so that a new file is read again."""
    return path, path.stat().st_mtime_ns


@lru_cache(maxsize=1)
def _photos(path: Path, written: int) -> list[FloatArray]:
    """The scores of each photo in a file."""
    with np.load(path, allow_pickle=False) as stored:
        count = len(stored["names"])
        found = [stored[f"scores_{k}"] for k in range(count)]
    whole = 65535 if found[0].dtype == np.uint16 else 1
    return [scores.astype(np.float64) / whole for scores in found]


@lru_cache(maxsize=1)
def _games(path: Path, written: int) -> dict[str, FloatArray]:
    """The games in a file that are not constant, in a random order."""
    with np.load(path, allow_pickle=False) as stored:
        found = [(name, stored[name].astype(np.float64)) for name in sorted(stored.files)]
    varying = [(name, values) for name, values in found if np.ptp(values) > 0]
    order = np.random.default_rng(0).permutation(len(varying))  # the first few are of all kinds
    return dict(varying[k] for k in order)


def answers_file(name: str) -> Path:
    """The path of a file of answers."""
    named, data = os.environ.get("EBLIME_TABLES"), local_folder()
    here = Path(__file__).parent
    folders = (
        [Path(named)] if named else [data.resolve().parent / "tables", here] if data else [here]
    )
    for folder in folders:
        if (folder / name).exists():
            return folder / name
    raise FileNotFoundError(
        f"{name} was not found in {' or '.join(map(str, folders))}. "
        "Set EBLIME_TABLES to the folder that has it. It holds stored answers of models, described "
        "in studies/data/stored.py; only imagenet-p13.npz is part of the repository."
    )
