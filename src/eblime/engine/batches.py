"""Perturbed inputs in batches: rendered, of the fastest size, with answers that are checked."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from eblime._types import FloatArray, IntArray
from eblime.engine.calls import (
    Caller,
    ModelError,
    OverBudgetError,
    check_scores,
    is_out_of_memory,
    model_error,
)
from eblime.models.conversion import as_scores
from eblime.protocols import INPUT_ITSELF, Composite, Neighbourhood, RenderedScene, masks_at

if TYPE_CHECKING:
    from eblime.engine.questions import PendingReply

_SIZES = (4, 8, 16, 32, 64, 128, 256)
_BATCH_BYTES = 64 << 20  # a batch whose size is tuned stays below this


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

    def __init__(self, caller: Caller, scene: Any, stack: ExitStack, *, steady: bool) -> None:
        self._caller, self._scene, self._stack, self._steady = caller, scene, stack, steady
        self._device: Any = None
        self._renderer: Any = None
        self._buffer: Any = None
        self._sizes: Sequence[int] = ()
        self.size = 0  # of the last full batch

    def answer(
        self, near: Neighbourhood, rows: IntArray, pending: PendingReply | None = None
    ) -> Iterator[tuple[slice, FloatArray]]:
        """Scores of perturbed inputs as they come: which of `rows`, and (n, outputs).

        The batch with the input itself comes first; it warms the model up and is not timed. The
        others have only the outputs that the pending reply needs.
        """
        if not len(rows):
            return
        caller, cost, start = self._caller, getattr(near, "cost", 1), 0
        tuner, at_once = self._tuner(near, len(rows)), caller.calls.concurrency
        overlaps = self._device is not None and self._device.overlaps
        waiting: list[_Batch] = []
        failed: Exception | None = None
        try:
            while True:
                afford = (caller.limit - caller.sent) // cost
                size = 0 if failed else min(tuner.size, len(rows) - start, afford)
                most = 1 + (tuner.settled and overlaps) if at_once == 1 else at_once
                if size > 0 and len(waiting) < most:
                    opens = start == 0 and bool(rows[0] == INPUT_ITSELF)
                    batch = self._begin(near, rows, slice(start, start + size), tuner, opens)
                    if batch is not None:
                        waiting.append(batch)
                        start += size
                elif waiting:
                    batch = _next_batch(waiting)
                    try:
                        scores = self._scores(batch, rows[batch.span], pending)
                    except (ModelError, OverBudgetError) as error:
                        failed = failed or error
                        waiting = [] if batch.opens else waiting  # other answers still count
                    else:
                        if not batch.opens:
                            seconds = time.perf_counter() - batch.begun
                            tuner.learn(len(scores), seconds, len(rows) - start)
                        yield batch.span, scores
                elif failed:
                    raise failed
                else:
                    return  # every input has an answer, or no call is left
        finally:
            self.size = tuner.size

    def _tuner(self, near: Neighbourhood, n: int) -> BatchTuner:
        """Prepare for n inputs; open the model if it is the first time, closed by the stack."""
        calls, model, scene = self._caller.calls, self._caller.model, self._scene
        if not self._sizes:
            if calls.plain and hasattr(model, "scorer") and isinstance(scene, Composite):
                self._device = self._stack.enter_context(model.scorer(scene))
                self._sizes = self._device.sizes
            elif hasattr(scene, "renderer"):  # a check of the whole protocol is slow
                self._buffer, self._renderer = scene.batch(1), scene.renderer()
                most = max(1, _BATCH_BYTES // max(1, self._buffer.nbytes))
                self._sizes = tuple(size for size in _SIZES if size <= most) or (1,)
            else:
                self._sizes = getattr(model, "batch_sizes", None) or near.sizes
        if calls.batch_size is not None:
            return BatchTuner((calls.batch_size,), fixed=True)
        if calls.concurrency > 1:  # keep all calls under way busy
            return BatchTuner((min(max(self._sizes), -(-n // calls.concurrency)),), fixed=True)
        if self._steady:  # the last digits of a network's scores can depend on the size
            return BatchTuner((self._sizes[len(self._sizes) // 2],))
        return BatchTuner(self._sizes)

    def _begin(
        self, near: Neighbourhood, rows: IntArray, span: slice, tuner: BatchTuner, opens: bool
    ) -> _Batch | None:
        """Launch a batch; None if memory does not hold it and a smaller one is worth a try."""
        begun, some = time.perf_counter(), rows[span]
        try:
            return _Batch(span, self._launch(near, some), begun, opens)
        except OverBudgetError:
            raise
        except Exception as error:
            if is_out_of_memory(error) and tuner.shrink():
                return None
            raise model_error(some, error, self._reading(opens)) from error

    def _reading(self, opens: bool) -> str:
        """A sentence about how an image was read, for an error of the first call of all."""
        if not opens or not isinstance(self._scene, RenderedScene):
            return ""
        shape = self._scene.batch(1).shape[1:]
        read = f"The input was read as one {self._scene.domain} of shape {shape}"
        return f" {read}; to explain several, use `eblime.explain_many`."

    def _launch(self, near: Neighbourhood, rows: IntArray) -> Any:
        """Render inputs and ask about them; the scores, perhaps not computed yet."""
        caller, n = self._caller, len(rows)
        if self._device is not None:
            caller.count(n)
            return self._device.launch(masks_at(near.masks, rows))
        if self._renderer is None:
            batch = near.inputs(rows)
        else:
            if len(self._buffer) < n or not caller.calls.plain:  # a call may still be reading it
                self._buffer = self._scene.batch(n)
            batch = self._buffer[:n]
            self._renderer.render(masks_at(near.masks, rows), batch)
        if caller.calls.concurrency > 1:
            return caller.start(batch, n)
        return as_scores(caller.answer(batch, n))

    def _scores(self, batch: _Batch, rows: IntArray, pending: PendingReply | None) -> FloatArray:
        """Wait for a batch, and check its scores."""
        launched = batch.launched
        if isinstance(launched, Future):
            try:
                launched = as_scores(launched.result())
            except OverBudgetError:
                raise
            except Exception as error:
                raise model_error(rows, error, self._reading(batch.opens)) from error
        if pending is None or pending.original is None or batch.opens:
            return check_scores(launched, rows)
        width = len(pending.original)
        return check_scores(launched, rows, width=width, columns=pending.columns_to_fetch)


def _next_batch(waiting: list[_Batch]) -> _Batch:
    """The first batch of all, then whichever is done first."""
    if not waiting[0].opens and isinstance(waiting[0].launched, Future):
        done, _ = wait([batch.launched for batch in waiting], return_when=FIRST_COMPLETED)
        waiting.sort(key=lambda batch: batch.launched not in done)
    return waiting.pop(0)


class BatchTuner:
    """Finds the fastest batch size on the batches that are asked anyway.

    Two batches of the smallest size, then of larger ones as long as they gain and are worth the
    try: the last step gained much, or many masks are left. A small batch that is much slower at
    once does not get its second one (a large one may be slow only because it is the first of its
    size).
    """

    def __init__(self, sizes: Sequence[int], *, fixed: bool = False) -> None:
        self.size, *self._larger = sizes
        self._best = self._before = np.inf  # seconds per input: now, and before this size
        self._fastest = self.size
        self._seen = 0  # batches of the present size
        self._fixed = fixed
        self.settled = not self._larger

    def learn(self, n: int, seconds: float, left: int) -> None:
        """Note how long a batch took with so many masks left, and choose the next size."""
        if self.settled or n < self.size:
            return
        self._seen += 1
        hopeless = n <= 32 and seconds / n > 1.25 * self._best
        if seconds / n < self._best:
            self._best, self._fastest = seconds / n, self.size
        if self._seen < 2 and not hopeless:
            return
        gained = self._best < 0.8 * self._before
        if (
            self._larger
            and self._fastest == self.size
            and left >= (8 if gained else 32) * self._larger[0]
        ):
            self._before, self._seen = self._best, 0
            self.size = self._larger.pop(0)
        else:
            self.size, self.settled = self._fastest, True

    def shrink(self) -> bool:
        """Settle on a smaller size, as memory does not hold this one; False if there is none."""
        if self._fixed or self.size == 1:
            return False
        self.size = self._fastest if self._fastest < self.size else self.size // 2
        self.settled = True
        return True
