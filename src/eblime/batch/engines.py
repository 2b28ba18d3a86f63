"""Engines, by name, and the parts of a run that one of them still has to do."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial

from eblime._checks import check_choice
from eblime.batch.driver import remove_marker
from eblime.batch.folder import (
    done_parts,
    missing_parts,
    part_count,
    part_numbers,
    remove_leftovers,
)
from eblime.batch.job import Job
from eblime.batch.local import Workers, run_local
from eblime.batch.worker import check_finished

__all__ = ["Engine", "do_missing_parts", "find_engine"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """Where parts are done."""

    # does parts; yields (part, number of failed inputs) after each
    run: Callable[[Job, Sequence[int], Workers], Generator[tuple[int, int]]]
    check: Callable[[Job], None]  # refuses a model that is not the one of a finished run


def find_engine(name: str, cpus: float | None, gpus: float | None) -> Engine:
    """The engine of that name; `cpus` and `gpus` are what a worker claims on Ray."""
    check_choice("engine", name, ("local", "ray"))
    if name == "local":
        if cpus is not None or gpus is not None:
            raise ValueError("`cpus_per_worker` and `gpus_per_worker` are for engine='ray'.")
        return Engine(run=run_local, check=check_finished)
    from eblime.batch.on_ray import check_on_ray, run_on_ray

    return Engine(
        run=partial(run_on_ray, cpus=cpus, gpus=gpus),
        check=partial(check_on_ray, cpus=cpus, gpus=gpus),
    )


def do_missing_parts(engine: Engine, job: Job, workers: Workers) -> Generator[tuple[int, int]]:
    """Do unfinished parts; yields how many inputs are done and how many of them failed.

    If all parts are finished, only the model is checked.
    """
    parts = range(part_count(job.settings))
    done = done_parts(job.folder, job.run, len(parts))
    failed = sum(done.values())
    finished = sum(len(part_numbers(job.settings, part)) for part in done)
    yield finished, failed
    todo = [part for part in parts if part not in done]
    if not todo:
        engine.check(job)
    try:
        with closing(engine.run(job, todo, workers)) as results:
            for part, failures in results:
                failed += failures
                finished += len(part_numbers(job.settings, part))
                yield finished, failed
    finally:  # a worker that was killed may have left a temporary file
        remove_leftovers(job.folder)
    missing = missing_parts(job.folder, parts)
    if missing:
        raise RuntimeError(f"Parts {missing[:5]} are missing; call again to do them.")
    remove_marker(job.folder)
