"""Calls in the background: threads for functions, one event loop for async functions."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from eblime._threads import at_fork

T = TypeVar("T")
_loop: asyncio.AbstractEventLoop | None = None
_lock = threading.Lock()


@dataclass(frozen=True, slots=True, kw_only=True)
class AsyncModel:
    """An `async def` function or method, or an object whose `__call__` is one, as a model.

    All calls of a process run in one event loop in a thread of its own, so that it also works
    inside a running loop, as in a notebook, and a client that the function keeps stays usable.
    """

    function: Callable[[Any], Coroutine[object, object, object]]

    def __call__(self, batch: object) -> object:
        """Score a batch: wait for the answer."""
        return wait_for(self.submit(batch))

    def submit(self, batch: object) -> Future[object]:
        """Start to score a batch."""
        return asyncio.run_coroutine_threadsafe(self._score(batch), _running_loop())

    async def _score(self, batch: object) -> object:
        """The scores of a batch; a copy, as another call may fill the same array meanwhile."""
        returned = await self.function(batch)
        return returned.copy() if isinstance(returned, np.ndarray) else returned


def awaited(returned: Any) -> Any:
    """What a function returned; if that is a coroutine, what it returns in the end."""
    if not inspect.iscoroutine(returned):
        return returned
    return wait_for(asyncio.run_coroutine_threadsafe(returned, _running_loop()))


def in_thread(function: Callable[..., T], *args: object) -> Future[T]:
    """Call a function in a thread of its own, which never keeps the process from ending."""
    future: Future[T] = Future()
    context = copy_context()

    def run() -> None:
        try:
            future.set_result(context.run(function, *args))
        except BaseException as error:
            future.set_exception(error)

    future.set_running_or_notify_cancel()  # so that it is never cancelled
    threading.Thread(target=run, daemon=True, name="eblime-model-call").start()
    return future


def wait_for(future: Future[T], seconds: float = threading.TIMEOUT_MAX) -> T:
    """What a call in the background returns; a `TimeoutError` after so many seconds."""
    try:
        return future.result(min(seconds, threading.TIMEOUT_MAX))
    except NotYet:
        if future.done():  # it answered just now, or raised a TimeoutError of its own
            return future.result()
        raise TimeoutError(f"no answer within the timeout of {seconds:g} s") from None
    finally:
        future.cancel()  # also after Ctrl-C


def _running_loop() -> asyncio.AbstractEventLoop:
    global _loop
    with _lock:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, daemon=True, name="eblime-async").start()
        return _loop


def _reset() -> None:
    """Start anew in a forked child, which has no thread but the one that forked."""
    global _lock, _loop
    _lock, _loop = threading.Lock(), None


at_fork(after_in_child=_reset)
