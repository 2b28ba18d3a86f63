"""How a model is called: repeated, limited in time and number, several at once, remembered."""

from __future__ import annotations

import copy
import os
import random
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from dataclasses import dataclass, fields, replace
from threading import TIMEOUT_MAX
from typing import Any

from eblime._checks import check_count, check_number
from eblime.engine.cache import AnswerCache, as_cache
from eblime.models.background import AsyncModel, in_thread
from eblime.protocols import Model

__all__ = ["Caller", "Calls", "Retry", "as_retry", "copied", "is_out_of_memory"]

CacheLike = str | os.PathLike[str] | AnswerCache | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """Repeat a model call that failed, after a pause that grows from one try to the next.

    Parameters
    ----------
    times
        How often a call is repeated, after the first try.
    wait
        Seconds before the first repetition.
    factor
        Each further pause is longer by this factor.
    jitter
        The largest random fraction that is added to a pause, so that several clients do not come
        back at once.
    longest
        No pause is longer than this many seconds.
    on
        Errors that are worth another try; a call that took longer than `timeout` is a
        `TimeoutError`. Running out of memory is never repeated.

    Examples
    --------
    >>> import eblime
    >>> [eblime.Retry(jitter=0).pause(failures) for failures in (1, 2, 3)]
    [0.5, 1.0, 2.0]
    """

    times: int = 3
    wait: float = 0.5
    factor: float = 2.0
    jitter: float = 0.1
    longest: float = 60.0
    on: tuple[type[Exception], ...] | type[Exception] = Exception

    def __post_init__(self) -> None:
        """Refuse settings that cannot work."""
        check_count("times", self.times)
        for name in ("wait", "jitter", "longest"):
            check_number(name, getattr(self, name), zero=True)
        check_number("factor", self.factor)
        kinds = self.on if isinstance(self.on, tuple) else (self.on,)
        if not all(isinstance(kind, type) and issubclass(kind, Exception) for kind in kinds):
            raise TypeError(f"`on` must be an exception or a tuple of them; got {self.on!r}.")

    def pause(self, failures: int) -> float:
        """Seconds to wait after so many failures."""
        try:
            seconds = self.wait * float(self.factor) ** (failures - 1)
        except OverflowError:
            seconds = self.wait and self.longest
        return float(min(self.longest, seconds * (1 + self.jitter * random.random())))

    def again(self, error: Exception, failures: int) -> bool:
        """Whether to try again after so many failures."""
        return failures <= self.times and isinstance(error, self.on) and not is_out_of_memory(error)


def is_out_of_memory(error: BaseException | None) -> bool:
    """Whether memory ran out: an error of NumPy, Python or torch."""
    return isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"


def as_retry(retry: int | Retry | None) -> Retry | None:
    """A number of repetitions as a `Retry`; 0 and None are none."""
    if retry is None or isinstance(retry, Retry):
        return retry
    if isinstance(retry, bool) or not isinstance(retry, int):
        raise TypeError(f"`retry` must be a whole number or a `Retry`; got {retry!r}.")
    if retry < 0:
        raise ValueError(f"`retry` must be >= 0; got {retry}.")
    return Retry(times=retry) if retry else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """How a model is called: `calls=` of an explainer, of `explain` and of `explain_many`.

    The settings of `explain` replace those of the explainer, except where they have their default
    value: `explain(x, calls=Calls(max_calls=100))` keeps the explainer's `retry`.

    Parameters
    ----------
    cache
        A file that stores the model's answers: nothing is asked twice. A function, or another model
        that its content does not identify, needs an `AnswerCache` with a `model_id`.
        `cache=` of an explainer, of `explain` and of `explain_many` is a short form.
    retry
        How often a failed model call is repeated, or a `Retry`, which says when.
    timeout
        Seconds for one model call; a longer one fails.
    concurrency
        Model calls under way at once: a function is called in threads, and an `async def` in one
        event loop.
    max_calls
        How many inputs the model may be asked about for one explanation. The answers within it are
        explained, and `provenance["stopped"]` says so.
    batch_size
        Inputs per model call; None finds the fastest size.
    partial
        On Ctrl-C explain the answers so far instead of raising `KeyboardInterrupt`, if there are
        more of them than features. `provenance["stopped"]` says so. Not used by `explain_many`.

    Examples
    --------
    >>> import eblime
    >>> calls = eblime.Calls(max_calls=100, batch_size=20)
    >>> explainer = eblime.TextExplainer(lambda texts: [len(t) for t in texts], calls=calls)
    >>> e = explainer.explain("one two three four five six seven eight nine ten")
    >>> e.provenance["model_calls"], e.provenance["batch_size"]
    (100, 20)
    """

    cache: CacheLike = None
    retry: int | Retry | None = None
    timeout: float | None = None
    concurrency: int = 1
    max_calls: int | None = None
    batch_size: int | None = None
    partial: bool = False

    def __post_init__(self) -> None:
        """Refuse settings that cannot work."""
        as_retry(self.retry)
        as_cache(self.cache)
        if self.timeout is not None:
            check_number("timeout", self.timeout)
        check_count("concurrency", self.concurrency)
        for name in ("max_calls", "batch_size"):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name))

    def merge(self, other: Calls | None, cache: CacheLike = None) -> Calls:
        """Replace settings by those of another record that are not the default, and the cache."""
        if not (other is None or isinstance(other, Calls)):
            raise TypeError(
                f"`calls` must be an eblime.Calls, such as Calls(retry=3); got {other!r:.60}."
            )
        changes = {} if other is None else other._changes()
        if cache is not None:
            changes["cache"] = cache
        return replace(self, **changes) if changes else self

    def _changes(self) -> dict[str, Any]:
        """The settings that differ from the default."""
        return {
            entry.name: getattr(self, entry.name)
            for entry in fields(self)
            if getattr(self, entry.name) != entry.default
        }

    @property
    def plain(self) -> bool:
        """Whether the model may be called in its own way, such as on its device."""
        return self.timeout is None and self.concurrency == 1 and as_retry(self.retry) is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Calls a model with a batch: with its timeout, its retries, and in the background."""

    model: Model
    calls: Calls

    @property
    def waits(self) -> bool:
        """Whether a call is waited for at once, because only one is under way."""
        return self.calls.concurrency == 1

    def start(self, batch: Any) -> Future[Any]:
        """Call the model in the background."""
        model, limits = self.model, (self.calls.timeout, as_retry(self.calls.retry))
        if isinstance(model, AsyncModel) and limits == (None, None):
            return model.submit(batch)
        return in_thread(self, batch)

    def __call__(self, batch: Any) -> Any:
        """What the model returns, after as many tries as allowed."""
        retry, failures = as_retry(self.calls.retry), 0
        while True:
            try:
                # a call that failed may have changed its batch, or still be at it after a timeout
                return self._once(batch if retry is None else copied(batch))
            except Exception as error:
                failures += 1
                if retry is None or not retry.again(error, failures):
                    raise
                time.sleep(min(retry.pause(failures), TIMEOUT_MAX))

    def _once(self, batch: Any) -> Any:
        """One call, for as long as it may take."""
        timeout = self.calls.timeout
        if timeout is None:
            return self.model(batch)
        begin: Callable[[Any], Future[Any]] = (
            self.model.submit
            if isinstance(self.model, AsyncModel)
            else lambda batch: in_thread(self.model, batch)
        )
        future = begin(batch)
        try:
            return future.result(min(timeout, TIMEOUT_MAX))
        except NotYet:
            if future.done():  # it answered just now, or raised a TimeoutError of its own
                return future.result()
            raise TimeoutError(f"no answer within the timeout of {timeout:g} s") from None
        finally:
            future.cancel()


def copied(value: Any) -> Any:
    """A copy of a batch or an input; itself if it is of a type that cannot be copied."""
    try:
        return copy.deepcopy(value)
    except Exception:  # such as open files of a user's own domain
        return value
