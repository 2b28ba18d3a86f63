"""One lock per torch module, shared by every model that wraps it."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from weakref import WeakKeyDictionary

__all__ = ["locked"]

_guard = threading.Lock()
_locks: WeakKeyDictionary[Any, threading.RLock] = WeakKeyDictionary()


@contextmanager
def locked(module: Any) -> Iterator[None]:
    """Hold the locks of a module and its submodules: one thread at a time may change them.

    Two networks that share a submodule, such as a backbone, exclude each other too. The locks are
    taken in the order of the submodules' ids, so two threads cannot wait for each other. A thread
    may enter twice.
    """
    parts = sorted(module.modules(), key=id)
    with _guard:
        locks = [_locks.setdefault(part, threading.RLock()) for part in parts]
    with ExitStack() as held:
        for lock in locks:
            held.enter_context(lock)
        yield


def _reset() -> None:
    """Start without locks in a forked child: the threads that held them do not exist there."""
    global _guard, _locks
    _guard, _locks = threading.Lock(), WeakKeyDictionary()


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=_reset)
