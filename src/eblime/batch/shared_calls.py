"""Several inputs in one model call: the perturbed inputs of several subjects in one batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from eblime._types import FloatArray
from eblime.batch.inputs import has_rows, is_sparse
from eblime.engine.asker import books_of
from eblime.engine.calls import Caller
from eblime.engine.loop import advance, converse, reply_from
from eblime.engine.plan import Plan, plan_of
from eblime.engine.query import ModelError, Reply
from eblime.engine.settings import LoopSettings, Question
from eblime.models.scores import as_scores
from eblime.protocols import Subject
from eblime.results.explanation import Explanation
from eblime.stopping.rule import FIRST

__all__ = ["explain_together", "group_size"]

_ROWS = 32_768  # perturbed inputs in one call, at most
_IN_TURN = 8  # with a stop rule: as many times more inputs take turns, so that calls stay full


def group_size(settings: LoopSettings) -> int:
    """How many inputs may share a call.

    1 if the user's batch size has no room for two, or if several calls are under way at once: an
    input is then split among them.
    """
    if settings.calls.concurrency > 1:
        return 1
    first = settings.n_masks if settings.until is None else FIRST
    together = _most_rows(settings) // (first + 1)
    return max(1, together if settings.until is None else together * _IN_TURN)


def explain_together(
    settings: LoopSettings,
    subjects: Sequence[Subject],
    targets: Any,
    rngs: Sequence[np.random.Generator],
) -> list[dict[int, Explanation]]:
    """Explain several inputs with few model calls.

    The numbers are the same as explaining each input alone: every input has its own generator, and
    the score of a row must not depend on the other rows of its batch. A call is no larger
    than memory has room for. Inputs that are asked about in rounds take turns: a call has the next
    questions of as many inputs as fit in, and an input that needs fewer rounds leaves earlier.
    """
    talks = [
        converse(settings, subject, targets, rng)
        for subject, rng in zip(subjects, rngs, strict=True)
    ]
    waiting = {k: next(talk) for k, talk in enumerate(talks)}
    found: dict[int, dict[int, Explanation]] = {}
    while waiting:
        numbers = _next_group(settings, waiting)
        questions = [waiting.pop(k) for k in numbers]
        if len(numbers) == 1:  # in batches of its own
            replies = [reply_from(settings, subjects[numbers[0]], questions[0])]
        else:
            replies = _replies(settings, questions)
        for k, reply in zip(numbers, replies, strict=True):
            step = advance(talks[k], reply)
            if isinstance(step, Question):
                waiting[k] = step  # behind those that wait already
            else:
                found[k] = step
    return [found[k] for k in range(len(subjects))]


def _most_rows(settings: LoopSettings) -> int:
    """How many perturbed inputs may be in one call."""
    return settings.calls.batch_size or _ROWS


def _next_group(settings: LoopSettings, waiting: Mapping[int, Question]) -> list[int]:
    """Numbers of the inputs that share the next call: the first, and others as long as they fit."""
    group: list[int] = []
    total = 0
    for k, question in waiting.items():
        size = len(question.rows) + 1
        room = min(_most_rows(settings), question.neighbourhood.room)
        if not group or total + size <= room:
            group.append(k)
            total += size
    return group


def _replies(settings: LoopSettings, questions: Sequence[Question]) -> list[Reply]:
    """The replies to several questions, from few calls; stored answers are not asked again."""
    with books_of(settings) as book_of:
        books = [book_of(question.neighbourhood) for question in questions]
        plans = [plan_of(*pair) for pair in zip(questions, books, strict=True)]
        scores = _scores(settings, plans)
        for book, plan, found in zip(books, plans, scores, strict=True):
            if book is not None and len(found):
                plan.verify(found)
                book.write(plan.keys_to_ask, found)
    return [plan.reply(found) for plan, found in zip(plans, scores, strict=True)]


def _scores(settings: LoopSettings, plans: Sequence[Plan]) -> list[FloatArray]:
    """The scores that each plan asks for, (n, outputs)."""
    if not all(len(plan.rows_to_ask) for plan in plans):
        return [_alone(settings, plan) for plan in plans]
    batches = [plan.question.neighbourhood.inputs(plan.rows_to_ask) for plan in plans]
    return _shared(settings, batches, [len(plan.rows_to_ask) for plan in plans])


def _alone(settings: LoopSettings, plan: Plan) -> FloatArray:
    """The scores of one plan, in as many calls as memory needs; none if it asks nothing new."""
    rows, question = plan.rows_to_ask, plan.question
    if not len(rows):
        original = plan.original()
        assert original is not None  # else it would be asked
        return np.empty((0, len(original)))
    most = min(_most_rows(settings), question.neighbourhood.room)
    pieces = np.split(rows, range(most, len(rows), most))
    inputs = question.neighbourhood.inputs
    return np.concatenate([_called(settings, inputs(some), len(some)) for some in pieces])


def _shared(
    settings: LoopSettings, batches: Sequence[Any], sizes: Sequence[int]
) -> list[FloatArray]:
    """The scores of each batch, from one model call if the batches can be joined."""
    try:
        joined = _joined(batches)
    except (TypeError, ValueError):  # such as arrays of different lengths
        return [_called(settings, *pair) for pair in zip(batches, sizes, strict=True)]
    return np.split(_called(settings, joined, sum(sizes)), np.cumsum(sizes)[:-1])


def _called(settings: LoopSettings, batch: Any, size: int) -> FloatArray:
    """The scores of a batch, (size, outputs)."""
    try:
        returned = Caller(model=settings.model, calls=settings.calls)(batch)
        raw = as_scores(returned)
    except Exception as error:
        raise ModelError(f"The model failed: {type(error).__name__}: {error}") from error
    scores = raw[:, None] if raw.ndim == 1 else raw
    is_real = not np.iscomplexobj(scores)
    if not (is_real and scores.ndim == 2 and len(scores) == size and np.isfinite(scores).all()):
        raise ModelError(
            f"The model must return finite real scores for a batch of {size}; got shape "
            f"{raw.shape} of {raw.dtype}."
        )
    return scores.astype(np.float64)  # a copy: the model may fill the same array again


def _joined(batches: Sequence[Any]) -> Any:
    """Batches of the same type as one batch."""
    first = batches[0]
    if isinstance(first, list):
        return [entry for batch in batches for entry in batch]
    if isinstance(first, np.ndarray):
        return np.concatenate(batches)
    if is_sparse(first):
        from scipy import sparse

        return sparse.vstack(batches, format="csr")
    if has_rows(first):
        import pandas as pd

        return pd.concat(batches, ignore_index=True)
    import narwhals as nw

    return nw.concat([nw.from_native(batch) for batch in batches], how="vertical").to_native()
