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
    labels: Labels | None = None
    ranked: bool = True  # whether the outputs can be compared, as those of a classifier
    opening: Reply | None = None  # the reply of the first round; None in the first round
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
    cache knows the answer. Each has a place: 0 is the input itself, then come the inputs of earlier
    rounds, then those in question; the score of one that repeats is at the place of the first.

    Attributes
    ----------
    asked
        Numbers of the inputs to ask about; the input itself, where it is asked, comes first.
    again
        Numbers of inputs whose answers are stored, to see that it is still the same model.
    original
        All outputs for the input itself; None while they are not known.
    """

    def __init__(
        self, question: Question, section: CacheSection | None = None, *, shuffle: bool = False
    ) -> None:
        self.question, self._section, opening = question, section, question.opening
        near, budget = question.neighbourhood, question.budget
        self._known = 1 + (0 if question.before is None else len(question.before))
        earlier = np.arange(INPUT_ITSELF, self._known - 1)
        numbers = np.concatenate([earlier, question.rows]).astype(np.intp)
        self._keys = near.keys(numbers)
        first: dict[bytes, int] = {}
        places = [first.setdefault(key, place) for place, key in enumerate(self._keys)]
        self._places = np.array(places[self._known :], dtype=np.intp)
        self._done = np.zeros(len(numbers), dtype=bool)
        wanted = [place for place in dict.fromkeys(self._places.tolist()) if place >= self._known]
        wanted = wanted if opening else [0, *wanted]
        self._stored: dict[int, FloatArray] = {}
        self._again: list[int] = []
        if section is not None:
            found = section.read([self._keys[place] for place in wanted])
            self._stored = {k: found[self._keys[k]] for k in wanted if self._keys[k] in found}
            if not (opening and opening.verified):
                choices = [place for place in self._stored if place] or [*self._stored]
                chosen = np.random.default_rng().permutation(choices)[: section.verify]
                self._again = [int(place) for place in chosen[:budget]]
        asked = [place for place in wanted if place not in self._stored]
        if budget is not None:
            afford = getattr(near, "affordable", int)
            asked = asked[: max(0, afford(budget) - len(self._again))]
        if shuffle:  # what is asked first must not be special, as in an exhaustive design
            asked = np.random.default_rng(0).permutation(asked).tolist()
            asked.sort(key=bool)
        self._asked = np.array(asked, dtype=np.intp)
        self.asked, self.again = numbers[self._asked], numbers[self._again]
        self.original: FloatArray | None = None
        self.columns: Sequence[int] = ()
        if opening is not None:
            self._open(opening.original)
        elif 0 in self._stored:
            self._open(self._stored[0])

    @property
    def n_answered(self) -> int:
        """How many of the perturbed inputs in question have an answer."""
        return int(np.count_nonzero(self._done[self._places]))

    def _open(self, original: FloatArray) -> None:
        """Enter the scores of the input itself, and every answer that is known already."""
        question = self.question
        self.original = original
        self.columns = list(
            columns_of(question.targets, original, question.labels, ranked=question.ranked)
            if question.opening is None
            else question.opening.columns
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
        for place, now in zip(self._again, scores, strict=True):
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
        places = self._asked[span]
        if self._section is not None:
            self._section.write([self._keys[place] for place in places], scores)
        if self.original is None:
            self._open(scores[0])
        self._scores[places], self._done[places] = scores[:, self.columns], True

    @property
    def is_enough(self) -> bool:
        """Whether the answers are enough to end the questions early."""
        answered = self._places[self._done[self._places]]
        return self.original is not None and len(np.unique(answered)) >= self.question.least

    def complete(self, *, batch_size: int, calls: int, stopped: str | None = None) -> Reply:
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
        )


def _check_outputs(stored: FloatArray, n: int) -> None:
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

        A budget or, with `partial`, Ctrl-C may leave the last of them without an answer. `report`
        gets the number of perturbed inputs in question that have one.
        """
        caller, batches, near = self._caller, self._batches, question.neighbourhood
        self._section = self._section or self._section_of(near)
        reply = PendingReply(question, self._section, shuffle=caller.calls.partial)
        before, stopped = caller.sent, None
        caller.limit = sys.maxsize if question.budget is None else before + question.budget
        if len(reply.again):  # before anything else is asked or stored
            reply.check_again(np.concatenate([s for _, s in batches.answer(near, reply.again)]))
        self._report(reply.n_answered)
        try:
            for span, scores in batches.answer(near, reply.asked):
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
