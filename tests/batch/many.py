"""Inputs, models and a driver for the tests of runs; other processes import this module."""

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np

import eblime
from eblime.batch import Workers

MASKS = 60
ROWS = np.random.default_rng(0).random((24, 5))
OTHERS = np.random.default_rng(1).random((24, 5))  # a background without the inputs


def part_file(run, part):
    """The file of a part of a run."""
    [found] = Path(run).glob(f"part-{part:06d}-*.parquet")
    return found


def held(rows):
    """Whether a test holds the model: a file has the first input of `ROWS` that is held."""
    try:
        first = int(Path(os.environ["EBLIME_TEST_HOLD"]).read_text())
    except (KeyError, FileNotFoundError):
        return False
    return any((rows == row).all(axis=1).any() for row in ROWS[first:])


def slow(rows):
    """A model that takes a moment, so that a run can be interrupted."""
    time.sleep(0.004)
    while held(rows):
        time.sleep(0.01)
    return rows[:, 0] * rows[:, 1]


def make():
    """An explainer of `slow`."""
    return eblime.TabularExplainer(slow, OTHERS, n_masks=60)


def shifted(rows):
    """A model whose output depends on an environment variable."""
    return rows[:, 0] * rows[:, 1] + float(os.environ.get("EBLIME_TEST_SHIFT", "0"))


def make_shifted():
    """An explainer of `shifted`."""
    return eblime.TabularExplainer(shifted, ROWS, n_masks=MASKS)


def make_nothing():
    """A function that fails."""
    raise FileNotFoundError("no such model")


def deadly(rows):
    """A model that kills its process on the first call."""
    flag = Path(os.environ["EBLIME_TEST_FLAG"])
    if not flag.exists():
        flag.touch()
        os.kill(os.getpid(), 9)
    return rows[:, 0]


def make_deadly():
    """An explainer whose first worker is killed."""
    return eblime.TabularExplainer(deadly, ROWS, n_masks=60)


ACTS = {
    "segfault": lambda: os.kill(os.getpid(), signal.SIGSEGV),
    "sys.exit": lambda: sys.exit(3),
    "os._exit": lambda: os._exit(3),
    "os._exit 0": lambda: os._exit(0),
    "hang": lambda: time.sleep(1000),
    "raise": lambda: (_ for _ in ()).throw(ZeroDivisionError("none")),
}


def poisoned(rows):
    """A model that crashes, exits, hangs or raises on the inputs that the environment names."""
    for number, act in json.loads(os.environ["EBLIME_TEST_POISON"]).items():
        if (rows == ROWS[int(number)]).all(axis=1).any():
            ACTS[act]()
    return rows[:, 0] * rows[:, 1]


def make_poisoned():
    """An explainer of `poisoned`."""
    return eblime.TabularExplainer(poisoned, OTHERS, n_masks=60)


def sleepy(rows):
    """A model that takes as many seconds per call as the environment says."""
    time.sleep(float(os.environ["EBLIME_TEST_SLEEP"]))
    return rows[:, 0] * rows[:, 1]


def make_sleepy():
    """An explainer of `sleepy`, which asks it once for each input."""
    calls = eblime.Calls(batch_size=61)
    return eblime.TabularExplainer(sleepy, OTHERS, n_masks=60, calls=calls)


def growing(rows, kept=[]):  # noqa: B006
    """A model that leaks 8 MB per call."""
    kept.append(np.ones(1 << 20))
    Path(os.environ["EBLIME_TEST_FLAG"], str(os.getpid())).touch()
    return rows[:, 0] * rows[:, 1]


def make_growing():
    """An explainer of `growing`."""
    return eblime.TabularExplainer(growing, OTHERS, n_masks=60)


def make_killed_while_writing():
    """An explainer whose first process is killed in the middle of writing an explanation."""
    flag = Path(os.environ["EBLIME_TEST_FLAG"])
    real = os.fsync

    def fsync(handle):
        if not flag.exists():
            flag.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        real(handle)

    os.fsync = fsync
    return make()


if __name__ == "__main__":
    maker = globals()[sys.argv[4]] if len(sys.argv) > 4 else make
    limit = float(sys.argv[5]) if len(sys.argv) > 5 else None
    eblime.explain_many(
        maker,
        ROWS,
        sys.argv[1],
        part_size=4,
        workers=Workers(int(sys.argv[2]), engine=sys.argv[3], timeout=limit),
    )
    left = [thread.name for thread in threading.enumerate()[1:]]
    assert sys.argv[3] == "ray" or not left, left  # a thread in C++ code aborts a process that ends
