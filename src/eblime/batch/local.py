"""The local engine: processes that hold the explainer, and are replaced where one is killed."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

from eblime._threads import one_thread
from eblime.batch.inputs import Inputs
from eblime.batch.work import do_part, made_explainer

__all__ = ["run_local"]

_TRIES = 3
_HELD: dict[str, Any] = {}  # in a worker process: its explainer and inputs


def run_local(
    explainer: Any,
    inputs: Inputs,
    settings: Mapping[str, Any],
    parts: Sequence[int],
    folder: Path,
    workers: int,
) -> Iterator[tuple[int, int]]:
    """Do parts, and tell of each (part, inputs that failed) as it is done."""
    if workers == 1:
        made = made_explainer(explainer)
        for part in parts:
            yield part, do_part(made, inputs, settings, part, folder)
        return
    _check_travels(explainer)
    todo, tries = list(parts), dict.fromkeys(parts, 0)
    while todo:
        context = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(
            min(workers, len(todo)),
            mp_context=context,
            initializer=_hold,
            initargs=(explainer, inputs, dict(settings), str(folder)),
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
                if tries[part] >= _TRIES:
                    raise RuntimeError(
                        f"Part {part} ended its process {_TRIES} times: a model that runs out of "
                        "memory, or crashes? The run can be resumed."
                    ) from error
            todo = sorted([*waiting.values(), *todo])
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _hold(explainer: Any, inputs: Inputs, settings: Mapping[str, Any], folder: str) -> None:
    """Begin a worker: one thread, the explainer made once, no life after the driver."""
    threading.Thread(target=_follow, daemon=True).start()
    os.environ["EBLIME_THREADS"] = "1"  # for models that bring threads of their own
    _HELD.update(inputs=inputs, settings=settings, folder=Path(folder))
    try:
        _HELD["explainer"] = made_explainer(explainer)
    except Exception as error:  # told by the first part: here it would only break the pool
        _HELD["error"] = error
    one_thread()


def _follow() -> None:
    """End with the driver, also where that was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _check_travels(explainer: Any) -> None:
    """Refuse what cannot be sent to other processes, and say what can."""
    try:
        pickle.dumps(explainer)
    except Exception as error:
        raise TypeError(
            "`explainer` must be picklable where there are several workers; give a function of a "
            f"module that makes it ({type(error).__name__}: {error})."
        ) from error


def _do(part: int) -> int:
    """Do a part in a worker."""
    held = _HELD
    if "error" in held:
        raise RuntimeError(f"The explainer cannot be made in a worker: {held['error']}")
    return do_part(held["explainer"], held["inputs"], held["settings"], part, held["folder"])
