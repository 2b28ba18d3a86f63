"""Processes that tests start and look for.

A process that outlives its test disturbs others: it takes a core, it holds files, and Python warns
about it in a later test. So tests start processes with `subprocess.run` or with `started`, which
end them in every case.
"""

import os
import signal
import subprocess
import time
from contextlib import contextmanager, suppress
from pathlib import Path

LONG = 600  # seconds after which something hangs, however busy the machine is


@contextmanager
def started(command, **options):
    """A process in a group of its own; the group is killed at the end, also where a test fails."""
    process = subprocess.Popen(command, start_new_session=True, **options)
    try:
        yield process
    finally:
        if process.returncode is None:  # not waited for, so its number still belongs to it
            with suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def wait_until(condition):
    """Wait until a function returns something true, and return that."""
    deadline = time.monotonic() + LONG
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise TimeoutError("the condition was never met")
        time.sleep(0.01)
    return found


def _table():
    """By number of each running process: its command line or title, its parent and its group."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes().decode(errors="replace")
            state = (folder / "stat").read_text().rsplit(")", 1)[1].split()
        except (OSError, IndexError):  # it has ended
            continue
        if state[0] != "Z":  # ended, but nobody has asked for its exit code
            found[int(folder.name)] = line, int(state[1]), int(state[2])
    return found


def below(root, word):
    """Numbers of the processes that a process has started, with a word in their command lines."""
    table, found = _table(), {root}
    while more := {pid for pid, (_, above, _) in table.items() if above in found} - found:
        found |= more
    return sorted(pid for pid in found - {root} if word in table[pid][0])


def in_group(number, word=""):
    """Numbers of the processes of a group, with a word in their command lines."""
    return sorted(
        pid for pid, (line, _, group) in _table().items() if group == number and word in line
    )
