"""Asking the model: in batches, checked answer by answer, with a tuned batch size."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from eblime._progress import Progress, progress_reporter
from eblime._types import FloatArray, IntArray
from eblime.engine.batch_size import BatchTuner
from eblime.engine.calls import is_out_of_memory
from eblime.engine.model_errors import ModelError, checked, failed
from eblime.engine.plan import OVER_BUDGET, Asking, Book, Plan, Reply, ReplyBuilder, plan_of
from eblime.engine.scorers import RowScorer
from eblime.models.scores import as_scores
from eblime.protocols import INPUT_ITSELF, Neighbourhood

__all__ = ["ModelError", "Reply", "ask", "progress_of"]

INTERRUPTED = "interrupted by the user"


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
    book: Book | None = None,
    concurrency: int = 1,
    partial: bool = False,
) -> Reply:
    """Scores of the perturbed inputs in question, for some outputs.

    In the first round the input itself is asked with the first batch, which warms the model up and
    is not timed; `question.choose` picks the outputs from its scores. Perturbed inputs that are the
    same are asked once, and not at all if an earlier round or a book knows the answer.

    Parameters
    ----------
    scorer
        Calls the model; it is not touched if nothing has to be asked.
    question
        What to ask. A budget may leave the last perturbed inputs without an answer.
    batch_size
        Inputs per model call; None finds the fastest size.
    steady
        Do not tune the batch size: the last digits of a network's scores can depend on it, and they
        must not depend on how fast the machine is.
    report
        Called with the number of newly answered perturbed inputs.
    book
        Stored answers: looked up before the model is asked, and written after every batch.
    concurrency
        Batches under way at once, for a scorer that launches futures.
    partial
        On Ctrl-C return what there is, if that is at least `question.least`.
    """
    plan = plan_of(question, book)
    if partial:  # what is asked first must not be special, as in an exhaustive design
        plan = replace(plan, todo=np.random.default_rng(0).permutation(plan.todo))
    original = plan.original()
    builder = None if original is None else ReplyBuilder(plan, original)
    report(0 if builder is None else builder.ready)
    batches, calls, stopped = None, len(plan.again), OVER_BUDGET if plan.cut else None
    if plan.again:  # before anything else is asked or stored
        rows = np.array([*plan.again.values()], dtype=np.intp)
        plan.verify(_ask_again(scorer, question.neighbourhood, rows))
    if plan.asks_itself or len(plan.todo):
        batches = _Batches.of(scorer, plan, builder, batch_size, steady, concurrency)
        batches.whole = book is not None
        try:
            for batch in batches.answered():
                calls += len(batch.positions) + batch.opens
                if book is not None:
                    book.write(batch.keys(plan), batch.scores)
                if builder is None:
                    builder = ReplyBuilder(plan, batch.scores[0])
                    batches.columns = builder.columns
                    report(builder.ready)
                report(builder.put(batch.positions, batch.of(builder.columns)))
        except KeyboardInterrupt:
            if not partial or builder is None or builder.n_done < question.least:
                raise
            stopped = INTERRUPTED
    assert builder is not None  # the input itself is known, or it is asked first
    return builder.reply(0 if batches is None else batches.tuner.choice[0], calls, stopped)


def _ask_again(scorer: RowScorer, neighbourhood: Neighbourhood, rows: IntArray) -> FloatArray:
    """All outputs for perturbed inputs whose answers are stored, (n, outputs)."""
    masks = rows[rows != INPUT_ITSELF]
    try:
        launched = scorer.launch(neighbourhood, rows)
    except Exception as error:
        raise failed(masks, error) from error
    return checked(scorer, _returned(launched, masks), len(rows), masks)


def _spread(n: int, scorer: RowScorer, concurrency: int) -> int | None:
    """The batch size that keeps all calls under way busy; None where there is only one."""
    return None if concurrency == 1 else min(max(scorer.sizes), -(-n // concurrency))


@dataclass(slots=True, kw_only=True, eq=False)
class _Batch:
    """A batch under way, and its scores once they are there."""

    positions: IntArray  # of its perturbed inputs in the question
    opens: bool  # the input itself comes first
    launched: Any
    begun: float
    scores: FloatArray = field(default_factory=lambda: np.empty((0, 0)))
    whole: bool = True  # the scores have all outputs, not only those kept

    def keys(self, plan: Plan) -> list[bytes]:
        """The key of each of its inputs."""
        return [*([plan.itself] if self.opens else []), *(plan.keys[k] for k in self.positions)]

    def of(self, columns: list[int]) -> FloatArray:
        """The scores of its perturbed inputs for some outputs."""
        scores = self.scores[1:] if self.opens else self.scores
        return scores[:, columns] if self.whole else scores


@dataclass(slots=True, kw_only=True, eq=False)
class _Batches:
    """Batches that are launched and collected.

    One at a time while the batch size is tuned. Then the next batch is launched before the last is
    fetched where the scorer allows it, so that a GPU never waits; or as many as the user says.
    """

    scorer: RowScorer
    plan: Plan
    tuner: BatchTuner
    most: int  # batches under way at once, if the scorer launches futures
    columns: list[int]  # outputs to keep
    width: int | None  # number of outputs, once known
    whole: bool = False  # fetch all outputs, not only those kept
    start: int = 0  # positions launched so far
    waiting: list[_Batch] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        scorer: RowScorer,
        plan: Plan,
        builder: ReplyBuilder | None,
        batch_size: int | None,
        steady: bool,
        concurrency: int,
    ) -> _Batches:
        """None launched yet."""
        size = batch_size or _spread(len(plan.rows_to_ask), scorer, concurrency)
        return cls(
            scorer=scorer,
            plan=plan,
            tuner=BatchTuner(scorer, size, steady),
            most=concurrency,
            columns=[] if builder is None else builder.columns,
            width=None if builder is None else len(builder.original),
        )

    def answered(self) -> Iterator[_Batch]:
        """The batches, as their answers come; the one with the input itself comes first."""
        try:
            if self.plan.asks_itself:
                self._open()
            while self.start < len(self.plan.todo) or self.waiting:
                if self.start < len(self.plan.todo) and len(self.waiting) < self._limit():
                    self._launch()
                else:
                    yield self._collect()
        finally:
            for batch in self.waiting:
                if isinstance(batch.launched, Future):
                    batch.launched.cancel()

    def _limit(self) -> int:
        """How many batches may be under way; no more once one has failed."""
        if self.most > 1:
            return 0 if any(_has_failed(batch.launched) for batch in self.waiting) else self.most
        return 2 if self.tuner.settled and self.scorer.overlaps else 1

    def _open(self) -> None:
        """Launch the first batch, the input itself before the rest; smaller if memory is short."""
        while True:
            positions = self.plan.todo[: self.tuner.choice[0] - 1]
            try:
                self._begin(positions, opens=True, way=0)
                return
            except ModelError as error:
                if not (is_out_of_memory(error.__cause__) and self.tuner.halve()):
                    raise

    def _launch(self) -> None:
        """Launch the next batch; a size that memory does not hold is given up."""
        size, way = self.tuner.choice
        try:
            self._begin(self.plan.todo[self.start : self.start + size], opens=False, way=way)
        except ModelError as error:
            if not (is_out_of_memory(error.__cause__) and self.tuner.give_up()):
                raise

    def _begin(self, positions: IntArray, *, opens: bool, way: int) -> None:
        """Launch a batch; an error of the model says which masks it was asked about."""
        begun, rows = time.perf_counter(), self.plan.question.rows[positions]
        asked = np.concatenate([[INPUT_ITSELF], rows]).astype(np.intp) if opens else rows
        try:
            launched = self.scorer.launch(self.plan.question.neighbourhood, asked, way)
        except Exception as error:
            raise failed(rows, error) from error
        self.waiting.append(
            _Batch(positions=positions, opens=opens, launched=launched, begun=begun)
        )
        self.start += len(positions)

    def _collect(self) -> _Batch:
        """Wait for a batch, and check its scores."""
        batch = self._next()
        rows = self.plan.question.rows[batch.positions]
        batch.whole = self.whole or batch.opens
        columns = [] if batch.whole else self.columns
        launched = _returned(batch.launched, rows)
        n = len(rows) + batch.opens
        batch.scores = checked(self.scorer, launched, n, rows, self.width, columns)
        if batch.opens:
            self.width = batch.scores.shape[1]
        else:
            left = len(self.plan.todo) - self.start
            self.tuner.learn(len(rows), time.perf_counter() - batch.begun, left)
        return batch

    def _next(self) -> _Batch:
        """The first batch of all, then whichever is done first; those that failed come last.

        So the answers of all calls under way are kept when one fails.
        """
        batches = self.waiting
        if batches[0].opens or not isinstance(batches[0].launched, Future):
            return batches.pop(0)
        while running := [b.launched for b in batches if not _has_failed(b.launched)]:
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for k, batch in enumerate(batches):
                if batch.launched in done and not _has_failed(batch.launched):
                    return batches.pop(k)
        return batches.pop(0)


def _has_failed(launched: Any) -> bool:
    """Whether a call in the background has ended with an error."""
    if not isinstance(launched, Future) or not launched.done():
        return False
    return launched.cancelled() or launched.exception() is not None


def _returned(launched: Any, rows: IntArray) -> Any:
    """What the model returned, once it has."""
    if not isinstance(launched, Future):
        return launched
    try:
        return as_scores(launched.result())
    except Exception as error:
        raise failed(rows, error) from error
