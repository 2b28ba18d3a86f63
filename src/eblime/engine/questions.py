"""Questions of the loop and the model's replies; nothing is asked twice."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from eblime._types import FloatArray, IntArray
from eblime.engine.batches import Batches
from eblime.engine.cache import CacheSection, as_cache
from eblime.engine.calls import Caller, ModelError, OverBudgetError, model_error
from eblime.engine.settings import LoopSettings
from eblime.engine.targets import Labels, columns_of
from eblime.protocols import INPUT_ITSELF, Neighbourhood, Scene

OVER_BUDGET = "the number of model calls allowed by max_calls was reached"
INTERRUPTED = "interrupted by the user"
_NEAR = 1e-3  # of the range of an output: how far two answers of one model to one input may differ
_DIGITS = 1e-6  # of the largest score of an output: the last digits of single precision


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Question:
    """Perturbed inputs that the loop wants scores for."""

    neighbourhood: Neighbourhood
    rows: IntArray  # numbers of the perturbed inputs
    targets: Any  # which outputs to keep: a number of the highest, or a list
    labels: Labels | None
    ranked: bool  # whether the outputs can be compared, as those of a classifier
    opening: Reply | None  # the reply of the first round; None in the first round
    expected: int = 0  # masks that it will take in all, as far as is known
    before: FloatArray | None = None  # (n, T) scores of the perturbed inputs before these
    budget: int | None = None  # inputs that the model may be asked about; None is no limit
    least: int = 1  # different inputs that must have an answer if the questions end early


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


class PendingReply:
    """Collects the scores for one question: which are known, and which have to be asked.

    Perturbed inputs that are the same are asked once, and not at all if an earlier round or the
    cache knows the answer.

    Attributes
    ----------
    asked
        Numbers of the inputs to ask about; the input itself, where it is asked, comes first.
    again
        Numbers of inputs whose answers are stored, to see that it is still the same model.
    original
        All outputs for the input itself; None while they are not known.
    n_answered
        How many of the perturbed inputs in question have an answer.
    columns_to_fetch
        Outputs that `enter` needs; empty is all, which a cache stores.
    """

    def __init__(
        self, question: Question, section: CacheSection | None = None, *, shuffle: bool = False
    ) -> None:
        rows, near = question.rows, question.neighbourhood
        self.question, self._section = question, section
        n_before = 0 if question.before is None else len(question.before)
        numbers = np.concatenate([[INPUT_ITSELF], np.arange(n_before), rows]).astype(np.intp)
        keys = near.keys(numbers)
        # the number of the first input that is the same; -1 is the input itself
        self._earlier = _first_equal(keys)[1 + n_before :] - 1
        known, places = self._earlier < n_before, np.arange(len(rows))  # asked before
        self._known = np.flatnonzero(known)
        self._source = np.where(known, places, self._earlier - n_before)
        self._repeats = np.bincount(self._source, minlength=len(rows))
        wanted = np.flatnonzero(~known & (self._source == places))
        self._stored: dict[int, FloatArray] = {}  # by position, and `INPUT_ITSELF`
        if section is not None:
            self._itself, self._keys = keys[0], keys[1 + n_before :]
            self._stored = self._read(section, wanted)
        self.asks_itself = question.opening is None and INPUT_ITSELF not in self._stored
        self._again = [] if section is None else self._choose_again(section)
        self.again = np.array([rows[k] if k >= 0 else k for k in self._again], np.intp)
        todo = wanted[[k not in self._stored for k in wanted]] if self._stored else wanted
        left = len(todo)
        if question.budget is not None:
            afford = getattr(question.neighbourhood, "affordable", int)
            left = max(0, afford(question.budget) - self.asks_itself - len(self.again))
        # what is asked first must not be special, as in an exhaustive design
        order = np.random.default_rng(0).permutation if shuffle else np.asarray
        self._todo = order(todo[:left])
        itself = [INPUT_ITSELF] if self.asks_itself else []
        self.asked = np.concatenate([itself, rows[self._todo]]).astype(np.intp)
        self.original: FloatArray | None = None
        self.columns: Sequence[int] = ()
        self.columns_to_fetch: Sequence[int] = ()
        self._done = np.zeros(len(rows), dtype=bool)
        if question.opening is not None:
            self._open(question.opening.original)
        elif INPUT_ITSELF in self._stored:
            self._open(self._stored[INPUT_ITSELF])
        self.n_answered = int(self._repeats[self._done].sum())

    def _read(self, section: CacheSection, wanted: IntArray) -> dict[int, FloatArray]:
        """Stored answers by position, and that of the input itself, `INPUT_ITSELF`."""
        keys = {self._keys[k]: int(k) for k in wanted} | {self._itself: INPUT_ITSELF}
        return {keys[key]: found for key, found in section.read([*keys]).items()}

    def _choose_again(self, section: CacheSection) -> list[int]:
        """Positions of stored answers to ask about again, once for each explanation."""
        question = self.question
        if question.opening is not None and question.opening.verified:
            return []
        stored = [k for k in self._stored if k >= 0]
        if not stored and question.opening is None and INPUT_ITSELF in self._stored:
            stored = [INPUT_ITSELF]
        shuffled: list[int] = np.random.default_rng().permutation(stored).astype(int).tolist()
        return shuffled[: section.verify][: question.budget]

    def _open(self, original: FloatArray) -> None:
        """Enter the scores of the input itself, and every answer that is known already."""
        question = self.question
        self.original = original
        self.columns = list(
            columns_of(question.targets, original, question.labels, ranked=question.ranked)
            if question.opening is None
            else question.opening.columns
        )
        if self._section is None:
            self.columns_to_fetch = self.columns
        self._scores = np.empty((len(self._source), len(self.columns)))
        earlier = self._earlier[self._known]
        if question.before is not None:
            self._scores[self._known] = question.before[earlier]
        self._scores[self._known[earlier < 0]] = original[self.columns]
        self._done[self._known] = True
        for k, stored in self._stored.items():
            _check_outputs(stored, len(original))
            if k >= 0:
                self._scores[k], self._done[k] = stored[self.columns], True

    def check_again(self, scores: FloatArray) -> None:
        """Refuse stored answers if those asked about again, `again`, differ in any output.

        The last digits may differ, because they can depend on the batch that an input is in.
        """
        for k, now in zip(self._again, scores, strict=True):
            _check_outputs(self._stored[k], len(now))
            known = np.stack([*self._stored.values()])
            largest = np.abs(known).max(axis=0)
            allowed = _NEAR * np.ptp(known, axis=0) + _DIGITS * (largest + _NEAR * largest.max())
            differs = np.flatnonzero(~(np.abs(self._stored[k] - now) <= allowed))
            if differs.size:
                j = differs[0]
                raise ValueError(
                    f"`cache` has answers of another model: output {j} of one of them is "
                    f"{self._stored[k][j]:.6g}, and the model now returns {now[j]:.6g}. Give the "
                    "model another `model_id`, or clear the cache. If the answers of the model "
                    "vary by chance, use AnswerCache(path, model_id=..., verify=0)."
                )

    def enter(self, span: slice, scores: FloatArray, *, whole: bool = True) -> None:
        """Enter the scores of some of `asked`, (n, outputs), and store them in the cache.

        If not `whole`, they have only the outputs of `columns_to_fetch`, except those that come
        with the input itself.
        """
        opens = self.asks_itself and span.start == 0
        start, stop = (bound - self.asks_itself for bound in (span.start, span.stop))
        positions = self._todo[max(0, start) : stop]
        if self._section is not None:
            keys = [self._keys[k] for k in positions]
            self._section.write([self._itself, *keys] if opens else keys, scores)
        if opens:
            self._open(scores[0])
            scores = scores[1:]
        if opens or whole or self._section is not None:
            scores = scores[:, self.columns]
        self._scores[positions], self._done[positions] = scores, True
        self.n_answered = int(self._repeats[self._done].sum())

    @property
    def is_enough(self) -> bool:
        """Whether the answers are enough to end the questions early."""
        return self.original is not None and int(self._done.sum()) >= self.question.least

    def complete(self, *, batch_size: int, calls: int, stopped: str | None = None) -> Reply:
        """The reply; with a reason where some perturbed inputs have no answer."""
        assert self.original is not None  # the input itself is known, or it is asked first
        answered = np.flatnonzero(self._done[self._source])
        return Reply(
            scores=self._scores[self._source[answered]],
            original=self.original,
            columns=self.columns,
            batch_size=batch_size,
            calls=calls,
            answered=None if len(answered) == len(self._source) else answered,
            stopped=stopped or (None if len(answered) == len(self._source) else OVER_BUDGET),
            verified=bool(len(self.again)),
        )


def _first_equal(keys: Sequence[bytes]) -> IntArray:
    """For each key, the position of the first one that is the same."""
    first: dict[bytes, int] = {}
    return np.array([first.setdefault(key, k) for k, key in enumerate(keys)], dtype=np.intp)


def _check_outputs(stored: FloatArray, n: int) -> None:
    """Refuse a stored answer of a model with another number of outputs."""
    if len(stored) != n:
        raise ValueError(
            f"`cache` must have answers of this model, with {n} outputs; it has answers with "
            f"{len(stored)}. Give the model another `model_id`, or clear the cache."
        )


class Remembered:
    """The model, opened for one input: answers questions, from the cache where it can."""

    def __init__(
        self,
        caller: Caller,
        batches: Batches,
        section_of: Callable[[Neighbourhood], CacheSection | None],
        report: Callable[[int], None],
    ) -> None:
        self._caller, self._batches, self._report = caller, batches, report
        self._section_of = section_of
        self._section: CacheSection | None = None

    def answer(self, question: Question) -> Reply:
        """Scores of the perturbed inputs in question; `question.targets` picks the outputs.

        A budget or, with `partial`, Ctrl-C may leave the last of them without an answer.
        """
        caller, batches, near = self._caller, self._batches, question.neighbourhood
        self._section = self._section or self._section_of(near)
        reply = PendingReply(question, self._section, shuffle=caller.calls.partial)
        before, reported, stopped = caller.sent, reply.n_answered, None
        caller.limit = sys.maxsize if question.budget is None else before + question.budget
        if len(reply.again):  # before anything else is asked or stored
            reply.check_again(np.concatenate([s for _, s in batches.answer(near, reply.again)]))
        self._report(reported)
        try:
            for span, scores in batches.answer(near, reply.asked, reply):
                reply.enter(span, scores, whole=False)
                self._report(reply.n_answered - reported)
                reported = reply.n_answered
        except KeyboardInterrupt:
            if not (caller.calls.partial and reply.is_enough):
                raise
            stopped = INTERRUPTED
        except OverBudgetError as error:
            if not reply.is_enough:
                raise model_error(reply.asked, error.__cause__ or error) from error
        if reply.original is None:
            raise ModelError("`max_calls` was reached before the model answered.")
        size = batches.size if len(reply.asked) else 0
        return reply.complete(batch_size=size, calls=caller.sent - before, stopped=stopped)


@contextmanager
def open_model(
    settings: LoopSettings, scene: Scene, report: Callable[[int], None] = lambda n: None
) -> Iterator[Remembered]:
    """Open the model for one input: model -> `Caller` -> `Batches` -> `Remembered`.

    The cache is opened at once, so that a file that cannot be used is refused before the model is
    asked; the model is opened when it is needed.
    """
    caller = Caller(settings.model, settings.calls)
    with ExitStack() as stack:
        sections = stack.enter_context(open_cache(settings))
        batches = Batches(caller, scene, stack, steady=settings.steady)
        yield Remembered(caller, batches, sections, report)


@contextmanager
def open_cache(settings: LoopSettings) -> Iterator[Callable[[Neighbourhood], CacheSection | None]]:
    """A function from perturbed inputs to their stored answers, which are None without a cache."""
    cache = None if settings.calls.cache is None else as_cache(settings.calls.cache)
    if cache is None:
        yield lambda neighbourhood: None
        return
    with cache.sections(settings.model) as section_of:
        yield lambda neighbourhood: section_of(neighbourhood.scope)
