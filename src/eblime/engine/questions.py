"""Questions of the loop and the model's replies: nothing is asked twice, in batches that fit.

`OpenModel` is the model, opened for one input; the answers of its batches are checked.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from eblime._types import FloatArray, IntArray
from eblime.engine.cache import CacheSection, open_cache
from eblime.engine.calls import (
    Caller,
    ModelError,
    OverBudgetError,
    check_scores,
    is_out_of_memory,
    model_error,
)
from eblime.engine.settings import LoopSettings
from eblime.engine.targets import columns_of
from eblime.models.conversion import is_ranked
from eblime.protocols import (
    INPUT_ITSELF,
    Neighbourhood,
    Scene,
    is_rendered,
    masks_at,
)

OVER_BUDGET = "the number of model calls allowed by max_calls was reached"
INTERRUPTED = "interrupted by the user"
_NEAR = 1e-3  # of the range of an output: how far two answers of one model to one input may differ
_DIGITS = 1e-6  # of the largest score of an output: the last digits of single precision
_SIZES = (4, 8, 16, 32, 64, 128, 256)  # of batches of rendered inputs
_BATCH_BYTES = 64 << 20  # a batch whose size is tuned stays below this


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Question:
    """Perturbed inputs that the loop wants scores for: those that have none yet."""

    settings: LoopSettings
    scene: Scene
    neighbourhood: Neighbourhood
    targets: Any  # which outputs to keep: a number of the highest, or a list
    opening: Reply | None = None  # the reply of the first round; None in the first round
    before: FloatArray | None = None  # (n, T) scores of the first n perturbed inputs
    budget: int | None = None  # inputs that the model may be asked about; None is no limit
    least: int = 1  # different inputs that must have an answer if the questions end early

    @property
    def scope(self) -> Any:
        """What decides an input besides its key."""
        return getattr(self.neighbourhood, "scope", self.scene)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the model answered to a question."""

    scores: FloatArray  # (n, T) of the perturbed inputs that have an answer
    original: FloatArray  # (outputs,) for the input itself
    columns: Sequence[int]  # the outputs kept
    batch_size: int  # of the last full batch; 0 if the model was not asked
    calls: int  # inputs that the model was asked about, in every attempt
    answered: IntArray | None = None  # positions among those in question; None is all of them
    stopped: str | None = None  # why some have no answer
    verified: bool = False  # the model was asked about stored answers again
    about: Mapping[str, str] = field(default_factory=dict)  # how the model scored on its device


class PendingReply:
    """Collects the scores for one question: which are known, and which have to be asked.

    Perturbed inputs that are the same are asked once, and not at all if an earlier round or the
    cache knows the answer. Each has a place: 0 is the input itself, then come all perturbed inputs
    by number; the score of one that repeats is at the place of the first.

    `asked` has the numbers of the inputs to ask about, the input itself first, `again` those whose
    stored answers are compared with the model's, and `original` all outputs for the input itself.
    """

    def __init__(self, question: Question, section: CacheSection | None = None) -> None:
        self.question, self._section, opening = question, section, question.opening
        near, budget = question.neighbourhood, question.budget
        self._known = 1 + (0 if question.before is None else len(question.before))
        self._keys = near.keys(np.arange(INPUT_ITSELF, len(near.masks)))
        first: dict[bytes, int] = {}
        places = [first.setdefault(key, place) for place, key in enumerate(self._keys)]
        self._places = np.array(places[self._known :], dtype=np.intp)
        self._done = np.zeros(len(places), dtype=bool)
        wanted = [place for place in dict.fromkeys(self._places.tolist()) if place >= self._known]
        wanted = wanted if opening else [0, *wanted]
        self._stored: dict[int, FloatArray] = {}
        again: list[int] = []
        if section is not None:
            found = section.read([self._keys[place] for place in wanted])
            self._stored = {k: found[self._keys[k]] for k in wanted if self._keys[k] in found}
            if not (opening and opening.verified):
                choices = [place for place in self._stored if place] or [*self._stored]
                chosen = np.random.default_rng().permutation(choices)[: section.verify]
                again = chosen[:budget].tolist()
        asked = [place for place in wanted if place not in self._stored]
        if budget is not None:
            afford = getattr(near, "affordable", int)
            asked = asked[: max(0, afford(budget) - len(again))]
        if question.settings.calls.partial:
            # what is asked first must not be special, as in an exhaustive design
            asked = np.random.default_rng(0).permutation(asked).tolist()
            asked.sort(key=bool)
        self.asked = np.array(asked, dtype=np.intp) + INPUT_ITSELF
        self.again = np.array(again, dtype=np.intp) + INPUT_ITSELF
        self.original: FloatArray | None = None
        self.columns: Sequence[int] = ()
        if opening is not None:
            self._enter_original(opening.original)
        elif 0 in self._stored:
            self._enter_original(self._stored[0])

    @property
    def n_answered(self) -> int:
        """How many of the perturbed inputs in question have an answer."""
        return int(np.count_nonzero(self._done[self._places]))

    def _enter_original(self, original: FloatArray) -> None:
        """Enter the scores of the input itself, and every answer that is known already."""
        question, settings, opening = self.question, self.question.settings, self.question.opening
        self.original = original
        self.columns = (
            list(opening.columns)
            if opening is not None
            else columns_of(question.targets, original, settings.labels, is_ranked(settings.model))
        )
        self._scores = np.empty((len(self._done), len(self.columns)))
        self._scores[0] = original[self.columns]
        if question.before is not None:
            self._scores[1 : self._known] = question.before
        self._done[: self._known] = True
        for place, stored in self._stored.items():
            _check_outputs(stored, len(original))
            self._scores[place], self._done[place] = stored[self.columns], True

    def check_again(self, scores: FloatArray) -> None:
        """Refuse stored answers if those asked about again, `again`, differ in any output.

        The last digits may differ, because they can depend on the batch that an input is in.
        """
        for place, now in zip(self.again - INPUT_ITSELF, scores, strict=True):
            before = self._stored[place]
            _check_outputs(before, len(now))
            known = np.stack([*self._stored.values()])
            largest = np.abs(known).max(axis=0)
            allowed = _NEAR * np.ptp(known, axis=0) + _DIGITS * (largest + _NEAR * largest.max())
            differs = np.flatnonzero(~(np.abs(before - now) <= allowed))
            if differs.size:
                j = differs[0]
                raise ValueError(
                    f"`cache` has answers of another model: output {j} of one of them is "
                    f"{before[j]:.6g}, and the model now returns {now[j]:.6g}. Give the "
                    "model another `model_id`, or clear the cache. If the answers of the model "
                    "vary by chance, use AnswerCache(path, model_id=..., verify=0)."
                )

    def enter(self, span: slice, scores: FloatArray) -> None:
        """Enter the scores of some of `asked`, (n, outputs), and store them in the cache."""
        places = self.asked[span] - INPUT_ITSELF
        if self._section is not None:
            self._section.write([self._keys[place] for place in places], scores)
        if self.original is None:
            self._enter_original(scores[0])
        self._scores[places], self._done[places] = scores[:, self.columns], True

    @property
    def is_enough(self) -> bool:
        """Whether the answers are enough to end the questions early."""
        answered = self._places[self._done[self._places]]
        return self.original is not None and len(np.unique(answered)) >= self.question.least

    def complete(
        self,
        *,
        batch_size: int,
        calls: int,
        stopped: str | None = None,
        about: Mapping[str, str] | None = None,
    ) -> Reply:
        """The reply; with a reason where some perturbed inputs have no answer."""
        assert self.original is not None  # the input itself is known, or it is asked first
        answered = np.flatnonzero(self._done[self._places])
        whole = len(answered) == len(self._places)
        return Reply(
            scores=self._scores[self._places[answered]],
            original=self.original,
            columns=self.columns,
            batch_size=batch_size,
            calls=calls,
            answered=None if whole else answered,
            stopped=stopped or (None if whole else OVER_BUDGET),
            verified=bool(len(self.again)),
            about=about or {},
        )


def _check_outputs(stored: FloatArray, n: int) -> None:
    if len(stored) != n:
        raise ValueError(
            f"`cache` must have answers of this model, with {n} outputs; it has answers with "
            f"{len(stored)}. Give the model another `model_id`, or clear the cache."
        )


class _Batch(NamedTuple):
    span: slice  # of the numbers in question
    launched: Any
    begun: float


class OpenModel:
    """The model, opened for one input: answers questions, in batches, from the cache where it can.

    One batch at a time while the batch size is tuned. Then the next batch is launched before the
    last is fetched where the model allows it, so that a GPU never waits; or as many as
    `concurrency` says. A model renders the inputs itself where it can; one that is called with a
    timeout, with retries or several times at once gets batches of inputs.

    The cache is opened at once, so that a file that cannot be used is refused before the model is
    asked; the model is opened when it is needed. The stack closes both. `report` gets the number of
    perturbed inputs in question that have an answer.
    """

    def __init__(
        self,
        settings: LoopSettings,
        scene: Scene,
        stack: ExitStack,
        report: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._steady, self._caller = settings.steady, Caller(settings.model, settings.calls)
        self._section_of = stack.enter_context(open_cache(settings.calls.cache, settings.model))
        self._section: CacheSection | None = None
        self._scene: Any = scene
        self._stack, self._report = stack, report
        self._device: Any = None
        self._renderer: Any = None
        self._buffer: Any = None
        self._sizes: Sequence[int] = ()
        self._outputs: int | None = None
        self._size = 0  # of the last full batch

    def answer(self, question: Question) -> Reply:
        """Scores of the perturbed inputs in question; `question.targets` picks the outputs.

        A budget or, with `partial`, Ctrl-C may leave the last of them without an answer.
        """
        caller, near = self._caller, question.neighbourhood
        self._section = self._section or self._section_of(question.scope)
        reply = PendingReply(question, self._section)
        before, stopped = caller.sent, None
        caller.limit = sys.maxsize if question.budget is None else before + question.budget
        if len(reply.again):  # before anything else is asked or stored
            reply.check_again(np.concatenate([s for _, s in self._ask(near, reply.again)]))
        self._report(reply.n_answered)
        try:
            for span, scores in self._ask(near, reply.asked):
                reply.enter(span, scores)
                self._report(reply.n_answered)
        except KeyboardInterrupt:
            if not (caller.calls.partial and reply.is_enough):
                raise
            stopped = INTERRUPTED
        except OverBudgetError as error:
            if not reply.is_enough:
                raise model_error(reply.asked, error.__cause__ or error) from error
        if reply.original is None:
            raise ModelError("`max_calls` was reached before the model answered.")
        size = self._size if len(reply.asked) else 0
        calls, about = caller.sent - before, getattr(self._device, "about", None)
        return reply.complete(batch_size=size, calls=calls, stopped=stopped, about=about)

    def _ask(self, near: Neighbourhood, rows: IntArray) -> Iterator[tuple[slice, FloatArray]]:
        """Scores of perturbed inputs as they come: which of `rows`, and (n, outputs).

        The batch with the input itself comes first; it warms the model up and is not timed.
        """
        if not len(rows):
            return
        caller, start = self._caller, 0
        tuner = self._prepare(near, len(rows))
        waiting: list[_Batch] = []
        failed: Exception | None = None
        while True:
            size = 0 if failed else min(tuner.size, len(rows) - start, caller.limit - caller.sent)
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
                opens = rows[waiting[0].span.start] == INPUT_ITSELF
                try:
                    batch, scores = self._fetch(waiting, rows, opens=opens)
                except (ModelError, OverBudgetError) as error:
                    failed = failed or error
                    waiting = [] if opens else waiting  # other answers still count
                else:
                    if not opens:
                        seconds = time.perf_counter() - batch.begun
                        tuner.learn(len(scores), seconds, len(rows) - start)
                    self._size = tuner.size
                    yield batch.span, scores
            elif failed:
                raise failed
            else:
                return  # every input has an answer, or no call is left

    def _prepare(self, near: Neighbourhood, n: int) -> BatchTuner:
        """Prepare for n inputs; open the model if it is the first time, closed by the stack."""
        calls, model, scene = self._caller.calls, self._caller.model, self._scene
        if not self._sizes:
            if calls.plain and hasattr(model, "scorer") and is_rendered(scene):
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

    def _fetch(
        self, waiting: list[_Batch], rows: IntArray, *, opens: bool
    ) -> tuple[_Batch, FloatArray]:
        """Wait for the batch that opens, or whichever is done first; take it, with its scores."""
        if not opens and isinstance(waiting[0].launched, Future):
            done, _ = wait([batch.launched for batch in waiting], return_when=FIRST_COMPLETED)
            waiting.sort(key=lambda batch: batch.launched not in done)
        batch = waiting.pop(0)
        launched, asked = batch.launched, rows[batch.span]
        try:
            returned = launched.result() if isinstance(launched, Future) else launched
            scores = check_scores(returned, asked, self._outputs)
        except (ModelError, OverBudgetError):
            raise
        except Exception as error:
            raise self._failure(asked, error) from error
        self._outputs = scores.shape[1]
        return batch, scores

    def _failure(self, rows: IntArray, error: Exception) -> ModelError:
        if rows[0] != INPUT_ITSELF or not is_rendered(self._scene):
            return model_error(rows, error)
        shape = self._scene.batch(1).shape[1:]
        read = f"The input was read as one {self._scene.domain} of shape {shape}"
        return model_error(rows, error, f" {read}; to explain several, use `eblime.explain_many`.")


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
