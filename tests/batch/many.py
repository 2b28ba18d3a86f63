"""Inputs, a model and a driver for the tests of runs, to be found by other processes."""

import os
import sys
import time
from pathlib import Path

import numpy as np

import eblime

MASKS = 60
ROWS = np.random.default_rng(0).random((60, 5))


def slow(rows):
    """A model that takes a moment, so that a run can be interrupted."""
    time.sleep(0.004)
    return rows[:, 0] * rows[:, 1]


def make():
    """An explainer of its rows."""
    return eblime.TabularExplainer(slow, ROWS, n_masks=60)


def shifted(rows):
    """A model that can be made another one from outside."""
    return rows[:, 0] * rows[:, 1] + float(os.environ.get("EBLIME_TEST_SHIFT", "0"))


def make_shifted():
    """An explainer of it."""
    return eblime.TabularExplainer(shifted, ROWS, n_masks=MASKS)


def make_nothing():
    """A function that fails."""
    raise FileNotFoundError("no such model")


def deadly(rows):
    """A model that ends its process, once."""
    flag = Path(os.environ["EBLIME_TEST_FLAG"])
    if not flag.exists():
        flag.touch()
        os.kill(os.getpid(), 9)
    return rows[:, 0]


def make_deadly():
    """An explainer whose first worker is killed."""
    return eblime.TabularExplainer(deadly, ROWS, n_masks=60)


if __name__ == "__main__":
    eblime.explain_many(
        make,
        ROWS,
        sys.argv[1],
        part_size=4,
        workers=int(sys.argv[2]),
        engine=sys.argv[3],
        together=False,
    )
