"""Several inputs in one model call: the perturbed inputs of several subjects in one batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from eblime.batch.inputs import has_rows, is_sparse
from eblime.engine.calls import Caller, call_model
from eblime.engine.loop import advance, converse, reply_from
from eblime.engine.questions import Draft, Question, Reply, open_books
from eblime.engine.settings import LoopSettings
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
    with open_books(settings) as book_of:
        drafts = [Draft(question, book_of(question.neighbourhood)) for question in questions]
        asking = [draft for draft in drafts if len(draft.again) or len(draft.asked)]
        replied = dict(zip(map(id, asking), _enter_scores(settings, asking), strict=True))
    sent = [replied.get(id(draft), (0, 0)) for draft in drafts]
    return [
        draft.reply(batch_size=size, calls=calls)
        for draft, (size, calls) in zip(drafts, sent, strict=True)
    ]


def _enter_scores(settings: LoopSettings, drafts: Sequence[Draft]) -> list[tuple[int, int]]:
    """Ask what the drafts ask about; returns the size of each, and its inputs in all attempts."""
    rows = [np.concatenate([draft.again, draft.asked]) for draft in drafts]
    batches = [d.question.neighbourhood.inputs(some) for d, some in zip(drafts, rows, strict=True)]
    if len(batches) > 1:
        try:
            joined = [(_join(batches), drafts)]
        except (TypeError, ValueError):  # such as arrays of different lengths
            joined = [(batch, [draft]) for batch, draft in zip(batches, drafts, strict=True)]
    else:
        joined = [(batch, drafts) for batch in batches]
    found = []
    for batch, group in joined:
        sizes = [len(draft.again) + len(draft.asked) for draft in group]
        tries = [
            draft.question.budget // size
            for draft, size in zip(group, sizes, strict=True)
            if draft.question.budget is not None
        ]
        limit = sum(sizes) * min(tries) if tries else None
        caller = Caller(settings.model, settings.calls, limit)
        scores = call_model(caller, batch, sum(sizes))
        for draft, some in zip(group, np.split(scores, np.cumsum(sizes)[:-1]), strict=True):
            n = len(draft.again)
            draft.check_again(some[:n])
            draft.enter(slice(0, len(draft.asked)), some[n:])
            found.append((len(some), len(some) * caller.sent // sum(sizes)))
    return found


def _join(batches: Sequence[Any]) -> Any:
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
