"""Threads of linear algebra: one is best for small problems that alternate with a model's own."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

__all__ = ["available_cores", "few_threads", "limit_threads"]

_SMALL = 2e8  # multiplications below which one thread is as fast


_LOCK = threading.RLock()
_INSIDE: dict[object, Any] = {}  # the limit that is set, for each of our threads that asked for it


@contextmanager
def few_threads(work: float) -> Iterator[None]:
    """One thread of BLAS where the work is small.

    After a call OpenBLAS's idle threads spin for a while, and take the cores from the next call of
    a model that brings threads of its own: on two cores a booster answered half as fast. The limit
    holds for the whole process: the first thread that asks sets it, the last that leaves lifts it.
    """
    if work > _SMALL:
        yield
        return
    token = object()
    with _LOCK:
        limit = next(iter(_INSIDE.values()), None)
        if limit is None:
            limit = _controller().limit(limits=1, user_api="blas")
        _INSIDE[token] = limit
    try:
        yield
    finally:
        with _LOCK:
            # absent in a child process that was forked in the meantime, which has no limit any more
            limit = _INSIDE.pop(token, None)
            if limit is not None and not _INSIDE:
                limit.restore_original_limits()


def _begin_child() -> None:
    """In a forked child the other threads are gone: lift their limit, and take a free lock."""
    global _LOCK
    _LOCK = threading.RLock()
    limit = next(iter(_INSIDE.values()), None)
    _INSIDE.clear()
    if limit is not None:
        limit.restore_original_limits()


if hasattr(os, "register_at_fork"):
    # nobody sets or lifts a limit while a process forks
    os.register_at_fork(
        before=lambda: _LOCK.acquire(),
        after_in_parent=lambda: _LOCK.release(),
        after_in_child=_begin_child,
    )


def available_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def limit_threads(count: int = 1) -> None:
    """So many threads of linear algebra, torch and onnxruntime here: processes share the cores.

    What is loaded later reads the environment; what is loaded already is told, once NumPy's and
    SciPy's libraries are there.
    """
    for name in ("OMP_NUM_THREADS", "EBLIME_THREADS"):
        os.environ[name] = str(count)
    import scipy.linalg  # noqa: F401
    from threadpoolctl import threadpool_limits

    threadpool_limits(count)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(count)


@lru_cache(maxsize=1)
def _controller() -> Any:
    """The libraries of linear algebra in this process, looked up once."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
