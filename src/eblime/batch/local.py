"""The local engine: this process, or worker processes that are replaced where they fail."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Literal

from eblime._threads import available_cores
from eblime.batch.here import read_marker, run_here
from eblime.batch.pool import Pool, WorkerStartError
from eblime.batch.work import Job, on_gpu

__all__ = ["Workers", "check_travels", "run_local"]

Workers = int | Literal["auto"]

_MEMORY = 1 << 30  # bytes that a process with a model of its own is taken to need
_WAY_OUT = "give a function of a module that makes it"


def run_local(job: Job, parts: Sequence[int], workers: Workers) -> Iterator[tuple[int, int]]:
    """Do parts; yields (part, number of failed inputs) as each is done."""
    if not parts:
        return
    if workers == "auto":
        workers = _sensible(job.explainer, len(parts))
    if workers == 1 and job.timeout is None:
        yield from _in_driver(job, parts)
    else:
        yield from _in_workers(job, parts, workers)


def _in_workers(job: Job, parts: Sequence[int], workers: int) -> Iterator[tuple[int, int]]:
    """Do parts in worker processes."""
    packed = _packed(job)
    threads = max(1, available_cores() // workers)
    with closing(Pool(packed, job.rules, workers, threads)) as pool:
        yield from pool.run(parts)


def _in_driver(job: Job, parts: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Do parts in this process, but for one that it died on before: that is for a worker.

    Where no worker can have the explainer, that part is done here too, input by input.
    """
    left = read_marker(job.folder)
    if left is None or left.part not in parts:
        yield from run_here(job, parts)
        return
    try:
        yield from _in_workers(job, [left.part], 1)
    except (TypeError, WorkerStartError):
        yield from run_here(job, parts, left)
    else:
        yield from run_here(job, [part for part in parts if part != left.part])


def _sensible(explainer: Any, parts: int) -> int:
    """As many processes as cores, memory and parts have room for; one where a GPU does the work."""
    if on_gpu(explainer) or _gpu_here(explainer):
        return 1
    return max(1, min(available_cores(), _free_memory() // _MEMORY, parts))


def check_travels(explainer: Any) -> None:
    """Refuse to send a network from a GPU to other processes."""
    if on_gpu(explainer):
        raise TypeError(f"`explainer` must not carry a network from a GPU to others; {_WAY_OUT}.")


def _packed(job: Job) -> bytes:
    """A run as it is sent to worker processes."""
    check_travels(job.explainer)
    try:
        return pickle.dumps(job)
    except Exception as error:
        raise TypeError(
            "`explainer` must be picklable where there are several workers or a timeout; "
            f"{_WAY_OUT} ({type(error).__name__}: {error})."
        ) from error


def _gpu_here(explainer: Any) -> bool:
    """Whether a function that makes an explainer may put it on a GPU: nobody knows but torch."""
    torch = sys.modules.get("torch")
    made_later = not hasattr(explainer, "n_masks")
    return torch is not None and made_later and bool(torch.cuda.is_available())


def _free_memory() -> int:
    """Bytes of memory that can be had, as far as the system tells."""
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return 1024 * int(line.split()[1])
    except OSError:
        pass
    return 8 << 30  # a guess
