"""The local engine: the calling process, or worker processes that are replaced if they fail."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Generator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Literal

from eblime._threads import available_cores
from eblime.batch.driver import read_marker, run_in_driver
from eblime.batch.job import Job, on_gpu
from eblime.batch.pool import Pool, WorkerStartError
from eblime.explainers.base import BaseExplainer

__all__ = ["Workers", "check_sendable", "run_local"]

Workers = int | Literal["auto"]

_MEMORY = 1 << 30  # bytes that a worker with its model is expected to need
_INSTEAD = "pass a function of a module that creates it"


def run_local(job: Job, parts: Sequence[int], workers: Workers) -> Generator[tuple[int, int]]:
    """Do parts; yields (part, number of failed inputs) after each."""
    if not parts:
        return
    if workers == "auto":
        workers = _worker_count(job.explainer, len(parts))
    if workers == 1 and job.timeout is None:
        yield from _in_driver(job, parts)
    else:
        yield from _in_workers(job, parts, workers)


def _in_workers(job: Job, parts: Sequence[int], workers: int) -> Generator[tuple[int, int]]:
    """Do parts in worker processes."""
    packed = _packed(job)
    threads = max(1, available_cores() // workers)
    with closing(Pool(packed, job.rules, workers, threads)) as pool:
        yield from pool.run(parts)


def _in_driver(job: Job, parts: Sequence[int]) -> Generator[tuple[int, int]]:
    """Do parts in this process, except one on which it crashed before: that goes to a worker.

    If the explainer cannot be sent to a worker, this process does that part input by input.
    """
    crashed = read_marker(job.folder)
    if crashed is None or crashed.part not in parts:
        yield from run_in_driver(job, parts)
        return
    try:
        yield from _in_workers(job, [crashed.part], 1)
    except (TypeError, WorkerStartError):
        yield from run_in_driver(job, parts, crashed)
    else:
        yield from run_in_driver(job, [part for part in parts if part != crashed.part])


def _worker_count(explainer: Any, parts: int) -> int:
    """How many processes cores, memory and parts allow; one if the model runs on a GPU."""
    if on_gpu(explainer) or _may_use_gpu(explainer):
        return 1
    return max(1, min(available_cores(), _free_memory() // _MEMORY, parts))


def check_sendable(explainer: Any) -> None:
    """Refuse to send a network on a GPU to other processes."""
    if on_gpu(explainer):
        raise TypeError(
            "`explainer` must not hold a network on a GPU if it is sent to other processes; "
            f"{_INSTEAD}."
        )


def _packed(job: Job) -> bytes:
    """A run as bytes, for worker processes."""
    check_sendable(job.explainer)
    try:
        return pickle.dumps(job)
    except Exception as error:
        raise TypeError(
            "`explainer` must be picklable with several workers or a timeout; "
            f"{_INSTEAD} ({type(error).__name__}: {error})."
        ) from error


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
