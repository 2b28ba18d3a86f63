"""Threads of linear algebra: one is best for small problems that alternate with a model's own."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

__all__ = ["few_threads", "one_thread"]

_SMALL = 2e8  # multiplications below which one thread is as fast


@contextmanager
def few_threads(work: float) -> Iterator[None]:
    """One thread of BLAS where the work is small.

    After a call OpenBLAS's idle threads spin for a while, and take the cores from the next call of
    a model that brings threads of its own: on two cores a booster answered half as fast.
    """
    if work > _SMALL:
        yield
        return
    with _controller().limit(limits=1, user_api="blas"):
        yield


def one_thread() -> None:
    """One thread of linear algebra and of torch in this process: several processes share the cores.

    Only what is loaded can be limited, so that NumPy's and SciPy's libraries are loaded first.
    """
    os.environ["OMP_NUM_THREADS"] = "1"  # read by what is loaded later, such as torch
    import scipy.linalg  # noqa: F401
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(1)


@lru_cache(maxsize=1)
def _controller() -> Any:
    """The libraries of linear algebra in this process, looked up once."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
