"""Limits on threads of linear algebra: one is best for small fits between model calls."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

__all__ = ["at_fork", "available_cores", "few_threads", "limit_threads"]

_SMALL = 2e8  # multiplications below which one thread is as fast
_LOCK = threading.RLock()
_INSIDE: dict[object, Any] = {}  # the limit, once per thread that is inside `few_threads`


@contextmanager
def few_threads(work: float) -> Iterator[None]:
    """Limit BLAS to one thread for small problems.

    OpenBLAS's idle threads spin for a while after a call and take cores from the model, which may
    have threads of its own: on two cores a booster was half as fast. The limit holds for the whole
    process: the first thread that enters sets it, the last that leaves lifts it.
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
            # absent in a process that was forked in the meantime: it has no limit
            limit = _INSIDE.pop(token, None)
            if limit is not None and not _INSIDE:
                limit.restore_original_limits()


def _begin_child() -> None:
    """In a forked process the other threads are gone: lift their limit and use a new lock."""
    global _LOCK
    _LOCK = threading.RLock()
    limit = next(iter(_INSIDE.values()), None)
    _INSIDE.clear()
    if limit is not None:
        limit.restore_original_limits()


def at_fork(**functions: Callable[[], object]) -> None:
    """Call functions when this process forks, as `os.register_at_fork`; Windows does not fork."""
    register = getattr(os, "register_at_fork", None)
    if register is not None:
        register(**functions)


at_fork(  # no limit is set or lifted while a process forks
    before=lambda: _LOCK.acquire(),
    after_in_parent=lambda: _LOCK.release(),
    after_in_child=_begin_child,
)


def available_cores() -> int:
    """Cores that this process may use."""
    allowed = getattr(os, "sched_getaffinity", lambda process: range(os.cpu_count() or 1))
    return len(allowed(0))


def limit_threads(count: int = 1) -> None:
    """Limit the threads of linear algebra, torch and onnxruntime in this process.

    Libraries that are loaded later read the environment. Those that are loaded already are limited
    directly, so NumPy's and SciPy's are imported first.
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
