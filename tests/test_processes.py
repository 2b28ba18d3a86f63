"""Tests leave no processes behind."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from processes import below, in_group, started, wait_until

HERE = Path(__file__).parent
FAMILY = """
import subprocess, sys, time
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
print("ready", flush=True)
time.sleep(1000)
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are found in /proc")
def test_a_test_that_fails_leaves_no_process():
    """Nor a child of it, nor an open pipe."""
    seen = []

    def failing_test():
        with started([sys.executable, "-c", FAMILY], stdout=subprocess.PIPE) as process:
            seen.append(process)
            assert process.stdout.readline() == b"ready\n"
            wait_until(lambda: len(in_group(process.pid)) == 2)
            wait_until(lambda: len(below(process.pid, "sleep")) == 1)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        failing_test()

    [process] = seen
    assert process.returncode is not None
    assert process.stdout.closed
    wait_until(lambda: in_group(process.pid) == [])


def test_processes_are_started_in_one_place():
    """`Popen` alone leaves its process behind where a test fails."""
    direct = re.compile(r"\bPopen\(")
    files = {path for path in HERE.rglob("*.py") if direct.search(path.read_text("utf8"))}

    assert files - {HERE / "processes.py", Path(__file__)} == set()
