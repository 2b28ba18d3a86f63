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


_LOCK = threading.Lock()
_INSIDE: list[Any] = []  # one entry for each thread of ours that asked for one thread of BLAS


@contextmanager
def few_threads(work: float) -> Iterator[None]:
    """One thread of BLAS where the work is small.

    After a call OpenBLAS's idle threads spin for a while, and take the cores from the next call of
    a model that brings threads of its own: on two cores a booster answered half as fast. The limit
    is the whole process's: the first who asks sets it, and the last who leaves takes it back.
    """
    if work > _SMALL:
        yield
        return
    with _LOCK:
        _INSIDE.append(_INSIDE[0] if _INSIDE else _controller().limit(limits=1, user_api="blas"))
    try:
        yield
    finally:
        with _LOCK:
            limit = _INSIDE.pop()
            if not _INSIDE:
                limit.restore_original_limits()


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
