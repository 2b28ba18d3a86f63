"""The Ray engine: parts stream through a pool of actors, each with its own worker process.

Ray Data schedules and replaces actors. Each actor supervises its worker like the local engine, and
the same functions write the parts, so each engine can resume the other's run. Every node must see
the run folder: on a shared file system, or in an object store.
"""

from __future__ import annotations

import atexit
import inspect
import logging
import os
import pickle
import sys
import warnings
from collections.abc import Generator, Mapping, Sequence
from typing import Any

from eblime.batch.job import Job, Rules
from eblime.batch.local import Workers, check_sendable
from eblime.batch.pool import TRIES, Pool
from eblime.batch.worker import check_finished

__all__ = ["check_on_ray", "run_on_ray"]

_ROOM = 0.8  # of the cores: a pool that claims all of them leaves none for reading, and hangs


class _Actor:
    """Does parts in its own worker process, so that a crash or a hang does not end the actor."""

    def __init__(self, sent: Any, rules: Rules, path: list[str], threads: int) -> None:
        import ray

        sys.path += [entry for entry in path if entry not in sys.path]
        self._pool = Pool(ray.get(sent), rules, 1, threads)
        atexit.register(self._pool.close)

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, list[Any]]:
        """Do a part; returns how many of its inputs failed, or an error message."""
        part = int(batch["part"][0])
        try:
            [(_, failed)] = self._pool.run([part])
        except Exception as error:
            return {"part": [part], "failed": [0], "error": [f"{type(error).__name__}: {error}"]}
        return {"part": [part], "failed": [failed], "error": [""]}


def run_on_ray(
    job: Job,
    parts: Sequence[int],
    workers: Workers,
    cpus: float | None = None,
    gpus: float | None = None,
) -> Generator[tuple[int, int]]:
    """Do parts on the running Ray cluster, or on one started on this machine."""
    if not parts:
        return
    check_sendable(job.explainer)
    ray = _ray()
    count, share = _room(ray, len(parts), workers, cpus, gpus)
    # as bytes: an actor must know the path before it can import modules next to the script
    sent = ray.put(ray.cloudpickle.dumps(job))
    given = ray.data.from_items([{"part": part} for part in parts], override_num_blocks=len(parts))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # options that later versions rename
        done = given.map_batches(
            _Actor,
            fn_constructor_args=(sent, job.rules, list(sys.path), max(1, round(share))),
            batch_size=1,
            compute=ray.data.ActorPoolStrategy(size=count),
            num_cpus=share,
            num_gpus=gpus,
            **_retries(given, len(parts)),
        )
    try:
        for row in done.iter_rows():
            if row["error"]:
                raise RuntimeError(f"{row['error']} (Part {row['part']}; the run can be resumed.)")
            yield int(row["part"]), int(row["failed"])
    except ray.exceptions.RayError as error:
        raise RuntimeError(f"Ray failed; the run can be resumed. {error}") from error


def _retries(dataset: Any, parts: int) -> dict[str, int]:
    """Options that replace a killed actor, and try its part a few times.

    Versions of Ray without these options retry without a limit.
    """
    takes = inspect.signature(dataset.map_batches).parameters
    wanted = {"max_restarts": TRIES * parts, "max_task_retries": TRIES}
    free = any(entry.kind is entry.VAR_KEYWORD for entry in takes.values())
    return {name: value for name, value in wanted.items() if free or name in takes}


def _room(
    ray: Any, parts: int, workers: Workers, cpus: float | None, gpus: float | None
) -> tuple[int, float]:
    """How many actors, and the cores that each claims; more than the cluster has is refused."""
    has = ray.cluster_resources()
    cores, devices = float(has.get("CPU", 1.0)), float(has.get("GPU", 0.0))
    if workers == "auto":
        room = cores if cpus is None else max(cores - 0.2, _ROOM * cores) / (cpus or 1.0)
        count = max(1, min(int(min(room, devices / gpus) if gpus else room), parts))
    else:
        count = workers
    share = min(1.0, _ROOM * cores / count) if cpus is None else cpus
    if count * share > cores - 0.1 or count * (gpus or 0.0) > devices:
        raise ValueError(
            f"The cluster has {cores:g} cores and {devices:g} GPUs: too few for {count} workers "
            f"of {share:g} cores and {gpus or 0:g} GPUs each, besides a little for Ray itself."
        )
    return count, share


def _ray() -> Any:
    """Ray, connected to the running cluster, or else started on this machine."""
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise ImportError("The Ray engine needs Ray: pip install 'eblime[ray]'.") from error
    ray.data.DataContext.get_current().enable_progress_bars = False  # the run has its own bar
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)  # failures are raised
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


def check_on_ray(job: Job, cpus: float | None = None, gpus: float | None = None) -> None:
    """Call `check_finished` on the cluster, whose nodes can load the model."""
    check_sendable(job.explainer)
    ray = _ray()
    sent = ray.put(ray.cloudpickle.dumps(job))
    task = ray.remote(num_cpus=0 if cpus is None else cpus, num_gpus=gpus or 0)(_checked)
    problem = ray.get(task.remote([sent], list(sys.path)))
    if problem:
        raise ValueError(problem)


def _checked(sent: Sequence[Any], path: list[str]) -> str:
    """Why an explainer is not the one of a finished run; empty if it is."""
    import ray

    sys.path += [entry for entry in path if entry not in sys.path]
    try:
        check_finished(pickle.loads(ray.get(sent[0])))
    except Exception as error:
        return str(error) or type(error).__name__
    return ""
