"""The local engine: processes that hold the explainer, and are replaced where one is killed."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any, Literal

from eblime._threads import available_cores, limit_threads
from eblime.batch.work import Job, Worker, on_gpu

__all__ = ["TRIES", "Workers", "check_travels", "run_local"]

Workers = int | Literal["auto"]

TRIES = 3  # of a part that ends its process
_MEMORY = 1 << 30  # bytes that a process with a model of its own is taken to need
_WAY_OUT = "give a function of a module that makes it"
_HELD: dict[str, Any] = {}  # in a worker process: the worker, or why there is none


def run_local(job: Job, parts: Sequence[int], workers: Workers) -> Iterator[tuple[int, int]]:
    """Do parts, and tell of each (part, inputs that failed) as it is done."""
    if not parts:
        return
    if workers == "auto":
        workers = _sensible(job.explainer, len(parts))
    if workers == 1:
        worker = Worker.begin(job)
        for part in parts:
            yield part, worker.do(part)
        return
    check_travels(job.explainer)
    with tempfile.TemporaryDirectory() as place:
        # in a file: what is sent through a pipe holds the driver up until its reader has started
        sent = Path(place) / "sent"
        sent.write_bytes(_packed(job))
        yield from _by_processes(str(sent), parts, workers)


def _by_processes(sent: str, parts: Sequence[int], workers: int) -> Iterator[tuple[int, int]]:
    """Do parts in processes, and in new ones where these are killed."""
    threads = max(1, available_cores() // workers)
    todo, tries = list(parts), dict.fromkeys(parts, 0)
    while todo:
        context = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(
            min(workers, len(todo)),
            mp_context=context,
            initializer=_hold,
            initargs=(sent, threads),
        )
        waiting: dict[Future[int], int] = {}
        try:
            # few are handed over at a time: a pool that breaks loses what it holds
            while todo or waiting:
                while todo and len(waiting) < 2 * workers:
                    future = pool.submit(_do, todo[0])  # which may raise: the part stays
                    waiting[future] = todo.pop(0)
                for done in wait(waiting, return_when=FIRST_COMPLETED).done:
                    failed = done.result()
                    yield waiting.pop(done), failed
        except BrokenProcessPool as error:
            for part in waiting.values():
                tries[part] += 1
                if tries[part] >= TRIES:
                    raise RuntimeError(
                        f"Part {part}, or one beside it, ended its process {TRIES} times. Is the "
                        'call of a script under `if __name__ == "__main__":`? Does the model run '
                        "out of memory, or crash? The run can be resumed."
                    ) from error
            todo = sorted([*waiting.values(), *todo])
        finally:
            _end(pool)


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
    """A run as it is sent to other processes; what cannot be is refused with a way out."""
    try:
        return pickle.dumps(job)
    except Exception as error:
        raise TypeError(
            "`explainer` must be picklable where there are several workers; "
            f"{_WAY_OUT} ({type(error).__name__}: {error})."
        ) from error


def _hold(sent: str, threads: int) -> None:
    """Begin a worker: its share of threads, the explainer made once, no life after the driver."""
    threading.Thread(target=_follow, daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the driver's affair
    limit_threads(threads)
    try:
        _HELD["worker"] = Worker.begin(pickle.loads(Path(sent).read_bytes()))
    except Exception as error:  # told by the first part: here it would only break the pool
        _HELD["error"] = error
    limit_threads(threads)  # what came with the model, too


def _follow() -> None:
    """End with the driver, also where that was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _do(part: int) -> int:
    """Do a part in a worker."""
    if "error" in _HELD:
        raise RuntimeError(f"The explainer cannot be made in a worker: {_HELD['error']}")
    worker: Worker = _HELD["worker"]
    return worker.do(part)


def _end(pool: ProcessPoolExecutor) -> None:
    """End the workers at once, whatever they do: a part that is half done is no part."""
    for process in list((getattr(pool, "_processes", None) or {}).values()):
        process.kill()
    pool.shutdown(wait=False, cancel_futures=True)


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
