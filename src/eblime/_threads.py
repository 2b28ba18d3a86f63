"""Threads of linear algebra: one is best for small problems that alternate with a model's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

__all__ = ["few_threads"]

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


@lru_cache(maxsize=1)
def _controller() -> Any:
    """The libraries of linear algebra in this process, looked up once."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
