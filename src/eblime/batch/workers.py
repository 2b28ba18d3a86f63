"""Where parts are done: in the calling process, in worker processes of pebble, or in actors of Ray.

The same functions write the parts everywhere, so each engine can resume the run of the other. With
Ray, every node must see the run folder: on a shared file system, or in an object store.

A part whose worker crashes or hangs is done again, one input at a time. An input is recorded as
failed only if it crashes or hangs alone, so a worker that is killed by accident costs time but no
result. A worker that has grown is replaced. Every input has its own random generator, so no number
depends on how a part was done.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import pickle
import signal
import sys
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any, Literal, NamedTuple

from eblime._checks import check_choice, check_count, check_number
from eblime._threads import available_cores, free_memory, limit_threads
from eblime.batch.folder import (
    Rows,
    count_failures,
    part_numbers,
    rows_of_input,
    write_part,
)
from eblime.batch.worker import Job, Worker, on_gpu, with_python_handler
from eblime.explainers.base import BaseExplainer

Count = int | Literal["auto"]
TRIES = 3  # deaths of workers that were starting
GROWTH = 1 << 30  # bytes that a worker may grow after its first task before it is replaced
_LOOK = 0.5  # seconds between checks for workers that are late
_MEMORY = 1 << 30  # bytes that a worker with its model is expected to need
_INSTEAD = "pass a function of a module that creates it"


@dataclass(frozen=True, slots=True)
class Workers:
    """How many workers a run has, where they are, and how long each may take for an input.

    Parameters
    ----------
    count
        Number of workers. "auto" is as many as cores and memory allow, and one if the model runs
        on a GPU. One local worker without a timeout is the calling process.
    timeout
        Seconds per input; an input that takes longer is recorded as failed. The inputs of a part
        share this time at first. If it is too short for all of them, they are explained one at a
        time, each with the whole time. None waits without a limit.
    engine
        "local" for processes on this machine, or "ray".
    cpus, gpus
        What each Ray actor claims; by default an equal share of the cores, at most one, and no GPU.

    Examples
    --------
    >>> from eblime.batch import Workers
    >>> Workers(4, timeout=60)
    Workers(count=4, timeout=60, engine='local', cpus=None, gpus=None)
    """

    count: Count = 1
    timeout: float | None = None
    engine: str = "local"
    cpus: float | None = None
    gpus: float | None = None

    def check(self) -> None:
        """Refuse settings that cannot work."""
        if self.count != "auto":
            check_count("workers", self.count)
        if self.timeout is not None:
            check_number("timeout", self.timeout)
        check_choice("engine", self.engine, ("local", "ray"))
        if self.engine == "local" and (self.cpus is not None or self.gpus is not None):
            raise ValueError("`cpus` and `gpus` are for `engine` 'ray'.")


class WorkerStartError(RuntimeError):
    """No worker can be started, or the explainer cannot be created in it."""


class Task(NamedTuple):
    """A part, which the worker writes, or one of its inputs, whose rows it returns."""

    part: int
    number: int | None = None


class Finished(NamedTuple):
    """What a worker returns."""

    value: Any  # how many inputs of a part failed, or the rows of an input; at its start, `about`
    memory: int  # bytes that it holds


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
    worker = Worker.start(job)
    with with_python_handler():
        yield from worker.do_parts(parts)


def _worker_count(explainer: Any, parts: int) -> int:
    """How many processes cores, memory and parts allow; one if the model runs on a GPU."""
    torch = sys.modules.get("torch")
    created_later = not isinstance(explainer, BaseExplainer)
    if on_gpu(explainer) or (created_later and torch is not None and torch.cuda.is_available()):
        return 1
    return max(1, min(available_cores(), (free_memory() or 8 << 30) // _MEMORY, parts))


# Supervision


class Member(ABC):
    """A worker process, seen from the process that supervises it, and what it is doing."""

    future: Future[Finished] | None = None
    task: Task | None = None  # None while it starts
    since = 0.0  # when it began
    memory = 0  # bytes held after its first task
    died: float | None = None  # when its process was found dead, and its task had no result yet

    @abstractmethod
    def start(self) -> Future[Finished]:
        """Start the process and create its explainer; the result is the explainer's settings."""

    @abstractmethod
    def submit(self, task: Task) -> Future[Finished]:
        """Give it a task."""

    @abstractmethod
    def ending(self, error: BaseException | None) -> str | None:
        """How the process ended, or None if it lives; `error` is that of its task, if any."""

    @abstractmethod
    def kill(self) -> None:
        """End the process at once; an unfinished part is done again."""


class WorkerPool:
    """Up to `most` workers of a run, and the parts that are left; `new_worker` creates a worker."""

    def __init__(
        self, job: Job, parts: Sequence[int], new_worker: Callable[[], Member], most: int
    ) -> None:
        self._members: list[Member] = []
        self._job, self._new_worker, self._most = job, new_worker, most
        self._todo = deque(Task(part) for part in parts)
        self._rows: dict[int, dict[int, Rows]] = {}  # of parts that are done input by input
        self._about: Mapping[str, str] = {}  # the settings of the explainer
        self._failed_starts = 0
        self._late: set[int] = set()  # parts that took longer than the timeout of one input
        self._alone = False  # parts need longer, though no input does
        self._last_check = monotonic()

    def run(self) -> Iterator[tuple[int, int]]:
        """Do all parts; yields (part, number of failed inputs) as each is done."""
        try:
            while self._todo or any(member.task for member in self._members):
                self._assign()
                pending = [member.future for member in self._members if member.future is not None]
                wait(pending, timeout=_LOOK, return_when=FIRST_COMPLETED)
                self._ignore_suspend()
                for member in list(self._members):
                    yield from self._check_on(member)
        finally:
            for member in self._members:
                member.kill()

    def _assign(self) -> None:
        """Give tasks to free workers, and start more workers if needed."""
        while self._alone and self._todo and self._todo[0].number is None:
            self._split(self._todo.popleft().part)
        for member in list(self._members):
            if self._todo and member.future is None:
                if member.ending(None) is not None:  # it died while it was free
                    self._remove(member)
                    continue
                member.task, member.since = self._todo.popleft(), monotonic()
                member.future = member.submit(member.task)
        starting = sum(member.task is None for member in self._members if member.future is not None)
        for _ in range(min(self._most - len(self._members), len(self._todo) - starting)):
            member = self._new_worker()
            self._members.append(member)  # first: if the start is interrupted, it is still killed
            member.future = member.start()

    def _check_on(self, member: Member) -> Iterator[tuple[int, int]]:
        """Handle what a worker has done; yields its part if that is finished."""
        if member.future is None:
            return
        error = member.future.exception() if member.future.done() else None
        ending = member.ending(error)
        timeout = self._job.timeout
        if member.future.done() and error is None:
            yield from self._finish_task(member, member.future.result())
        elif ending is not None and (error is not None or self._is_long_dead(member)):
            text = f"The worker process crashed{ending and f' ({ending})'} on this input."
            yield from self._drop_worker(member, RuntimeError(text), ending)
        elif error is not None:
            raise error
        elif timeout is not None and member.task and monotonic() - member.since > timeout:
            self._late.add(member.task.part)
            text = f"This input was not explained within the timeout of {timeout:g} s."
            yield from self._drop_worker(member, TimeoutError(text), "")

    def _is_long_dead(self, member: Member) -> bool:
        """Whether a dead worker will not send a result any more; it may be on its way."""
        member.died = member.died or monotonic()
        return monotonic() - member.died > 4 * _LOOK

    def _finish_task(self, member: Member, result: Finished) -> Iterator[tuple[int, int]]:
        """A task is done, or the worker has started."""
        task, member.future, member.task = member.task, None, None
        if task is None:
            self._failed_starts, self._about = 0, result.value
            return
        member.memory = member.memory or result.memory
        if result.memory > member.memory + GROWTH:
            self._remove(member)
        if task.number is None:
            yield task.part, result.value
        else:
            yield from self._add(task.part, task.number, result.value)

    def _drop_worker(
        self, member: Member, error: Exception, ending: str
    ) -> Iterator[tuple[int, int]]:
        """Drop a worker that died or hangs; another one continues its part."""
        self._remove(member)
        if member.task is None:
            self._failed_starts += 1
            if self._failed_starts >= TRIES:
                raise WorkerStartError(
                    f"Worker processes died {TRIES} times while they started ({ending}). Is the "
                    'call in a script under `if __name__ == "__main__":`? Does the model crash or '
                    "run out of memory while it is loaded?"
                )
        elif (number := member.task.number) is None:
            self._split(member.task.part)
        else:
            rows = rows_of_input(number, self._job.name(number), error, self._job.settings["prob"])
            yield from self._add(member.task.part, number, rows)

    def _remove(self, member: Member) -> None:
        """End a worker."""
        self._members.remove(member)
        member.kill()

    def _split(self, part: int) -> None:
        """Do a part one input at a time, before others."""
        self._rows[part] = {}
        numbers = part_numbers(self._job.settings, part)
        self._todo.extendleft(Task(part, number) for number in reversed(numbers))

    def _add(self, part: int, number: int, rows: Rows) -> Iterator[tuple[int, int]]:
        """Add the rows of an input; write its part if they were the last."""
        found = self._rows[part]
        found[number] = rows
        if len(found) < len(part_numbers(self._job.settings, part)):
            return
        joined = [row for number in sorted(found) for row in found[number]]
        del self._rows[part]
        write_part(self._job.folder, self._job.run, part, joined, self._about)
        failed = count_failures(joined)
        self._alone |= part in self._late and not failed
        yield part, failed

    def _ignore_suspend(self) -> None:
        """Do not count time in which this process stood still: its workers may have, too.

        Ctrl-Z stops all of them, and so does a virtual machine that is paused.
        """
        now = monotonic()
        pause = now - self._last_check - 2 * _LOOK
        self._last_check = now
        if pause > 0:
            for member in self._members:
                member.since = min(now, member.since + pause)


# Worker processes


def _in_processes(job: Job, parts: Sequence[int], count: int) -> Generator[tuple[int, int]]:
    """Do parts in worker processes."""
    _check_sendable(job.explainer)
    try:
        packed = pickle.dumps(job)
    except Exception as error:
        raise TypeError(
            "`explainer` must be picklable with several workers or a timeout; "
            f"{_INSTEAD} ({type(error).__name__}: {error})."
        ) from error
    threads = max(1, available_cores() // count)
    yield from WorkerPool(job, parts, lambda: _Process(packed, threads), count).run()


def _check_sendable(explainer: Any) -> None:
    """Refuse to send a network on a GPU to other processes."""
    if on_gpu(explainer):
        raise TypeError(
            "`explainer` must not hold a network on a GPU if it is sent to other processes; "
            f"{_INSTEAD}."
        )


class _Process(Member):
    """A worker process: a pool of pebble with one process.

    A pool of several would share one lock, which a process that is killed may never release.
    """

    def __init__(self, packed: bytes, threads: int) -> None:
        try:
            from pebble import ProcessPool
        except ImportError as error:
            raise ImportError("Workers need pebble: pip install 'eblime[batch]'.") from error
        context: Any = multiprocessing.get_context("spawn")
        self._pool: Any = ProcessPool(1, initializer=_exit_with_parent, context=context)
        self._sent = packed, threads
        self._process: Any = None

    def start(self) -> Future[Finished]:
        others = {*multiprocessing.active_children()}
        try:
            future: Future[Finished] = self._pool.schedule(_begin, args=self._sent)
            return future
        finally:  # also if Ctrl-C was pressed right after the start
            self._process = next(iter({*multiprocessing.active_children()} - others), None)

    def submit(self, task: Task) -> Future[Finished]:
        future: Future[Finished] = self._pool.schedule(_do, args=(task,))
        return future

    def ending(self, error: BaseException | None) -> str | None:
        code = None if self._process is None else self._process.exitcode
        if code is None:
            return None
        if code >= 0:
            return f"exit code {code}"
        known = {int(entry): entry.name for entry in signal.Signals}
        hint = ", perhaps out of memory" if known.get(-code) == "SIGKILL" else ""
        return f"signal {known.get(-code, -code)}{hint}"

    def kill(self) -> None:
        self._pool.stop()  # first: it would replace the process
        if self._process is not None:
            self._process.kill()
        self._pool.join()


def _exit_with_parent() -> None:
    """In a new process: end it when the driver ends, even if the driver is killed."""

    def wait() -> None:
        parent = multiprocessing.parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


_worker: Worker  # of a worker process


def _begin(packed: bytes, threads: int) -> Finished:
    """In a new process: create the explainer; returns its settings."""
    global _worker
    limit_threads(threads)
    try:
        _worker = Worker.start(pickle.loads(packed))
    except BaseException as error:
        text = str(error) or type(error).__name__
        raise WorkerStartError(f"The explainer cannot be created in a worker: {text}") from None
    limit_threads(threads)  # for libraries that the model has loaded, too
    return Finished(dict(_worker.about), 0)


def _do(task: Task) -> Finished:
    """Do a task with the worker of this process; an error is raised in a form that can be sent."""
    try:
        if task.number is not None:
            value: Any = _worker.explain_rows([task.number])
        else:
            [(_, value)] = _worker.do_parts([task.part])
    except Exception as error:
        if type(error).__module__ == "builtins":
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


# Actors of Ray


class _Actor:
    """A process of Ray; it needs the path before it can import modules next to the script."""

    def __init__(self, path: list[str]) -> None:
        sys.path += [entry for entry in path if entry not in sys.path]

    def begin(self, packed: bytes, threads: int) -> Finished:
        """Create the explainer; returns its settings."""
        return _begin(packed, threads)

    def do(self, task: Task) -> Finished:
        """Do a task."""
        return _do(task)


class _RayWorker(Member):
    """An actor, seen from the driver."""

    def __init__(self, ray: Any, sent: Any, options: dict[str, float]) -> None:
        self._ray, self._sent, self._options = ray, sent, options
        self._actor: Any = None

    def start(self) -> Future[Finished]:
        self._actor = self._ray.remote(_Actor).options(**self._options).remote(list(sys.path))
        threads = max(1, round(self._options["num_cpus"]))
        future: Future[Finished] = self._actor.begin.remote(self._sent, threads).future()
        return future

    def submit(self, task: Task) -> Future[Finished]:
        future: Future[Finished] = self._actor.do.remote(task).future()
        return future

    def ending(self, error: BaseException | None) -> str | None:
        return "" if isinstance(error, self._ray.exceptions.RayActorError) else None

    def kill(self) -> None:
        if self._actor is not None:
            self._ray.kill(self._actor)


def run_on_ray(job: Job, parts: Sequence[int], workers: Workers) -> Generator[tuple[int, int]]:
    """Do parts on a running Ray cluster, or one on this machine; without parts, check a model."""
    _check_sendable(job.explainer)
    ray = _ray()
    count, share = _room(ray, len(parts), workers)
    options = {"num_cpus": share, "num_gpus": workers.gpus or 0}
    sent = ray.put(ray.cloudpickle.dumps(job))
    try:
        if not parts:
            worker = _RayWorker(ray, sent, options)
            worker.start().result()
            worker.kill()
        yield from WorkerPool(job, parts, lambda: _RayWorker(ray, sent, options), count).run()
    except ray.exceptions.RayTaskError as error:
        raise error.as_instanceof_cause() from None
    except ray.exceptions.RayError as error:
        raise RuntimeError(f"Ray failed; the run can be resumed. {error}") from error


def _room(ray: Any, parts: int, workers: Workers) -> tuple[int, float]:
    """How many actors, and the cores that each claims; more than the cluster has is refused."""
    has = ray.cluster_resources()
    cores, devices = float(has.get("CPU", 1.0)), float(has.get("GPU", 0.0))
    gpus = workers.gpus or 0.0
    if workers.count == "auto":
        room = cores / (workers.cpus or 1.0)
        count = max(1, min(int(min(room, devices / gpus) if gpus else room), parts))
    else:
        count = workers.count
    share = min(1.0, cores / count) if workers.cpus is None else workers.cpus
    if count * share > cores or count * gpus > devices:
        raise ValueError(
            f"The cluster has {cores:g} cores and {devices:g} GPUs: too few for {count} workers "
            f"of {share:g} cores and {gpus:g} GPUs each."
        )
    return count, share


def _ray() -> Any:
    """Ray, connected to the running cluster, or else started on this machine."""
    try:
        import ray
    except ImportError as error:
        raise ImportError("The Ray engine needs Ray: pip install 'eblime[ray]'.") from error
    if not ray.is_initialized():
        os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # messages about its own processes
        quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
        try:
            ray.init(address="auto", **quiet)
        except ConnectionError:
            if os.environ.get("RAY_ADDRESS"):  # the user asked for this cluster
                raise
            ray.init(include_dashboard=False, **quiet)
    return ray
