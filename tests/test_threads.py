"""Limits on threads of linear algebra, also where a process forks."""

import dataclasses
import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.linalg  # noqa: F401  # its library is limited, too
from threadpoolctl import threadpool_info, threadpool_limits

import eblime

FORK = """
import os, signal, threading
import scipy.linalg
from threadpoolctl import threadpool_info
from eblime import _threads

def blas():
    return [entry["num_threads"] for entry in threadpool_info() if entry["user_api"] == "blas"]

def child(inside):
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            signal.alarm(300)  # a deadlock ends the child
            with _threads.few_threads(0):
                code = 0 if set(blas()) == {1} else 2
        finally:
            if not inside:
                os._exit(code)
        return code
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

usual = blas()
entered, leave = threading.Event(), threading.Event()
"""

THREAD = """
def other():
    with _threads.few_threads(0):
        entered.set()
        leave.wait()

thread = threading.Thread(target=other)
thread.start()
entered.wait()
print(child(False))
leave.set()
thread.join()
print(blas() == usual)
"""

LOCKED = """
def other():
    with _threads._LOCK:
        entered.set()
        leave.wait()

thread = threading.Thread(target=other)
thread.start()
entered.wait()
os.register_at_fork(before=leave.set)  # runs first: the lock is held until the fork begins
print(child(False))
thread.join()
print(blas() == usual)
"""

ITSELF = """
parent = os.getpid()
with _threads.few_threads(0):
    code = child(True)
if os.getpid() != parent:
    os._exit(code or (0 if blas() == usual else 3))
print(code)
print(blas() == usual)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot fork here")
@pytest.mark.parametrize("scene", [THREAD, LOCKED, ITSELF], ids=["inside", "locked", "itself"])
def test_a_forked_child_has_no_deadlock(scene):
    """Threads of the parent that do not exist in the child hold nothing there."""
    threads = {"OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK + scene],
        env=os.environ | threads,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.stdout.split() == ["0", "True"], done.stderr


def blas_threads():
    """Threads of NumPy's and SciPy's linear algebra."""
    return {entry["num_threads"] for entry in threadpool_info() if entry["user_api"] == "blas"}


@dataclasses.dataclass(frozen=True)
class Watched:
    """A method that notes how many threads its fits have."""

    seen: list
    name: str = "watched"

    def fit(self, rng, answers):
        """Fit as LIME does."""
        self.seen.append(blas_threads())
        post = eblime.LIME().fit(rng, answers)
        return dataclasses.replace(post, held_out=0.5)


WAYS = {
    "fit": lambda method, e: eblime.fit(e.masks, e.answers.scores, method=method),
    "refit": lambda method, e: e.refit(method),
    "plot": lambda method, e: eblime.plot.convergence(e.refit(method)),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_small_fit_has_one_thread(way):
    """Several threads would wait for each other on a busy machine: 20 times as long."""
    background = np.random.default_rng(0).normal(size=(20, 4))
    explainer = eblime.TabularExplainer(lambda rows: rows.sum(axis=1), background, n_masks=50)
    explanation = explainer.explain(np.ones(4), target=0)
    seen = []
    with threadpool_limits(2, user_api="blas"):
        WAYS[way](Watched(seen), explanation)
        after = blas_threads()

    assert seen
    assert all(threads == {1} for threads in seen)
    assert after == {2}
