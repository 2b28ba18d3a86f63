"""A worker process: it makes the explainer once, then does the tasks that come over its pipe.

Tasks are ("part", its number), which the worker writes itself, or ("inputs", their numbers), whose
rows it sends back. Before it works on inputs it says which, so that the process that supervises it
knows what a crash or a hang is about.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol

from eblime._threads import limit_threads

__all__ = ["Child", "Message", "PartWorker"]

Message = tuple[Any, ...]  # its kind, and what belongs to it


class PartWorker(Protocol):
    """What `job.start()` returns in a worker process: it does the parts of a run."""

    @property
    def about(self) -> Mapping[str, str]:
        """A description that is stored with every part."""
        ...

    def do(self, part: int, begin: Callable[[Sequence[int]], None]) -> int:
        """Do a part and write it; returns how many of its inputs failed."""
        ...

    def name(self, number: int) -> str:
        """The name of an input."""
        ...

    def explained(
        self, numbers: Sequence[int], begin: Callable[[Sequence[int]], None]
    ) -> Iterable[tuple[int, Any]]:
        """Results of inputs, by number."""
        ...

    def rows(self, number: int, result: Any) -> Any:
        """A result as it is stored."""
        ...


class Child:
    """A worker process, seen from the process that supervises it."""

    def __init__(self, packed_job: bytes, threads: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, threads))
        self.process.start()
        theirs.close()
        # by a thread: a pipe holds the sender up until the process at its other end has started
        self._feeder = threading.Thread(
            target=_feed, args=(self.connection, packed_job), daemon=True
        )
        self._feeder.start()
        self.since = time.monotonic()  # of the last message

    def send(self, task: Message) -> None:
        """Give it a task; where the process has died, that is seen later."""
        self.since = time.monotonic()
        with suppress(OSError):
            self.connection.send(task)

    def messages(self) -> Iterator[Message]:
        """What it has sent so far."""
        try:
            while self.connection.poll():
                message: Message = self.connection.recv()
                self.since = time.monotonic()
                yield message
        except (EOFError, OSError):  # it has died
            return

    def kill(self) -> None:
        """End it at once: a part that is half done is done again."""
        self.process.kill()
        self.process.join()
        self._feeder.join()
        self.connection.close()


def _feed(connection: Connection, packed_job: bytes) -> None:
    """Send the run; no file holds it, which a signal could leave behind."""
    with suppress(OSError):  # the process died while it started
        connection.send_bytes(packed_job)


def _serve(connection: Connection, threads: int) -> None:
    """Make the explainer, then do what comes, until the other end is closed."""
    threading.Thread(target=_follow, daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the driver
    limit_threads(threads)
    try:
        worker: PartWorker = pickle.loads(connection.recv_bytes()).start()
    except BaseException as error:
        connection.send(("unready", str(error) or type(error).__name__))
        return
    limit_threads(threads)  # libraries that came with the model, too
    connection.send(("ready", dict(worker.about)))
    while True:
        try:
            kind, given = connection.recv()
        except (EOFError, OSError):
            return
        try:
            failed = _do(worker, connection, kind, given)
        except Exception as error:
            connection.send(("error", *_portable(error)))
        else:
            connection.send(("done", failed, _memory_held()))


def _do(worker: PartWorker, connection: Connection, kind: str, given: Any) -> int:
    """Do a task; returns how many inputs of a part failed."""

    def begin(numbers: Sequence[int]) -> None:
        connection.send(("begin", tuple(numbers)))

    if kind == "part":
        return worker.do(given, begin)
    if len(given) == 1:  # the name first: it is needed most where the input crashes
        begin(given)
        connection.send(("name", worker.name(given[0])))
    for number, result in worker.explained(given, begin):
        connection.send(("rows", number, worker.rows(number, result)))
    return 0


def _follow() -> None:
    """End with the driver, also where that is killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _portable(error: Exception) -> tuple[Exception, str]:
    """An error as it can be sent, and where it was raised."""
    where = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    try:
        copy = pickle.loads(pickle.dumps(error))
    except Exception:
        copy = None
    if type(copy) is type(error):
        return error, where
    return RuntimeError(f"{type(error).__name__}: {error}"), where


def _memory_held() -> int:
    """Bytes that this process holds (the most so far where only that is known); 0 if unknown."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        pass
    try:
        import resource
    except ImportError:  # Windows
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak
