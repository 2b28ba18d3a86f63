"""Limits on threads of linear algebra, also where a process forks."""

import os
import subprocess
import sys

import pytest

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
            right = blas() == usual
            with _threads.few_threads(0):
                right = right and set(blas()) == {1}
            code = 0 if right and blas() == usual else 2
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
def test_a_forked_child_has_no_limit_and_no_deadlock(scene):
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
