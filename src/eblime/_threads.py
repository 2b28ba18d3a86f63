"""Cores, memory and threads of linear algebra: one thread is best for small fits."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

_SMALL = 2e9  # multiplications, those of a fit to about 1,000 x 1,000 numbers; takes a second
_LOCK = threading.Lock()
_INSIDE: list[Any] = []  # the limit, once per thread that is inside `few_threads`


@contextmanager
def few_threads(work: float) -> Iterator[None]:
    """Limit BLAS to one thread for fits of at most about 1,000 x 1,000 numbers.

    Threads wait for each other in every small product. On a machine that is busy with other work
    that takes 20 times as long as one thread, on a quiet one they save little. OpenBLAS's idle
    threads also spin after a call and take cores from the model: a booster was half as fast on two
    cores. The limit holds for the whole process: the first thread that enters sets it, the last
    that leaves lifts it. That takes 10 to 30 microseconds, and 2 inside another limit. Without
    threadpoolctl there is no limit.
    """
    if work > _SMALL or _controller() is None:
        yield
        return
    with _LOCK:
        _INSIDE.append(_INSIDE[0] if _INSIDE else _controller().limit(limits=1))
    try:
        yield
    finally:
        with _LOCK:
            limit = _INSIDE.pop()
            if not _INSIDE:
                limit.restore_original_limits()


def at_fork(**functions: Callable[[], object]) -> None:
    """Call functions when this process forks, as `os.register_at_fork`; Windows does not fork."""
    register = getattr(os, "register_at_fork", None)
    if register is not None:
        register(**functions)


at_fork(before=_LOCK.acquire, after_in_parent=_LOCK.release, after_in_child=_LOCK.release)


def available_cores() -> int:
    """Cores that this process may use."""
    allowed = getattr(os, "sched_getaffinity", lambda _: range(os.cpu_count() or 1))
    return len(allowed(0))


def free_memory() -> int | None:
    """Bytes of memory that are available; None if the system does not report it."""
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return 1024 * int(line.split()[1])
    except OSError:
        pass
    return None


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
    """NumPy's and SciPy's linear algebra, which is all that fits use; looked up once."""
    import scipy.linalg  # noqa: F401  # has its own library, which must be loaded to be found

    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:  # methods need NumPy and SciPy alone
        return None
    return ThreadpoolController().select(user_api="blas")
