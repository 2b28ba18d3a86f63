"""Which perturbed inputs to ask about, each once, and which answers are known already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from eblime._types import BoolArray, FloatArray, IntArray
from eblime.protocols import INPUT_ITSELF, Neighbourhood

__all__ = ["Asking", "Book", "Plan", "Reply", "ReplyBuilder", "plan_of"]


class Asking(Protocol):
    """A question: which perturbed inputs, and which outputs of the model."""

    @property
    def neighbourhood(self) -> Neighbourhood: ...  # noqa: D102

    @property
    def rows(self) -> IntArray: ...  # noqa: D102

    @property
    def opening(self) -> Reply | None: ...  # noqa: D102

    @property
    def before(self) -> FloatArray | None: ...  # noqa: D102

    @property
    def budget(self) -> int | None: ...  # noqa: D102

    @property
    def least(self) -> int: ...  # noqa: D102

    def choose(self, original: FloatArray) -> Sequence[int]: ...  # noqa: D102


class Book(Protocol):
    """Stored answers of one model about one input, by key."""

    verify: int  # how many of them an explanation asks the model about again

    def read(self, keys: Sequence[bytes]) -> Mapping[bytes, FloatArray]:
        """All outputs for each of these keys that is known."""
        ...

    def write(self, keys: Sequence[bytes], outputs: FloatArray) -> None:
        """Store all outputs, (n, outputs)."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the model answered to a question."""

    scores: FloatArray  # (n, T) of the perturbed inputs that have an answer
    original: FloatArray  # (outputs,) for the input itself
    columns: Sequence[int]  # the outputs kept
    batch_size: int  # of the last full batch; 0 if the model was not asked
    calls: int  # inputs that the model was asked about
    answered: IntArray | None = None  # positions among those in question; None is all of them
    stopped: str | None = None  # why some have no answer
    verified: bool = False  # the model was asked about stored answers again


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plan:
    """What has to be asked to answer a question."""

    question: Asking
    keys: Sequence[bytes]  # of each perturbed input in question
    itself: bytes  # the key of the input itself
    known: Mapping[bytes, FloatArray]  # stored answers, all outputs
    source: IntArray  # (n,) the position of the first perturbed input with the same key
    earlier: IntArray  # (n,) the number of an earlier one with the same key, else -1
    todo: IntArray  # positions to ask about
    asks_itself: bool  # also about the input itself
    cut: bool  # the budget has no room for all of them
    again: Mapping[bytes, int]  # stored answers to ask about again, and their numbers

    @property
    def rows(self) -> IntArray:
        """The numbers of the perturbed inputs to ask about."""
        return self.question.rows[self.todo]

    @property
    def rows_to_ask(self) -> IntArray:
        """The same, after the input itself where that is asked, before the answers to verify."""
        itself = [INPUT_ITSELF] if self.asks_itself else []
        return np.concatenate([itself, self.rows, [*self.again.values()]]).astype(np.intp)

    @property
    def keys_to_ask(self) -> list[bytes]:
        """The keys of `rows_to_ask`."""
        itself = [self.itself] if self.asks_itself else []
        return [*itself, *(self.keys[k] for k in self.todo), *self.again]

    def verify(self, scores: FloatArray) -> None:
        """Refuse stored answers if those asked about again differ; `scores` end with them.

        The last digits may differ, because they can depend on the batch that an input is in.
        """
        for key, now in zip(self.again, scores[len(scores) - len(self.again) :], strict=True):
            stored = self.known[key]
            _check_outputs(stored, len(now))
            largest = max(float(np.abs(found).max()) for found in self.known.values())
            j = int(np.abs(stored - now).argmax())
            if abs(stored[j] - now[j]) > _NEAR * largest:
                raise ValueError(
                    "`cache` has answers of another model: one of them is "
                    f"{stored[j]:.6g}, and the model now returns {now[j]:.6g}. Give the model "
                    "another `model_id`, or clear the cache. If the answers of the model vary by "
                    "chance, use AnswerCache(path, model_id=..., verify=0)."
                )

    def original(self) -> FloatArray | None:
        """The scores of the input itself, where they are known."""
        if self.question.opening is not None:
            return self.question.opening.original
        return self.known.get(self.itself)

    def reply(self, scores: FloatArray) -> Reply:
        """The reply made of the scores of `rows_to_ask`, (n, outputs)."""
        known = self.original()
        builder = ReplyBuilder(self, scores[0] if known is None else known)
        start = int(self.asks_itself)
        builder.put(self.todo, scores[start : start + len(self.todo)][:, builder.columns])
        return builder.reply(len(scores), len(scores), OVER_BUDGET if self.cut else None)


_NEAR = 1e-3  # of the largest score: how far the answers of one model to one input may differ
OVER_BUDGET = "the number of model calls allowed by max_calls was reached"


class ReplyBuilder:
    """The answers to a question while they come in."""

    def __init__(self, plan: Plan, original: FloatArray) -> None:
        question = plan.question
        known = question.opening
        self._plan, self.original = plan, original
        self.columns = list(question.choose(original) if known is None else known.columns)
        self._scores = np.empty((len(plan.keys), len(self.columns)))
        self._done: BoolArray = np.zeros(len(plan.keys), dtype=bool)
        self._repeats = np.bincount(plan.source, minlength=len(plan.keys))
        self.ready = 0  # perturbed inputs that need not be asked
        for k in np.setdiff1d(plan.source, plan.todo):
            found = self._known(int(k))
            if found is not None:
                self._scores[k], self._done[k] = found, True
                self.ready += int(self._repeats[k])

    def _known(self, k: int) -> Any:
        """The answer to a perturbed input, if it is known without asking."""
        plan = self._plan
        if plan.keys[k] == plan.itself:
            return self.original[self.columns]
        if plan.earlier[k] >= 0:
            assert plan.question.before is not None
            return plan.question.before[plan.earlier[k]]
        stored = plan.known.get(plan.keys[k])
        if stored is None:
            return None
        _check_outputs(stored, len(self.original))
        return stored[self.columns]

    def put(self, positions: IntArray, scores: FloatArray) -> int:
        """Enter answers, (n, T); returns how many perturbed inputs they answer."""
        self._scores[positions], self._done[positions] = scores, True
        return int(self._repeats[positions].sum())

    @property
    def n_done(self) -> int:
        """How many different perturbed inputs have an answer."""
        return int(self._done.sum())

    def reply(self, batch_size: int, calls: int, stopped: str | None) -> Reply:
        """The reply; with a reason where some perturbed inputs have no answer."""
        source = self._plan.source
        answered = np.flatnonzero(self._done[source])
        return Reply(
            scores=self._scores[source[answered]],
            original=self.original,
            columns=self.columns,
            batch_size=batch_size,
            calls=calls,
            answered=None if len(answered) == len(source) else answered,
            stopped=stopped,
            verified=bool(self._plan.again),
        )


def _check_outputs(stored: FloatArray, n: int) -> None:
    """Refuse a stored answer of a model with another number of outputs."""
    if len(stored) != n:
        raise ValueError(
            f"`cache` must have answers of this model, with {n} outputs; it has answers with "
            f"{len(stored)}. Give the model another `model_id`, or clear the cache."
        )


def plan_of(question: Asking, book: Book | None = None) -> Plan:
    """Find out what has to be asked: nothing twice, and nothing that a book knows."""
    neighbourhood, rows = question.neighbourhood, question.rows
    itself = neighbourhood.keys(np.array([INPUT_ITSELF]))[0]
    keys = neighbourhood.keys(rows)
    n_before = 0 if question.before is None else len(question.before)
    past = {key: k for k, key in enumerate(neighbourhood.keys(np.arange(n_before)))}
    first: dict[bytes, int] = {}
    source = np.array([first.setdefault(key, k) for k, key in enumerate(keys)], dtype=np.intp)
    earlier = np.array([past.get(key, -1) for key in keys], dtype=np.intp)
    wanted = [key for key, k in first.items() if key != itself and earlier[k] < 0]
    known = {} if book is None else book.read([*wanted, itself])
    todo = np.array([first[key] for key in wanted if key not in known], dtype=np.intp)
    asks_itself = question.opening is None and itself not in known
    again: dict[bytes, int] = {}
    if book is not None and (question.opening is None or not question.opening.verified):
        stored = {key: int(rows[first[key]]) for key in wanted if key in known}
        if not stored and question.opening is None and itself in known:
            stored = {itself: INPUT_ITSELF}
        shuffled = np.random.default_rng().permutation(np.array([*stored], dtype=object))
        again = {key: stored[key] for key in shuffled[: book.verify][: question.budget]}
    left = len(todo)
    if question.budget is not None:
        left = max(0, question.budget - asks_itself - len(again))
    return Plan(
        question=question,
        keys=keys,
        itself=itself,
        known=known,
        source=source,
        earlier=earlier,
        todo=todo[:left],
        asks_itself=asks_itself,
        cut=left < len(todo),
        again=again,
    )
