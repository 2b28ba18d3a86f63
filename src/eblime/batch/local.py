"""The local engine: the calling process, or worker processes of pebble.

If the model crashes the calling process, `in-progress.json` in the run folder says which part it
was doing, and the next call does that part in a worker process. If the explainer cannot be sent to
one, the calling process does the part input by input. Another crash then identifies the input, and
the call after that records it as failed.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import signal
import sys
import threading
from collections.abc import Generator, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from eblime._threads import available_cores, limit_threads
from eblime.batch.folder import Rows, count_failures, part_numbers, write_part
from eblime.batch.location import Location
from eblime.batch.worker import Job, Worker, on_gpu
from eblime.batch.workers import Finished, Task, Workers, WorkerStartError, supervise
from eblime.explainers.base import BaseExplainer

__all__ = ["check_sendable", "do_task", "remove_marker", "run_local"]

_MEMORY = 1 << 30  # bytes that a worker with its model is expected to need
_MARKER = "in-progress.json"
_INSTEAD = "pass a function of a module that creates it"


def run_local(job: Job, parts: Sequence[int], workers: Workers) -> Generator[tuple[int, int]]:
    """Do parts; yields (part, number of failed inputs) after each. Without parts, check a model."""
    if not parts:
        Worker.start(job)
        return
    count = workers.count
    if count == "auto":
        count = _worker_count(job.explainer, len(parts))
    if count > 1 or workers.timeout is not None:
        yield from _in_processes(job, parts, count)
        return
    crashed = _read_marker(job.folder)
    if crashed is None or crashed.part not in parts:
        yield from _in_driver(job, parts)
        return
    try:
        yield from _in_processes(job, [crashed.part], 1)
    except (TypeError, WorkerStartError):
        yield from _in_driver(job, parts, crashed)
    else:
        yield from _in_driver(job, [part for part in parts if part != crashed.part])


def _worker_count(explainer: Any, parts: int) -> int:
    """How many processes cores, memory and parts allow; one if the model runs on a GPU."""
    if on_gpu(explainer) or _may_use_gpu(explainer):
        return 1
    return max(1, min(available_cores(), _free_memory() // _MEMORY, parts))


def _may_use_gpu(explainer: Any) -> bool:
    """Whether a function that creates an explainer may put its model on a GPU."""
    torch = sys.modules.get("torch")
    created_later = not isinstance(explainer, BaseExplainer)
    return torch is not None and created_later and bool(torch.cuda.is_available())


def _free_memory() -> int:
    """Bytes of memory that are available; a guess if the system does not report it."""
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return 1024 * int(line.split()[1])
    except OSError:
        pass
    return 8 << 30


# Worker processes


def _in_processes(job: Job, parts: Sequence[int], count: int) -> Generator[tuple[int, int]]:
    """Do parts in worker processes."""
    check_sendable(job.explainer)
    try:
        packed = pickle.dumps(job)
    except Exception as error:
        raise TypeError(
            "`explainer` must be picklable with several workers or a timeout; "
            f"{_INSTEAD} ({type(error).__name__}: {error})."
        ) from error
    threads = max(1, available_cores() // count)
    yield from supervise(job, parts, lambda: _Process(packed, threads), count)


def check_sendable(explainer: Any) -> None:
    """Refuse to send a network on a GPU to other processes."""
    if on_gpu(explainer):
        raise TypeError(
            "`explainer` must not hold a network on a GPU if it is sent to other processes; "
            f"{_INSTEAD}."
        )


class _Process:
    """A worker process: a pool of pebble with one process.

    A pool of several would share one lock, which a process that is killed may never release.
    """

    def __init__(self, packed: bytes, threads: int) -> None:
        try:
            from pebble import ProcessPool
        except ImportError as error:
            raise ImportError("Workers need pebble: pip install 'eblime[batch]'.") from error
        context: Any = multiprocessing.get_context("spawn")
        arguments = (packed, threads)
        self._pool: Any = ProcessPool(1, initializer=_begin, initargs=arguments, context=context)
        self._process: Any = None

    def start(self) -> Future[Finished]:
        """Start the process and create its explainer."""
        others = {*multiprocessing.active_children()}
        try:
            future: Future[Finished] = self._pool.schedule(_about)
            return future
        finally:  # also if Ctrl-C was pressed right after the start
            self._process = next(iter({*multiprocessing.active_children()} - others), None)

    def submit(self, task: Task) -> Future[Finished]:
        """Give it a task."""
        future: Future[Finished] = self._pool.schedule(_do, args=(task,))
        return future

    def ending(self, error: BaseException | None) -> str | None:
        """The exit code or the signal that ended the process; None if it lives."""
        code = None if self._process is None else self._process.exitcode
        if code is None:
            return None
        if code >= 0:
            return f"exit code {code}"
        known = {int(entry): entry.name for entry in signal.Signals}
        hint = ", perhaps out of memory" if known.get(-code) == "SIGKILL" else ""
        return f"signal {known.get(-code, -code)}{hint}"

    def kill(self) -> None:
        """End the process at once; an unfinished part is done again."""
        self._pool.stop()  # first: it would replace the process
        if self._process is not None:
            self._process.kill()
        self._pool.join()


_worker: Worker | BaseException  # of a worker process


def _begin(packed: bytes, threads: int) -> None:
    """In a new process: create the explainer; `_about` raises the error if that fails."""
    global _worker
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    limit_threads(threads)
    try:
        _worker = Worker.start(pickle.loads(packed))
    except BaseException as error:
        _worker = error
    limit_threads(threads)  # for libraries that the model has loaded, too


def _exit_with_parent() -> None:
    """End this process when the driver ends, even if the driver is killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _about() -> Finished:
    """The settings of the explainer of this process."""
    if isinstance(_worker, BaseException):
        text = str(_worker) or type(_worker).__name__
        raise WorkerStartError(f"The explainer cannot be created in a worker: {text}")
    return Finished(dict(_worker.about), 0)


def _do(task: Task) -> Finished:
    """Do a task with the worker of this process."""
    assert isinstance(_worker, Worker)
    return do_task(_worker, task)


def do_task(worker: Worker, task: Task) -> Finished:
    """Do a task; an error is raised in a form that can be sent to another process."""
    try:
        if task.number is None:
            value: Any = worker.do(task.part)
        else:
            [entry] = worker.explain_inputs([task.number])
            value = worker.rows(*entry)
    except Exception as error:
        try:
            same = type(pickle.loads(pickle.dumps(error))) is type(error)
        except Exception:
            same = False
        if same:
            raise
        raise RuntimeError(f"{type(error).__name__}: {error}") from None
    return Finished(value, _memory_held())


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


# The calling process


@dataclass(frozen=True, slots=True, kw_only=True)
class _Marker:
    """What the calling process is doing."""

    part: int
    number: int | None = None  # the input, if they are done one by one
    crashed: tuple[int, ...] = ()  # inputs of the part on which a process crashed

    def write(self, folder: Location) -> None:
        """Store it in the run folder, until the part is done."""
        (folder / _MARKER).write(json.dumps(asdict(self)).encode())


def _read_marker(folder: Location) -> _Marker | None:
    """What the last process was doing when it crashed; None if it did not."""
    file = folder / _MARKER
    if file.kind() != "file":
        return None
    try:
        found = json.loads(file.read())
        crashed = tuple(int(number) for number in found["crashed"])
        return _Marker(part=int(found["part"]), number=found["number"], crashed=crashed)
    except (ValueError, TypeError, KeyError):  # incomplete
        return None


def remove_marker(folder: Location) -> None:
    """Delete the marker, if there is one."""
    file = folder / _MARKER
    if file.kind() == "file":
        file.remove()


def _in_driver(
    job: Job, parts: Sequence[int], interrupted: _Marker | None = None
) -> Generator[tuple[int, int]]:
    """Do parts in this process; an interrupted part comes first and is done input by input."""
    worker = Worker.start(job)
    if interrupted is not None:
        yield interrupted.part, _one_by_one(worker, interrupted)
    try:
        for part in parts:
            if interrupted is None or part != interrupted.part:
                _Marker(part=part).write(job.folder)
                yield part, worker.do(part)
    finally:
        remove_marker(job.folder)


def _one_by_one(worker: Worker, interrupted: _Marker) -> int:
    """Do an interrupted part without the inputs on which a process crashed; returns the failures.

    If this process is interrupted, the marker stays for the next call.
    """
    last = () if interrupted.number is None else (interrupted.number,)
    crashed = tuple(sorted({*interrupted.crashed, *last}))
    marker = _Marker(part=interrupted.part, crashed=crashed)
    rows: Rows = []
    try:
        for number in part_numbers(worker.job.settings, marker.part):
            if number in crashed:
                error = RuntimeError("The process crashed on this input.")
                rows += worker.rows(number, error)
                continue
            replace(marker, number=number).write(worker.job.folder)
            for entry in worker.explain_inputs([number]):
                rows += worker.rows(*entry)
        write_part(worker.job.folder, worker.job.run, marker.part, rows, worker.about)
    except BaseException:
        marker.write(worker.job.folder)
        raise
    remove_marker(worker.job.folder)
    return count_failures(rows)
