"""The Ray engine: parts stream through a pool of actors, each with a worker process of its own.

Ray Data schedules and replaces actors; each actor supervises its worker as the local engine does,
and the same functions write the parts, so that either engine can go on with the other's run. The
folder must be one that every node sees: a shared file system, or an object store.
"""

from __future__ import annotations

import atexit
import inspect
import logging
import os
import pickle
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from eblime.batch.local import Workers, check_travels
from eblime.batch.pool import TRIES, Pool
from eblime.batch.work import Job, Rules, check_finished

__all__ = ["check_on_ray", "run_on_ray"]

_ROOM = 0.8  # of the cores: a pool that claims them all leaves none to read with, and hangs


class _Actor:
    """Does parts in a worker process of its own, so that a crash or a hang is not the actor's."""

    def __init__(self, sent: Any, rules: Rules, path: list[str], threads: int) -> None:
        import ray

        sys.path += [entry for entry in path if entry not in sys.path]
        self._pool = Pool(ray.get(sent), rules, 1, threads)
        atexit.register(self._pool.close)

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, list[Any]]:
        """Do a part; returns how many of its inputs failed, or why it could not be done."""
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
) -> Iterator[tuple[int, int]]:
    """Do parts on a Ray cluster, the one that is there or one on this machine."""
    if not parts:
        return
    check_travels(job.explainer)
    ray = _ray()
    count, share = _room(ray, len(parts), workers, cpus, gpus)
    # as bytes: modules beside the user's script are found only once an actor knows the path
    sent = ray.put(ray.cloudpickle.dumps(job))
    given = ray.data.from_items([{"part": part} for part in parts], override_num_blocks=len(parts))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that later versions do not take
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
    """An actor that is killed is replaced, and its part is tried a few times.

    Versions of Ray without such options try for ever.
    """
    takes = inspect.signature(dataset.map_batches).parameters
    wanted = {"max_restarts": TRIES * parts, "max_task_retries": TRIES}
    free = any(entry.kind is entry.VAR_KEYWORD for entry in takes.values())
    return {name: value for name, value in wanted.items() if free or name in takes}


def _room(
    ray: Any, parts: int, workers: Workers, cpus: float | None, gpus: float | None
) -> tuple[int, float]:
    """How many actors, and the cores that each claims; refused where they would wait for ever."""
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
            f"of {share:g} cores and {gpus or 0:g} GPUs, and a little for Ray itself."
        )
    return count, share


def _ray() -> Any:
    """Ray, begun: on the cluster that is there, else on this machine."""
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise ImportError("The Ray engine needs Ray: pip install 'eblime[ray]'.") from error
    ray.data.DataContext.get_current().enable_progress_bars = False  # the run has its own
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)  # what fails is raised
    if not ray.is_initialized():
        os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # its own house-keeping
        quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
        try:
            ray.init(address="auto", **quiet)
        except ConnectionError:
            if os.environ.get("RAY_ADDRESS"):  # the user means a cluster, and no other
                raise
            ray.init(include_dashboard=False, **quiet)
    return ray


def check_on_ray(job: Job, cpus: float | None = None, gpus: float | None = None) -> None:
    """Do what `check_finished` does on the cluster, whose nodes can load the model."""
    check_travels(job.explainer)
    ray = _ray()
    sent = ray.put(ray.cloudpickle.dumps(job))
    task = ray.remote(num_cpus=0 if cpus is None else cpus, num_gpus=gpus or 0)(_checked)
    problem = ray.get(task.remote([sent], list(sys.path)))
    if problem:
        raise ValueError(problem)


def _checked(sent: Sequence[Any], path: list[str]) -> str:
    """Why an explainer is not the one of a finished run, or nothing."""
    import ray

    sys.path += [entry for entry in path if entry not in sys.path]
    try:
        check_finished(pickle.loads(ray.get(sent[0])))
    except Exception as error:
        return str(error) or type(error).__name__
    return ""
