"""The Ray engine: each worker is an actor; a dead one is replaced like a process of this machine.

The same functions write the parts, so each engine can resume the other's run. Every node must see
the run folder: on a shared file system, or in an object store.
"""

from __future__ import annotations

import logging
import os
import pickle
import sys
from collections.abc import Generator, Sequence
from concurrent.futures import Future
from typing import Any

from eblime._threads import limit_threads
from eblime.batch.local import check_sendable, do_task
from eblime.batch.worker import Job, Worker
from eblime.batch.workers import Finished, Task, Workers, WorkerStartError, supervise

__all__ = ["run_on_ray"]


class _Actor:
    """A worker in a process of Ray."""

    def __init__(self, path: list[str], threads: int) -> None:
        sys.path += [entry for entry in path if entry not in sys.path]
        limit_threads(threads)
        self._threads = threads
        self._worker: Any = None

    def begin(self, packed: bytes) -> Finished:
        """Create the explainer; returns its settings."""
        try:
            self._worker = Worker.start(pickle.loads(packed))
        except BaseException as error:
            text = str(error) or type(error).__name__
            raise WorkerStartError(f"The explainer cannot be created in a worker: {text}") from None
        limit_threads(self._threads)  # for libraries that the model has loaded, too
        return Finished(dict(self._worker.about), 0)

    def do(self, task: Task) -> Finished:
        """Do a task."""
        return do_task(self._worker, task)


class _RayWorker:
    """An actor, seen from the driver."""

    def __init__(self, ray: Any, sent: Any, options: dict[str, float]) -> None:
        self._ray, self._sent, self._options = ray, sent, options
        self._actor: Any = None

    def start(self) -> Future[Finished]:
        """Start the actor; Ray waits until the cluster has room for it."""
        threads = max(1, round(self._options["num_cpus"]))
        # as bytes: an actor must know the path before it can import modules next to the script
        made = self._ray.remote(_Actor).options(**self._options)
        self._actor = made.remote(list(sys.path), threads)
        future: Future[Finished] = self._actor.begin.remote(self._sent).future()
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
    check_sendable(job.explainer)
    ray = _ray()
    count, share = _room(ray, len(parts), workers)
    options = {"num_cpus": share, "num_gpus": workers.gpus or 0}
    sent = ray.put(ray.cloudpickle.dumps(job))
    try:
        if not parts:
            worker = _RayWorker(ray, sent, options)
            worker.start().result()
            worker.kill()
        yield from supervise(job, parts, lambda: _RayWorker(ray, sent, options), count)
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
