"""Asking the model: in batches, checked answer by answer, with progress and a tuned batch size."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from eblime._progress import Progress, telling
from eblime._types import FloatArray, IntArray
from eblime.models.answers import as_scores
from eblime.protocols import Composite, Made, Model, Rendered, RenderingModel, Scene, Scorer

__all__ = ["Asked", "ModelError", "Progress", "ask", "scorer_of"]

_SIZES = (4, 8, 16, 32, 64, 128, 256)
_BATCH_BYTES = 64 << 20  # a batch that tunes itself stays below this


class ModelError(RuntimeError):
    """The model failed, or answered something that is no score; the message says to which mask."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the model answered."""

    scores: FloatArray  # (N, T)
    original: FloatArray  # (outputs,) for the input itself
    columns: Sequence[int]  # the outputs kept
    batch_size: int  # of the last full batch
    calls: int  # inputs that the model was asked about


@contextmanager
def scorer_of(model: Model, scene: Scene) -> Iterator[Scorer]:
    """Open a model for a scene: on its own device where it can render, else through batches."""
    if isinstance(model, RenderingModel) and isinstance(scene, Composite):
        with model.scorer(scene) as scorer:
            yield scorer
    elif isinstance(scene, Made):
        yield _PlainScorer(model, scene)
    elif isinstance(scene, Rendered):
        yield _BatchScorer(model, scene)
    else:
        raise TypeError(f"A {type(scene).__name__} cannot make perturbed inputs.")


def ask(
    scorer: Scorer,
    masks: FloatArray,
    choose: Callable[[FloatArray], Sequence[int]],
    *,
    batch_size: int | None,
    progress: Progress,
    itself: float = 1.0,
    steady: bool = False,
) -> Asked:
    """Scores of every mask for some outputs, which `choose` picks from the input's own answer.

    The input itself is asked with the first batch, which warms the model up and is not timed.
    Masks that show all, every entry being `itself`, are not asked again. A `steady` size of batches
    is not tuned: a network's last digits can depend on it, and must not on how fast a machine is.
    """
    whole = (masks == itself).all(axis=1)
    todo = np.flatnonzero(~whole)
    tuner = _Tuner(scorer, batch_size, steady)
    columns: list[int] = []
    answers = _answers(scorer, masks, todo, tuner, columns, itself)
    first, opening = next(answers)
    original = opening[0]
    columns += choose(original)
    scores = np.empty((len(masks), len(columns)))
    scores[whole] = original[columns]
    scores[first] = opening[1:][:, columns]
    done = int(whole.sum()) + len(first)
    with telling(progress, len(masks), unit="mask", what="asking the model") as report:
        report(done)
        for rows, answer in answers:
            scores[rows] = answer
            done += len(rows)
            report(done)
    return Asked(
        scores=scores,
        original=original,
        columns=columns,
        batch_size=tuner.choice[0],
        calls=len(todo) + 1,
    )


def _answers(
    scorer: Scorer,
    masks: FloatArray,
    todo: IntArray,
    tuner: _Tuner,
    columns: list[int],
    itself: float,
) -> Iterator[tuple[IntArray, FloatArray]]:
    """Answers batch by batch: first all outputs, the input itself before the masks, then `columns`.

    Once the batch size is settled the next batch is launched before the last is fetched, so that a
    GPU never waits for us.
    """
    start = tuner.choice[0] - 1
    rows = todo[:start]
    while True:
        begin = np.concatenate([np.full((1, masks.shape[1]), itself), masks[rows]])
        try:
            waiting = deque([(rows, _launched(scorer, begin, 0, rows), time.perf_counter())])
            break
        except ModelError as error:
            if not (_out_of_memory(error) and tuner.halve()):
                raise
            start = tuner.choice[0] - 1
            rows = todo[:start]
    width = None
    while start < len(todo) or waiting:
        if start < len(todo) and len(waiting) < (2 if tuner.settled and scorer.overlaps else 1):
            size, way = tuner.choice
            rows = todo[start : start + size]
            begun = time.perf_counter()
            try:
                launched = _launched(scorer, masks[rows], way, rows)
            except ModelError as error:
                if _out_of_memory(error) and tuner.give_up():
                    continue
                raise
            waiting.append((rows, launched, begun))
            start += len(rows)
            continue
        rows, launched, begun = waiting.popleft()
        if width is None:
            answer = _checked(scorer, launched, len(rows) + 1, rows)
            width = answer.shape[1]
        else:
            answer = _checked(scorer, launched, len(rows), rows, width, columns)
            tuner.learn(len(rows), time.perf_counter() - begun, len(todo) - start)
        yield rows, answer


class _BatchScorer:
    """Renders into one batch that is used again and again, and asks the model with it."""

    ways = 1
    overlaps = False

    def __init__(self, model: Model, scene: Rendered) -> None:
        self._model, self._scene = model, scene
        self._batch, self._renderer = scene.batch(1), scene.renderer()
        most = max(1, _BATCH_BYTES // max(1, self._batch.nbytes))
        self.sizes: Sequence[int] = tuple(size for size in _SIZES if size <= most) or (1,)

    def launch(self, masks: FloatArray, way: int = 0) -> Any:
        """Render and ask."""
        if len(self._batch) < len(masks):
            self._batch = self._scene.batch(len(masks))
        batch = self._batch[: len(masks)]
        self._renderer.render(masks, batch)
        return as_scores(self._model(batch)).copy()  # the answer may be a view of the batch

    def fetch(self, launched: Any) -> Any:
        """The answer is there already."""
        return launched


class _PlainScorer:
    """Asks the model with inputs that the scene makes, texts or rows of a table."""

    ways = 1
    overlaps = False

    def __init__(self, model: Model, scene: Made) -> None:
        self._model, self._scene = model, scene
        self.sizes: Sequence[int] = scene.sizes

    def launch(self, masks: FloatArray, way: int = 0) -> Any:
        """Make the inputs and ask."""
        return as_scores(self._model(self._scene.inputs(masks)))

    def fetch(self, launched: Any) -> Any:
        """The answer is there already."""
        return launched


class _Tuner:
    """Finds the fastest batch size, and way of computing, on the batches that are asked anyway.

    Two batches for each way at the smallest size, then larger ones as long as they gain and are
    worth the try: the last step gained much, or many masks are left. A small batch that is much
    slower at once does not get its second one (a large one may be slow only because it is the
    first of its size), and a size that memory does not hold is given up.
    """

    def __init__(self, scorer: Scorer, batch_size: int | None, steady: bool) -> None:
        sizes = scorer.sizes if batch_size is None else (batch_size,)
        if steady:
            sizes = (sizes[len(sizes) // 2],)
        self._ways = [] if steady else [(sizes[0], way) for way in range(1, scorer.ways)]
        self._larger = list(sizes[1:])
        self._best = self._before = np.inf  # seconds an input: now, and before this size
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
        if self._seen == 2 or hopeless:
            self._move_on(left)

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

    def _move_on(self, left: int) -> None:
        """Try the next way, or the next larger size, or settle on the best."""
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


def _launched(scorer: Scorer, masks: FloatArray, way: int, rows: IntArray) -> Any:
    """Launch a batch; what the model raises comes with the masks it was asked about."""
    try:
        return scorer.launch(masks, way)
    except Exception as error:
        raise _failed(rows, error) from error


def _out_of_memory(error: ModelError) -> bool:
    """Whether a model failed for want of memory: NumPy's, Python's or torch's error."""
    return isinstance(error.__cause__, MemoryError) or (
        type(error.__cause__).__name__ == "OutOfMemoryError"
    )


def _failed(rows: IntArray, error: Exception) -> ModelError:
    """The error that says where the model failed."""
    return ModelError(f"The model failed on {_place(rows)}: {type(error).__name__}: {error}")


def _place(rows: IntArray) -> str:
    """The masks of a batch, as people read them."""
    if len(rows) == 0:
        return "the input itself"
    return f"mask {rows[0]}" if len(rows) == 1 else f"masks {rows[0]} to {rows[-1]}"


def _checked(
    scorer: Scorer,
    launched: Any,
    n: int,
    rows: IntArray,
    width: int | None = None,
    columns: Sequence[int] = (),
) -> FloatArray:
    """Fetch the answer to a batch of n and check it: (n, outputs), or of them only `columns`."""
    shape = tuple(getattr(launched, "shape", None) or np.shape(launched))
    if len(shape) not in (1, 2) or shape[0] != n or 0 in shape:
        raise ModelError(
            f"The model must return scores of shape ({n}, outputs) for a batch of {n}; "
            f"for {_place(rows)} it returned shape {shape}."
            + (" Return one score per output, such as a mean over pixels." if shape[2:] else "")
        )
    outputs = 1 if len(shape) == 1 else shape[1]
    if width is not None and outputs != width:
        raise ModelError(
            f"The model must return as many outputs for every mask; it returned {width} for the "
            f"input itself and {outputs} for {_place(rows)}."
        )
    try:
        kept = launched[:, list(columns)] if columns and len(shape) == 2 else launched
        raw = scorer.fetch(kept)
        if np.iscomplexobj(raw):
            raise TypeError("complex numbers")
        scores = np.asarray(raw, dtype=np.float64).reshape(n, -1)
    except (TypeError, ValueError) as error:
        message = f"The model must return real numbers; for {_place(rows)} it did not."
        raise ModelError(message) from error
    except Exception as error:
        raise _failed(rows, error) from error
    if not np.isfinite(scores).all():
        row, column = (int(place) for place in np.argwhere(~np.isfinite(scores))[0])
        place = row - (n - len(rows))  # the input itself, if among them, comes first
        where = _place(rows[place : place + 1] if place >= 0 else rows[:0])
        output = columns[column] if columns else column
        raise ModelError(
            f"The model must return finite scores; for {where} output {output} is "
            f"{scores[row, column]}."
        )
    return scores
