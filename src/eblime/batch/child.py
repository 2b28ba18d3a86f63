"""A worker process: it creates the explainer once, then does the tasks it receives over a pipe.

A task is ("part", number), which the worker writes itself, or ("inputs", numbers), whose rows it
sends back. The worker reports which inputs it begins, so that its supervisor knows which inputs a
crash or a hang belongs to.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from time import monotonic
from typing import Any, Protocol

from eblime._threads import limit_threads

__all__ = ["Child", "Message", "PartWorker"]

Message = tuple[Any, ...]  # its kind, then its values


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
        self.connection, self._theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(self._theirs, threads))
        # in a thread: sending to a pipe blocks until the process at the other end has started
        self._sender = threading.Thread(
            target=_send_job, args=(self.connection, packed_job), daemon=True
        )
        self.since = monotonic()  # time of the last message

    def start(self) -> None:
        """Start the process. If this is interrupted, as by Ctrl-C, `kill` still ends it."""
        self.process.start()
        self._theirs.close()
        self._sender.start()
        self.since = monotonic()

    def send(self, task: Message) -> None:
        """Send a task; a process that has died is noticed later."""
        self.since = monotonic()
        with suppress(OSError):
            self.connection.send(task)

    def messages(self) -> Iterator[Message]:
        """The messages that it has sent so far."""
        try:
            while self.connection.poll():
                message: Message = self.connection.recv()
                self.since = monotonic()
                yield message
        except (EOFError, OSError):  # it has died
            return

    def stop(self) -> None:
        """Send the signal that ends the process, and do not wait."""
        if self.process.pid is not None:  # it was started
            self.process.kill()

    def kill(self) -> None:
        """End the process at once; an unfinished part is done again."""
        self.stop()
        if self.process.pid is not None:
            self.process.join()
        self._theirs.close()
        if self._sender.ident is not None:
            self._sender.join()
        self.connection.close()


def _send_job(connection: Connection, packed_job: bytes) -> None:
    """Send the run through the pipe, so that no temporary file is left after a signal."""
    with suppress(OSError):  # the process died while it started
        connection.send_bytes(packed_job)


def _serve(connection: Connection, threads: int) -> None:
    """Create the explainer, then do tasks until the other end is closed."""
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the driver handles Ctrl-C
    limit_threads(threads)
    try:
        worker: PartWorker = pickle.loads(connection.recv_bytes()).start()
    except BaseException as error:
        connection.send(("unready", str(error) or type(error).__name__))
        return
    limit_threads(threads)  # for libraries that the model has loaded, too
    connection.send(("ready", dict(worker.about)))
    while True:
        try:
            kind, task = connection.recv()
        except (EOFError, OSError):
            return
        try:
            failed = _do(worker, connection, kind, task)
        except Exception as error:
            connection.send(("error", *_portable(error)))
        else:
            connection.send(("done", failed, _memory_held()))


def _do(worker: PartWorker, connection: Connection, kind: str, task: Any) -> int:
    """Do a task; returns how many inputs of a part failed."""

    def report(numbers: Sequence[int]) -> None:
        connection.send(("begin", tuple(numbers)))

    if kind == "part":
        return worker.do(task, report)
    if len(task) == 1:  # the name first: it is needed if the input crashes
        report(task)
        connection.send(("name", worker.name(task[0])))
    for number, result in worker.explained(task, report):
        connection.send(("rows", number, worker.rows(number, result)))
    return 0


def _exit_with_parent() -> None:
    """End this process when the driver ends, even if the driver is killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _portable(error: Exception) -> tuple[Exception, str]:
    """An error that can be pickled, and its traceback as text."""
    where = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    try:
        copy = pickle.loads(pickle.dumps(error))
    except Exception:
        copy = None
    if type(copy) is type(error):
        return error, where
    return RuntimeError(f"{type(error).__name__}: {error}"), where


def _memory_held() -> int:
    """Bytes of memory in use, or their maximum so far if only that is known; 0 if unknown."""
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
