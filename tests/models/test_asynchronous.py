"""Calls in the background, also where a process forks."""

import os
import subprocess
import sys

import pytest

FORK = """
import os, signal, threading
from eblime.models import asynchronous

async def double(batch):
    return 2 * batch

held, leave = threading.Event(), threading.Event()

def hold():
    with asynchronous._lock:
        held.set()
        leave.wait()

thread = threading.Thread(target=hold)
thread.start()
held.wait()
pid = os.fork()
if pid == 0:
    signal.alarm(300)  # a deadlock ends the child
    os._exit(asynchronous.AsyncModel(function=double)(21))
leave.set()
thread.join()
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot fork here")
def test_a_forked_child_can_call_an_async_model():
    """Also if another thread was just starting a call."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK], capture_output=True, text=True, check=False
    )

    assert done.stdout.split() == ["42"], done.stderr
