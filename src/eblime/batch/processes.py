"""Where parts are done: in the calling process, in worker processes of pebble, or in actors of Ray.

The same functions write the parts everywhere, so each engine can resume the run of the other. With
Ray, every node must see the run folder: on a shared file system, or in an object store.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import pickle
import signal
import sys
import threading
from collections.abc import Generator, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from eblime._threads import available_cores, free_memory, limit_threads
from eblime.batch.worker import Job, Worker, on_gpu, with_python_handler
from eblime.batch.workers import Crew, Finished, Task, Workers, WorkerStartError
from eblime.explainers.base import BaseExplainer

_MEMORY = 1 << 30  # bytes that a worker with its model is expected to need
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
    yield from Crew(job, parts, lambda: _Process(packed, threads), count).run()


def _check_sendable(explainer: Any) -> None:
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
        self._pool: Any = ProcessPool(1, initializer=_exit_with_parent, context=context)
        self._sent = packed, threads
        self._process: Any = None

    def start(self) -> Future[Finished]:
        """Start the process and create its explainer."""
        others = {*multiprocessing.active_children()}
        try:
            future: Future[Finished] = self._pool.schedule(_begin, args=self._sent)
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


class _RayWorker:
    """An actor, seen from the driver."""

    def __init__(self, ray: Any, sent: Any, options: dict[str, float]) -> None:
        self._ray, self._sent, self._options = ray, sent, options
        self._actor: Any = None

    def start(self) -> Future[Finished]:
        """Start the actor; Ray waits until the cluster has room for it."""
        self._actor = self._ray.remote(_Actor).options(**self._options).remote(list(sys.path))
        threads = max(1, round(self._options["num_cpus"]))
        future: Future[Finished] = self._actor.begin.remote(self._sent, threads).future()
        return future

    def submit(self, task: Task) -> Future[Finished]:
        """Give it a task."""
        future: Future[Finished] = self._actor.do.remote(task).future()
        return future

    def ending(self, error: BaseException | None) -> str | None:
        """Empty if the actor died, for a reason that Ray does not tell; None if it lives."""
        return "" if isinstance(error, self._ray.exceptions.RayActorError) else None

    def kill(self) -> None:
        """End the actor at once."""
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
        yield from Crew(job, parts, lambda: _RayWorker(ray, sent, options), count).run()
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
