"""Perturbed inputs in batches: rendered, of the fastest size, with answers that are checked."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import ExitStack
from typing import Any, NamedTuple, Protocol

import numpy as np

from eblime._types import FloatArray, IntArray
from eblime.engine.calls import (
    Caller,
    OverBudgetError,
    check_scores,
    is_out_of_memory,
    model_error,
)
from eblime.models.conversion import as_scores
from eblime.protocols import (
    INPUT_ITSELF,
    Composite,
    Neighbourhood,
    RenderedScene,
    RenderingModel,
    Scene,
    masks_at,
)

__all__ = ["BatchTuner", "Batches"]

_SIZES = (4, 8, 16, 32, 64, 128, 256)
_BATCH_BYTES = 64 << 20  # a batch whose size is tuned stays below this


class Wanted(Protocol):
    """Which outputs of the model are wanted."""

    @property
    def original(self) -> FloatArray | None:
        """All outputs for the input itself, once known."""

    @property
    def columns_to_fetch(self) -> Sequence[int]:
        """Columns of the outputs; empty is all."""


class _Batch(NamedTuple):
    """A batch under way."""

    span: slice  # of the numbers in question
    launched: Any
    begun: float
    opens: bool  # the input itself comes first


class Batches:
    """Asks about perturbed inputs of one scene, by number.

    One batch at a time while the batch size is tuned. Then the next batch is launched before the
    last is fetched where the model allows it, so that a GPU never waits; or as many as
    `concurrency` says. A model renders the inputs itself where it can; one that is called with a
    timeout, with retries or several times at once gets batches of inputs.
    """

    def __init__(self, caller: Caller, scene: Scene, stack: ExitStack, *, steady: bool) -> None:
        self._caller, self._scene, self._stack, self._steady = caller, scene, stack, steady
        self._device: Any = None
        self._renderer: Any = None
        self._buffer: Any = None
        self._sizes: Sequence[int] = ()
        self.size = 0  # of the last full batch

    def answer(
        self, near: Neighbourhood, rows: IntArray, wanted: Wanted | None = None
    ) -> Iterator[tuple[slice, FloatArray]]:
        """Scores of perturbed inputs as they come: which of `rows`, and (n, outputs).

        The batch with the input itself comes first; it warms the model up and is not timed. The
        others have only the outputs that are wanted.
        """
        if not len(rows):
            return
        tuner, start, cost = self._tuner(near, len(rows)), 0, getattr(near, "cost", 1)
        waiting: list[_Batch] = []
        caller = self._caller
        try:
            while start < len(rows) or waiting:
                afford = (caller.limit - caller.sent) // cost
                size = min(tuner.choice[0], len(rows) - start, afford)
                if size > 0 and len(waiting) < self._most(tuner, waiting):
                    opens = start == 0 and bool(rows[0] == INPUT_ITSELF)
                    batch = self._begin(near, rows, slice(start, start + size), tuner, opens)
                    if batch is not None:
                        waiting.append(batch)
                        start += size
                elif waiting:
                    one = caller.calls.concurrency == 1
                    batch = waiting.pop(0) if one else _next_batch(waiting)
                    scores = self._scores(batch, rows[batch.span], wanted)
                    if not batch.opens:
                        seconds = time.perf_counter() - batch.begun
                        tuner.learn(len(scores), seconds, len(rows) - start)
                    yield batch.span, scores
                else:
                    return  # no room for more calls
        finally:
            self.size = tuner.choice[0]
            for batch in waiting:
                if isinstance(batch.launched, Future):
                    batch.launched.cancel()

    def _tuner(self, near: Neighbourhood, n: int) -> BatchTuner:
        """Prepare for n inputs; open the model if it is the first time, closed by the stack."""
        caller, scene, model = self._caller, self._scene, self._caller.model
        if not self._sizes:
            # a check of a whole protocol is slow: most models and scenes lack its first part
            if (
                hasattr(model, "scorer")
                and isinstance(model, RenderingModel)
                and isinstance(scene, Composite)
                and caller.plain
            ):
                self._device = self._stack.enter_context(model.scorer(scene))
                self._sizes = self._device.sizes
            elif hasattr(scene, "renderer") and isinstance(scene, RenderedScene):
                self._buffer, self._renderer = scene.batch(1), scene.renderer()
                most = max(1, _BATCH_BYTES // max(1, self._buffer.nbytes))
                self._sizes = tuple(size for size in _SIZES if size <= most) or (1,)
            else:
                self._sizes = getattr(model, "batch_sizes", None) or near.sizes
        size, at_once = caller.calls.batch_size, caller.calls.concurrency
        if size is None and at_once > 1:  # keep all calls under way busy
            size = min(max(self._sizes), -(-n // at_once))
        ways = 1 if self._device is None else self._device.ways
        return BatchTuner(self._sizes, ways, size, steady=self._steady)

    def _most(self, tuner: BatchTuner, waiting: Sequence[_Batch]) -> int:
        """How many batches may be under way; no more once one has failed."""
        most = self._caller.calls.concurrency
        if most > 1:
            return 0 if any(_has_failed(batch.launched) for batch in waiting) else most
        overlaps = self._device is not None and self._device.overlaps
        return 2 if tuner.settled and overlaps else 1

    def _begin(
        self, near: Neighbourhood, rows: IntArray, span: slice, tuner: BatchTuner, opens: bool
    ) -> _Batch | None:
        """Launch a batch; None if memory does not hold it and a smaller one is worth a try."""
        begun, some = time.perf_counter(), rows[span]
        try:
            launched = self._launch(near, some, 0 if opens else tuner.choice[1])
        except OverBudgetError:
            raise
        except Exception as error:
            if is_out_of_memory(error) and (tuner.halve() if opens else tuner.give_up()):
                return None
            raise model_error(some, error, self._reading(opens)) from error
        return _Batch(span, launched, begun, opens)

    def _reading(self, opens: bool) -> str:
        """A sentence about how an image was read, for an error of the first call of all."""
        if not opens or not isinstance(self._scene, RenderedScene):
            return ""
        shape = self._scene.batch(1).shape[1:]
        read = f"The input was read as one {self._scene.domain} of shape {shape}"
        return f" {read}; to explain several, use `eblime.explain_many`."

    def _launch(self, near: Neighbourhood, rows: IntArray, way: int) -> Any:
        """Render inputs and ask about them; the scores, perhaps not computed yet."""
        caller, n = self._caller, len(rows)
        if self._device is not None:
            caller.count(n)
            return self._device.launch(masks_at(near.masks, rows), way)
        if self._renderer is None:
            batch = near.inputs(rows)
        else:
            if len(self._buffer) < n or not caller.plain:  # a call may still be reading it
                self._buffer = self._scene.batch(n)  # type: ignore[attr-defined]
            batch = self._buffer[:n]
            self._renderer.render(masks_at(near.masks, rows), batch)
        if caller.calls.concurrency > 1:
            return caller.start(batch, n)
        return as_scores(caller.answer(batch, n))

    def _scores(self, batch: _Batch, rows: IntArray, wanted: Wanted | None) -> FloatArray:
        """Wait for a batch, and check its scores."""
        launched = batch.launched
        if isinstance(launched, Future):
            try:
                launched = as_scores(launched.result())
            except OverBudgetError:
                raise
            except Exception as error:
                raise model_error(rows, error, self._reading(batch.opens)) from error
        original = None if wanted is None or batch.opens else wanted.original
        return check_scores(
            launched,
            rows,
            width=None if original is None else len(original),
            columns=() if wanted is None or batch.opens else wanted.columns_to_fetch,
            fetch=np.asarray if self._device is None else self._device.fetch,
        )


def _next_batch(waiting: list[_Batch]) -> _Batch:
    """The first batch of all, then whichever is done first; those that failed come last.

    For calls in the background. So the answers of all of them are kept when one fails.
    """
    if waiting[0].opens:
        return waiting.pop(0)
    while running := [b.launched for b in waiting if not _has_failed(b.launched)]:
        done, _ = wait(running, return_when=FIRST_COMPLETED)
        for k, batch in enumerate(waiting):
            if batch.launched in done and not _has_failed(batch.launched):
                return waiting.pop(k)
    return waiting.pop(0)


def _has_failed(launched: Any) -> bool:
    """Whether a call in the background has ended with an error."""
    if not isinstance(launched, Future) or not launched.done():
        return False
    return launched.cancelled() or launched.exception() is not None


class BatchTuner:
    """Finds the fastest batch size, and way of computing, on the batches that are asked anyway.

    Two batches for each way at the smallest size, then larger ones as long as they gain and are
    worth the try: the last step gained much, or many masks are left. A small batch that is much
    slower at once does not get its second one (a large one may be slow only because it is the
    first of its size), and a size that memory does not hold is given up.
    """

    def __init__(
        self, sizes: Sequence[int], ways: int, batch_size: int | None, *, steady: bool
    ) -> None:
        sizes = sizes if batch_size is None else (batch_size,)
        if steady:  # the last digits of a network's scores can depend on the size
            sizes = (sizes[len(sizes) // 2],)
        self._ways = [] if steady else [(sizes[0], way) for way in range(1, ways)]
        self._larger = list(sizes[1:])
        self._best = self._before = np.inf  # seconds per input: now, and before this size
        self._winner = self.choice = (sizes[0], 0)
        self._seen = 0  # batches of the present choice
        self._fixed = batch_size is not None
        self.settled = not self._ways and not self._larger

    def learn(self, n: int, seconds: float, left: int) -> None:
        """Note how long a batch took with so many masks left, and choose the next."""
        if self.settled or n < self.choice[0]:
            return
        self._seen += 1
        hopeless = n <= 32 and seconds / n > 1.25 * self._best
        if seconds / n < self._best:
            self._best, self._winner = seconds / n, self.choice
        if not (self._seen == 2 or hopeless):
            return
        self._seen = 0
        if self._ways:
            self.choice = self._ways.pop(0)
            return
        gained = self._best < 0.8 * self._before
        if (
            self._larger
            and self._winner[0] == self.choice[0]
            and left >= (8 if gained else 32) * self._larger[0]
        ):
            self._before = self._best
            self.choice = (self._larger.pop(0), self._winner[1])
        else:
            self.choice, self.settled = self._winner, True

    def halve(self) -> bool:
        """Settle on half the size, where even the first batch was too large and may be smaller."""
        if self._fixed or self.choice[0] == 1:
            return False
        self.choice, self.settled = (self.choice[0] // 2, 0), True
        return True

    def give_up(self) -> bool:
        """Settle on the best so far, if there is one that is smaller."""
        if self.settled or self._winner[0] >= self.choice[0]:
            return False
        self.choice, self.settled = self._winner, True
        return True
