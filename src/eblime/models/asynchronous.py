"""Calls in the background: threads for functions, one event loop for async functions."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any

import numpy as np

from eblime._threads import at_fork

__all__ = ["AsyncModel", "in_thread"]

_LOOPS: dict[int, asyncio.AbstractEventLoop] = {}  # by process: a fork has no thread of its own
_LOCK = threading.Lock()


@dataclass(frozen=True, slots=True, kw_only=True)
class AsyncModel:
    """An `async def` function or method, or an object whose `__call__` is one, as a model.

    All calls of a process run in one event loop in a thread of its own, so that it also works
    inside a running loop, as in a notebook, and a client that the function keeps stays usable.
    """

    function: Callable[[Any], Coroutine[Any, Any, Any]]

    def __call__(self, batch: Any) -> Any:
        """Score a batch: wait for the answer."""
        future = self.submit(batch)
        try:
            return future.result()
        finally:
            future.cancel()  # after Ctrl-C

    def submit(self, batch: Any) -> Future[Any]:
        """Start to score a batch."""
        return asyncio.run_coroutine_threadsafe(self._score(batch), _loop())

    async def _score(self, batch: Any) -> Any:
        """The scores of a batch; a copy, as another call may fill the same array meanwhile."""
        returned = await self.function(batch)
        return returned.copy() if isinstance(returned, np.ndarray) else returned


def in_thread(function: Callable[..., Any], *args: Any) -> Future[Any]:
    """Call a function in a thread of its own, which never keeps the process from ending."""
    future: Future[Any] = Future()
    context = copy_context()

    def run() -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            result = context.run(function, *args)
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)

    threading.Thread(target=run, daemon=True, name="eblime-model-call").start()
    return future


def _loop() -> asyncio.AbstractEventLoop:
    """The event loop of this process, started when it is first needed."""
    with _LOCK:
        loop = _LOOPS.get(os.getpid())
        if loop is None:
            loop = _LOOPS[os.getpid()] = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, daemon=True, name="eblime-async").start()
        return loop


def _reset() -> None:
    """Start with a free lock in a forked child: the thread that held it does not exist there."""
    global _LOCK
    _LOCK = threading.Lock()


at_fork(after_in_child=_reset)
