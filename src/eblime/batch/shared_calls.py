"""Several inputs in one model call: rows and texts of the same type share calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from eblime._types import FloatArray
from eblime.engine.loop import Talk, converse, reply_from
from eblime.engine.query import ModelError, Reply, reply_to, rows_to_ask
from eblime.engine.settings import LoopSettings, Question
from eblime.models.scores import as_scores
from eblime.protocols import Subject
from eblime.results.explanation import Explanation

__all__ = ["explain_together", "group_size"]

_ROWS = 32_768  # perturbed inputs in one call, at most


def group_size(settings: LoopSettings) -> int:
    """How many inputs may share a call: 1 where the user's batch size has no room for two."""
    most = _ROWS if settings.batch_size is None else settings.batch_size
    return max(1, most // (settings.n_masks + 1))


def explain_together(
    settings: LoopSettings,
    subjects: Sequence[Subject],
    targets: Any,
    rngs: Sequence[np.random.Generator],
) -> list[dict[int, Explanation]]:
    """Explain several inputs with few model calls.

    The numbers are the same as explaining each input alone: every input draws from its own
    generator, and a model scores a row the same whatever other rows are in the batch. A call is no
    larger than memory has room for. Inputs that ask in rounds share calls as long as they last.
    """
    talks = [
        converse(settings, subject, targets, rng)
        for subject, rng in zip(subjects, rngs, strict=True)
    ]
    waiting = {k: next(talk) for k, talk in enumerate(talks)}
    found: dict[int, dict[int, Explanation]] = {}
    while waiting:
        for numbers in _groups(settings, waiting):
            questions = [waiting.pop(k) for k in numbers]
            if len(numbers) == 1:  # in batches of its own
                replies = [reply_from(settings, subjects[numbers[0]], questions[0])]
            else:
                scores = _scores(settings, questions)
                replies = [reply_to(*pair) for pair in zip(questions, scores, strict=True)]
            for k, reply in zip(numbers, replies, strict=True):
                following = _send(talks[k], reply)
                if isinstance(following, Question):
                    waiting[k] = following
                else:
                    found[k] = following
    return [found[k] for k in range(len(subjects))]


def _send(talk: Talk, reply: Reply) -> Question | dict[int, Explanation]:
    """Pass a reply on: the next question, or the explanations at the end."""
    try:
        return talk.send(reply)
    except StopIteration as end:
        found: dict[int, Explanation] = end.value
        return found


def _groups(settings: LoopSettings, waiting: dict[int, Question]) -> Iterator[list[int]]:
    """Numbers of the inputs that go into one call each."""
    most = _ROWS if settings.batch_size is None else settings.batch_size
    group: list[int] = []
    total = 0
    for k, question in list(waiting.items()):
        size = len(question.rows) + 1
        room = min(most, question.neighbourhood.room)
        if group and total + size > room:
            yield group
            group, total = [], 0
        group.append(k)
        total += size
    yield group


def _scores(settings: LoopSettings, questions: Sequence[Question]) -> list[FloatArray]:
    """One call for all questions, and each question's share of the scores."""
    rows = [rows_to_ask(question) for question in questions]
    batches = [
        question.neighbourhood.inputs(some) for question, some in zip(questions, rows, strict=True)
    ]
    sizes = [len(some) for some in rows]
    try:
        raw = np.asarray(as_scores(settings.model(_stacked(batches))), dtype=np.float64)
    except Exception as error:
        raise ModelError(f"The model failed: {type(error).__name__}: {error}") from error
    scores = raw[:, None] if raw.ndim == 1 else raw
    if scores.ndim != 2 or len(scores) != sum(sizes) or not np.isfinite(scores).all():
        raise ModelError(
            f"The model must return finite scores for a batch of {sum(sizes)}; got shape "
            f"{raw.shape}."
        )
    return np.split(scores, np.cumsum(sizes)[:-1])


def _stacked(batches: Sequence[Any]) -> Any:
    """Batches of the same type, one below the other."""
    first = batches[0]
    if len(batches) == 1:
        return first
    if isinstance(first, list):
        return [entry for batch in batches for entry in batch]
    if isinstance(first, np.ndarray):
        return np.concatenate(batches)
    if hasattr(first, "tocsr"):
        from scipy import sparse

        return sparse.vstack(batches, format="csr")
    if hasattr(first, "iloc"):
        import pandas as pd

        return pd.concat(batches, ignore_index=True)
    import narwhals as nw

    return nw.concat([nw.from_native(batch) for batch in batches], how="vertical").to_native()
