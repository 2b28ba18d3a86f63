"""Perturbed inputs in batches: rendered, of the fastest size, with answers that are checked."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import ExitStack
from typing import Any, NamedTuple

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
from eblime.protocols import INPUT_ITSELF, Composite, Neighbourhood, RenderedScene, masks_at

_SIZES = (4, 8, 16, 32, 64, 128, 256)
_BATCH_BYTES = 64 << 20  # a batch whose size is tuned stays below this


class _Batch(NamedTuple):
    span: slice  # of the numbers in question
    launched: Any
    begun: float


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
        self._outputs: int | None = None
        self.size = 0  # of the last full batch

    def answer(self, near: Neighbourhood, rows: IntArray) -> Iterator[tuple[slice, FloatArray]]:
        """Scores of perturbed inputs as they come: which of `rows`, and (n, outputs).

        The batch with the input itself comes first; it warms the model up and is not timed.
        """
        if not len(rows):
            return
        caller, cost, start = self._caller, getattr(near, "cost", 1), 0
        tuner = self._tuner(near, len(rows))
        waiting: list[_Batch] = []
        failed: Exception | None = None
        while True:
            afford = (caller.limit - caller.sent) // cost
            size = 0 if failed else min(tuner.size, len(rows) - start, afford)
            ahead = tuner.settled and self._device is not None and self._device.overlaps
            if size > 0 and len(waiting) < max(caller.calls.concurrency, 1 + ahead):
                begun, span = time.perf_counter(), slice(start, start + size)
                try:
                    waiting.append(_Batch(span, self._launch(near, rows[span]), begun))
                    start += size
                except OverBudgetError:
                    raise
                except Exception as error:
                    tunes = caller.calls.batch_size is None and is_out_of_memory(error)
                    if not (tunes and tuner.shrink()):
                        raise self._failure(rows[span], error) from error
            elif waiting:
                batch = _next_batch(waiting, rows)
                opens = rows[batch.span.start] == INPUT_ITSELF
                try:
                    scores = self._scores(batch, rows[batch.span])
                except (ModelError, OverBudgetError) as error:
                    failed = failed or error
                    waiting = [] if opens else waiting  # other answers still count
                else:
                    if not opens:
                        seconds = time.perf_counter() - batch.begun
                        tuner.learn(len(scores), seconds, len(rows) - start)
                    self.size = tuner.size
                    yield batch.span, scores
            elif failed:
                raise failed
            else:
                return  # every input has an answer, or no call is left

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
            return BatchTuner((calls.batch_size,))
        if calls.concurrency > 1:  # keep all calls under way busy
            return BatchTuner((min(max(self._sizes), -(-n // calls.concurrency)),))
        if self._steady:  # the last digits of a network's scores can depend on the size
            return BatchTuner((self._sizes[len(self._sizes) // 2],))
        return BatchTuner(self._sizes)

    def _launch(self, near: Neighbourhood, rows: IntArray) -> Any:
        """Render inputs and ask about them; what the model returns, or will return."""
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
        return caller.answer(batch, n, background=caller.calls.concurrency > 1)

    def _scores(self, batch: _Batch, rows: IntArray) -> FloatArray:
        """Wait for a batch, and check its scores."""
        launched = batch.launched
        try:
            returned = launched.result() if isinstance(launched, Future) else launched
            scores = check_scores(returned, rows, self._outputs)
        except (ModelError, OverBudgetError):
            raise
        except Exception as error:
            raise self._failure(rows, error) from error
        self._outputs = scores.shape[1]
        return scores

    def _failure(self, rows: IntArray, error: Exception) -> ModelError:
        if rows[0] != INPUT_ITSELF or not isinstance(self._scene, RenderedScene):
            return model_error(rows, error)
        shape = self._scene.batch(1).shape[1:]
        read = f"The input was read as one {self._scene.domain} of shape {shape}"
        return model_error(rows, error, f" {read}; to explain several, use `eblime.explain_many`.")


def _next_batch(waiting: list[_Batch], rows: IntArray) -> _Batch:
    """The batch with the input itself, then whichever is done first."""
    first = waiting[0]
    if isinstance(first.launched, Future) and rows[first.span.start] != INPUT_ITSELF:
        done, _ = wait([batch.launched for batch in waiting], return_when=FIRST_COMPLETED)
        waiting.sort(key=lambda batch: batch.launched not in done)
    return waiting.pop(0)


class BatchTuner:
    """Finds the fastest batch size on the batches that are asked anyway.

    Two batches of the smallest size, then of larger ones as long as they are faster and many masks
    are left. (A large batch may be slow only because it is the first of its size.)
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        self.size, *self._larger = sizes
        self._best, self._fastest = np.inf, self.size  # seconds per input
        self._seen = 0  # batches of the present size
        self.settled = not self._larger

    def learn(self, n: int, seconds: float, left: int) -> None:
        """Note how long a batch took with so many masks left, and choose the next size."""
        if self.settled or n < self.size:
            return
        self._seen += 1
        if seconds / n < self._best:
            self._best, self._fastest = seconds / n, self.size
        if self._seen < 2:
            return
        if self._larger and self._fastest == self.size and left >= 8 * self._larger[0]:
            self.size, self._seen = self._larger.pop(0), 0
        else:
            self.size, self.settled = self._fastest, True

    def shrink(self) -> bool:
        """Settle on a smaller size, as memory does not hold this one; False if there is none."""
        if self.size == 1:
            return False
        self.size = self._fastest if self._fastest < self.size else self.size // 2
        self.settled = True
        return True
