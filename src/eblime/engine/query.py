"""Asking the model: in batches, checked answer by answer, with a tuned batch size."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from eblime._progress import Progress, progress_reporter
from eblime._types import FloatArray, IntArray
from eblime.engine.batch_size import BatchTuner
from eblime.engine.scorers import RowScorer
from eblime.protocols import INPUT_ITSELF, Neighbourhood

__all__ = ["Asking", "ModelError", "Reply", "ask", "progress_of", "reply_to", "rows_to_ask"]


class ModelError(RuntimeError):
    """The model failed or returned something that is not a score, for the masks named."""


class Asking(Protocol):
    """A question: which perturbed inputs, and which outputs of the model."""

    @property
    def neighbourhood(self) -> Neighbourhood: ...  # noqa: D102

    @property
    def rows(self) -> IntArray: ...  # noqa: D102

    @property
    def opening(self) -> Reply | None: ...  # noqa: D102

    def choose(self, original: FloatArray) -> Sequence[int]: ...  # noqa: D102


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the model answered to a question."""

    scores: FloatArray  # (n, T)
    original: FloatArray  # (outputs,) for the input itself
    columns: Sequence[int]  # the outputs kept
    batch_size: int  # of the last full batch
    calls: int  # inputs that the model was asked about


@contextmanager
def progress_of(progress: Progress, total: int) -> Iterator[Callable[..., None]]:
    """Report progress over all rounds.

    The function takes the number of newly answered masks and, where a stop rule has a new estimate
    of it, the total.
    """
    done = 0
    with progress_reporter(progress, total, unit="mask", what="asking the model") as report:

        def step(n: int, expected: int | None = None) -> None:
            nonlocal done
            done += n
            report(done, total=expected)

        yield step


def ask(
    scorer: RowScorer,
    question: Asking,
    *,
    batch_size: int | None,
    steady: bool = False,
    report: Callable[[int], None] = lambda n: None,
) -> Reply:
    """Scores of the perturbed inputs in question, for some outputs.

    In the first round the input itself is asked with the first batch, which warms the model up and
    is not timed; `question.choose` picks the outputs from its scores. Perturbed inputs that are
    the input itself are not asked again. A `steady` batch size is not tuned: the last digits of a
    network's scores can depend on it, and they must not depend on how fast the machine is.
    """
    neighbourhood, rows, known = question.neighbourhood, question.rows, question.opening
    whole = neighbourhood.repeats(rows)
    todo, first_row = rows[~whole], int(rows[0]) if len(rows) else 0
    tuner = BatchTuner(scorer, batch_size, steady)
    columns: list[int] = [] if known is None else list(known.columns)
    width = None if known is None else len(known.original)
    answers = _answers(scorer, neighbourhood, todo, tuner, columns, width)
    if known is None:
        some, opening = next(answers)
        original = opening[0]
        columns += question.choose(original)
        scores = np.empty((len(rows), len(columns)))
        scores[some - first_row] = opening[1:][:, columns]
        report(len(some))
    else:
        original, scores = known.original, np.empty((len(rows), len(columns)))
    scores[whole] = original[columns]
    report(int(whole.sum()))
    for some, answer in answers:
        scores[some - first_row] = answer
        report(len(some))
    return Reply(
        scores=scores,
        original=original,
        columns=columns,
        batch_size=tuner.choice[0],
        calls=len(todo) + (known is None),
    )


def rows_to_ask(question: Asking) -> IntArray:
    """The perturbed inputs to ask about in one call, the input itself first in the first round."""
    rows = question.rows[~question.neighbourhood.repeats(question.rows)]
    if question.opening is not None:
        return rows
    return np.concatenate([[INPUT_ITSELF], rows]).astype(np.intp)


def reply_to(question: Asking, scores: FloatArray) -> Reply:
    """The reply made of the scores of `rows_to_ask`, (n, outputs)."""
    known, rows = question.opening, question.rows
    whole = question.neighbourhood.repeats(rows)
    original = scores[0] if known is None else known.original
    columns = question.choose(original) if known is None else known.columns
    kept = np.empty((len(rows), len(columns)))
    kept[whole] = original[list(columns)]
    kept[~whole] = scores[len(scores) - int((~whole).sum()) :][:, list(columns)]
    return Reply(
        scores=kept, original=original, columns=columns, batch_size=len(scores), calls=len(scores)
    )


def _answers(
    scorer: RowScorer,
    neighbourhood: Neighbourhood,
    todo: IntArray,
    tuner: BatchTuner,
    columns: list[int],
    width: int | None,
) -> Iterator[tuple[IntArray, FloatArray]]:
    """Answers batch by batch; without a known `width` the first has all outputs, the input first.

    Once the batch size is settled the next batch is launched before the last is fetched, so that a
    GPU never waits.
    """
    waiting: deque[tuple[IntArray, Any, float]] = deque()
    start = 0
    if width is None:
        rows, launched = _open(scorer, neighbourhood, todo, tuner)
        waiting.append((rows, launched, time.perf_counter()))
        start = len(rows)
    while start < len(todo) or waiting:
        if start < len(todo) and len(waiting) < (2 if tuner.settled and scorer.overlaps else 1):
            size, way = tuner.choice
            rows = todo[start : start + size]
            begun = time.perf_counter()
            try:
                launched = _launched(scorer, neighbourhood, rows, way)
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


def _open(
    scorer: RowScorer, neighbourhood: Neighbourhood, todo: IntArray, tuner: BatchTuner
) -> tuple[IntArray, Any]:
    """Launch the first batch, the input itself before the rest; smaller if memory is short."""
    while True:
        rows = todo[: tuner.choice[0] - 1]
        try:
            begin = np.concatenate([[INPUT_ITSELF], rows]).astype(np.intp)
            return rows, _launched(scorer, neighbourhood, begin, 0)
        except ModelError as error:
            if not (_out_of_memory(error) and tuner.halve()):
                raise


def _launched(scorer: RowScorer, neighbourhood: Neighbourhood, rows: IntArray, way: int) -> Any:
    """Launch a batch; an error of the model says which masks it was asked about."""
    try:
        return scorer.launch(neighbourhood, rows, way)
    except Exception as error:
        raise _failed(rows[rows >= 0], error) from error


def _out_of_memory(error: ModelError) -> bool:
    """Whether a model failed for want of memory: NumPy's, Python's or torch's error."""
    return isinstance(error.__cause__, MemoryError) or (
        type(error.__cause__).__name__ == "OutOfMemoryError"
    )


def _failed(rows: IntArray, error: Exception) -> ModelError:
    """The error that says where the model failed."""
    return ModelError(f"The model failed on {_place(rows)}: {type(error).__name__}: {error}")


def _place(rows: IntArray) -> str:
    """The masks of a batch, for a message."""
    if len(rows) == 0:
        return "the input itself"
    return f"mask {rows[0]}" if len(rows) == 1 else f"masks {rows[0]} to {rows[-1]}"


def _checked(
    scorer: RowScorer,
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
