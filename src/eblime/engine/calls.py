"""How a model is called: repeated, limited in time and number, several at once, remembered."""

from __future__ import annotations

import copy
import os
import random
import sys
import time
from dataclasses import dataclass, fields, replace
from functools import partial
from threading import Lock
from typing import Any

import numpy as np

from eblime._checks import HUGE, check_count, check_number
from eblime._types import FloatArray, IntArray
from eblime.engine.cache import AnswerCache, as_cache
from eblime.models.asynchronous import AsyncModel, in_thread, wait_for
from eblime.models.conversion import as_scores
from eblime.protocols import MeanBatch, Model

CacheLike = str | os.PathLike[str] | AnswerCache | None
_BATCH = "A model is called with a batch of inputs, not with one."


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """Send a batch that failed to the model again, after pauses that grow; for `Calls(retry=...)`.

    Parameters
    ----------
    times
        How often a batch is sent again, after the first try.
    wait
        Seconds before the first repetition. Each further pause is twice as long, and up to a tenth
        more, so that several clients do not come back at once.
    longest
        No pause is longer than this many seconds. An error with an attribute `retry_after`, such
        as from the header `Retry-After` of a server, sets the pause itself; if it asks for more
        seconds than `longest`, the batch is not sent again.
    on
        Errors that are worth another try. A batch that took longer than `timeout` raises a
        `TimeoutError`. Running out of memory never leads to another try.

    Examples
    --------
    >>> import eblime
    >>> retry, error = eblime.Retry(times=2, wait=1.0), ConnectionError("busy")
    >>> [retry.pause(error, failures=n) // 1 for n in (1, 2)], retry.pause(error, failures=3)
    ([1.0, 2.0], None)
    """

    times: int = 3
    wait: float = 0.5
    longest: float = 60.0
    on: tuple[type[Exception], ...] | type[Exception] = Exception

    def __post_init__(self) -> None:
        check_count("times", self.times)
        check_number("wait", self.wait, zero=True)
        check_number("longest", self.longest, zero=True)
        kinds = self.on if isinstance(self.on, tuple) else (self.on,)
        if not all(isinstance(kind, type) and issubclass(kind, Exception) for kind in kinds):
            raise TypeError(f"`on` must be an exception or a tuple of them; got {self.on!r}.")

    def pause(self, error: Exception, failures: int) -> float | None:
        """Seconds to wait before the next try after so many failures; None if there is none."""
        asked = getattr(error, "retry_after", None)
        asked = asked if isinstance(asked, (int, float)) else 0.0
        last = failures > self.times or is_out_of_memory(error) or asked > self.longest
        if last or not isinstance(error, self.on):
            return None
        grown = self.wait * 2.0 ** min(failures - 1, 30) * (1 + random.random() / 10)
        return float(max(asked, min(self.longest, grown)))


def is_out_of_memory(error: BaseException | None) -> bool:
    """Whether memory ran out: an error of NumPy, Python or torch."""
    return isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"


def as_retry(retry: int | Retry | None) -> Retry | None:
    """A number of repetitions as a `Retry`; 0 and None are none."""
    if retry is None or isinstance(retry, Retry):
        return retry
    check_count("retry", retry, minimum=0)
    return Retry(times=retry) if retry else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """How a model is called: `calls=` of an explainer, of `explain` and of `explain_many`.

    The model gets batches of inputs; a *model call* is one input that is sent, also if it is sent
    again. Settings of `explain` replace those of the explainer, except where they have their
    default value: `explain(x, calls=Calls(max_calls=100))` keeps the explainer's `retry`.

    Parameters
    ----------
    cache
        A file that stores the model's answers: nothing is asked twice. A model that is not the path
        of an ONNX file needs an `AnswerCache` with a `model_id`. `cache=` of an explainer and of
        `explain` is a short form.
    retry
        How often a failed batch is sent again; or a `Retry`, which also sets pauses and errors.
    timeout
        Seconds for one batch; a longer one fails.
    concurrency
        Batches under way at once: a function runs in threads, an `async def` in one event loop.
    max_calls
        How many inputs may be sent to the model for one explanation, in all attempts. The answers
        within it are explained, and `provenance["stopped"]` says so.
    batch_size
        Inputs per batch; None finds the fastest size.
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
        changes: dict[str, Any] = {} if cache is None else {"cache": cache}
        for entry in () if other is None else fields(other):
            if (value := getattr(other, entry.name)) != entry.default:
                changes.setdefault(entry.name, value)
        return replace(self, **changes) if changes else self

    @property
    def plain(self) -> bool:
        """Whether the model may be called in its own way, such as on its device."""
        return self.timeout is None and self.concurrency == 1 and not self.retry


class ModelError(RuntimeError):
    """The model failed or returned something that is not a score, for the masks named.

    Examples
    --------
    >>> import eblime
    >>> try:
    ...     eblime.TextExplainer(lambda texts: 1 / 0).explain("a good day")
    ... except eblime.ModelError as error:
    ...     print(type(error.__cause__).__name__)
    ZeroDivisionError
    """


def model_error(rows: IntArray | int, error: BaseException, note: str = "") -> ModelError:
    """The error that says where the model failed: at masks by number, or in a batch of n."""
    message = f"The model failed on {_place(rows)}: {type(error).__name__}: {error}"
    message = f"{message.rstrip('.')}.{note}" if note else message
    # a model that treats a batch as one input: `text.lower()` of a list, `if row["age"] > 40`
    single = isinstance(error, AttributeError)  # also scikit-learn's NotFittedError, a ValueError
    if isinstance(error, ValueError):
        single = "truth value" in str(error)
    return ModelError(f"{message.rstrip('.')}. {_BATCH}" if single else message)


def check_scores(returned: Any, rows: IntArray | int, outputs: int | None = None) -> FloatArray:
    """The scores of perturbed inputs by number, or of n inputs: (n, outputs), checked.

    A copy: the model may fill the same array again at its next call. `outputs` is their number, if
    it is known.
    """
    found, n = as_scores(returned), rows if isinstance(rows, int) else len(rows)
    shape = found.shape
    if len(shape) not in (1, 2) or shape[0] != n or 0 in shape:
        raise ModelError(
            f"The model must return scores of shape ({n}, outputs) for a batch of {n}; "
            f"for {_place(rows)} it returned shape {shape}."
            + (" Return one score per output, such as a mean over pixels." if shape[2:] else "")
            + (f" {_BATCH}" if shape == () else "")
        )
    scores = np.array(found, dtype=np.float64).reshape(n, -1)
    if outputs is not None and scores.shape[1] != outputs:
        raise ModelError(
            f"The model must return as many outputs for every mask; it returned {outputs} before, "
            f"and {scores.shape[1]} for {_place(rows)}."
        )
    if not max(scores.max(), -scores.min()) <= HUGE:  # never so with a NaN
        row, column = (int(index) for index in np.argwhere(~(np.abs(scores) <= HUGE))[0])
        limit = f", at most {HUGE:g} in size" if np.isfinite(scores[row, column]) else ""
        where = _place(rows if isinstance(rows, int) else rows[row : row + 1])
        raise ModelError(
            f"The model must return finite scores{limit}; for {where} output {column} is "
            f"{scores[row, column]}."
        )
    return scores


def _place(rows: IntArray | int) -> str:
    if isinstance(rows, int):
        return f"a batch of {rows}"
    masks = rows[rows >= 0]
    if len(masks) == 0:
        return "the input itself"
    place = f"mask {masks[0]}" if len(masks) == 1 else f"masks {masks.min()} to {masks.max()}"
    return place if len(masks) == len(rows) else f"the input itself and {place}"


class OverBudgetError(Exception):
    """A call would ask about more inputs than `max_calls` allows."""


class Caller:
    """Calls one model with batches: with a timeout, with retries, and in the background.

    `sent` counts the inputs of every attempt, and none is made beyond `limit`.
    """

    def __init__(self, model: Model, calls: Calls) -> None:
        self.model, self.calls, self.limit, self.sent = model, calls, sys.maxsize, 0
        self._retry, self._lock = as_retry(calls.retry), Lock()

    def count(self, n: int) -> None:
        """Count n inputs that the model is asked about; refuse them beyond the limit."""
        with self._lock:
            if self.sent + n > self.limit:
                raise OverBudgetError
            self.sent += n

    def answer(self, batch: Any, n: int, *, background: bool = False) -> Any:
        """What the model returns for a batch of n inputs, after as many tries as allowed.

        In the background, a future of it.
        """
        if isinstance(batch, MeanBatch):
            n = batch.n_inputs
        self.count(n)
        return in_thread(self._answer, batch, n) if background else self._answer(batch, n)

    def _answer(self, batch: Any, n: int) -> Any:
        """`answer` for n inputs that the model gets, the first try of which is counted."""
        inputs = batch.inputs if isinstance(batch, MeanBatch) else batch
        model, timeout, retry, failures = self.model, self.calls.timeout, self._retry, 0
        start = model.submit if isinstance(model, AsyncModel) else partial(in_thread, model)
        while True:
            try:
                # a call that failed may have changed its batch, or still be at it after a timeout
                sent = inputs if retry is None else copy_of(inputs)
                found = model(sent) if timeout is None else wait_for(start(sent), timeout)
                break
            except Exception as error:
                failures += 1
                if retry is None or (pause := retry.pause(error, failures)) is None:
                    raise
                try:
                    self.count(n)
                except OverBudgetError as over:
                    raise over from error
                time.sleep(pause)
        return found if inputs is batch else batch.means(check_scores(found, n))


def copy_of(value: Any) -> Any:
    """A copy of a batch or an input; itself if it is of a type that cannot be copied."""
    try:
        return copy.deepcopy(value)
    except Exception:  # such as open files of a user's own domain
        return value
