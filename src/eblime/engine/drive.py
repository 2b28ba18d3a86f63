"""Asks the model for sessions until each has all its answers.

`run` asks for one input, `drive` for many that share model calls or keep a GPU busy. The rest of
the library asks the model through this module.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import ExitStack
from typing import Any

import numpy as np

from eblime._progress import Progress, progress_reporter
from eblime._types import FloatArray
from eblime.engine.cache import open_cache
from eblime.engine.calls import Caller, check_scores
from eblime.engine.questions import OpenModel, PendingReply, Question, Reply
from eblime.engine.session import Session
from eblime.engine.settings import LoopSettings
from eblime.models.conversion import join_batches
from eblime.protocols import Subject
from eblime.stopping.rule import FIRST

_MAX_ROWS = 32_768  # perturbed inputs in one call
_ALONE = 4_096  # of one session: to join more with others takes longer than a call
_MAX_SESSIONS = 256  # sessions that share calls
_IN_TURN = 8  # with a stop rule: as many times more sessions take turns, so that calls stay full


def drive(
    sessions: Iterable[Session],
    *,
    together: int = 1,
    pool: Executor | None = None,
    keep_errors: bool = False,
    least: int = 1,
) -> Iterator[list[Session]]:
    """Ask for sessions until each has all its answers; yields those that end, `least` at once.

    So many sessions are open `together`; the next ones are drawn when there is room for them, so
    that inputs are read in time. Sessions whose questions fit into one call share it; large inputs
    are asked about alone. In the threads of `pool` sessions take their replies while the model is
    asked for the next ones. With `keep_errors` an error ends only its own session, as its `error`.
    """
    coming, submit = iter(sessions), pool.submit if pool else _do_now
    waiting: deque[Session] = deque()
    stepping: deque[tuple[Session, Future[None]]] = deque()
    ended: list[Session] = []
    left = True
    while left or waiting or stepping:
        while left and len(waiting) + len(stepping) < together and not _has_large(waiting):
            session = next(coming, None)
            if session is None:
                left = False
            else:
                waiting.append(session)
        if waiting:
            group = _next_group(waiting)
            for session, reply in zip(group, _ask_group(group, keep_errors), strict=True):
                stepping.append((session, submit(_step, session, reply, keep_errors)))
        must_wait = not waiting and not (left and len(stepping) < together)
        while stepping and (must_wait or stepping[0][1].done()):
            session, step = stepping.popleft()
            step.result()
            (ended if session.question is None else waiting).append(session)
            must_wait = False
        if ended and (len(ended) >= least or not (left or waiting or stepping)):
            yield ended
            ended = []


def _do_now(work: Callable[..., Any], *arguments: Any) -> Future[Any]:
    """Do some work, as a pool without threads."""
    done: Future[Any] = Future()
    done.set_result(work(*arguments))
    return done


def _has_large(sessions: Sequence[Session]) -> bool:
    """Whether some session has an input too large to share a call."""
    return any(hasattr(session.subject.scene, "renderer") for session in sessions)


def _next_group(waiting: deque[Session]) -> list[Session]:
    """Take the sessions that share the next call: the first, and others as long as they fit."""
    group: list[Session] = []
    total = 0
    for session in list(waiting):
        question, calls = session.question, session.settings.calls
        assert question is not None
        near = question.neighbourhood
        size = len(near.masks) - session.first.n_masks + 1
        inputs = size * getattr(session.subject.scene, "cost", 1)
        alone = calls.concurrency > 1 or _has_large([session]) or inputs > _ALONE
        if group and (alone or total + size > min(calls.batch_size or _MAX_ROWS, max(near.sizes))):
            continue
        waiting.remove(session)
        group.append(session)
        total += size
        if alone:
            break
    return group


def _ask_group(group: Sequence[Session], keep_errors: bool) -> list[Reply | None]:
    """The replies to sessions; if a shared call fails, each is asked alone."""
    try:
        return [*ask([one.question for one in group if one.question is not None])]
    except Exception as error:
        if len(group) == 1:
            if not keep_errors:
                raise
            group[0].fail(error)
            return [None]
    return [reply for session in group for reply in _ask_group([session], keep_errors)]


def _step(session: Session, reply: Reply | None, keep_errors: bool) -> None:
    try:
        if reply is not None:
            session.step(reply)
    except Exception as error:
        if not keep_errors:
            raise
        session.fail(error)


def run(session: Session, progress: Progress = None) -> None:
    """Ask the model, which is opened once, until a session has all its answers."""
    known = session.first.n_masks

    def report(n: int) -> None:
        done = session.first.n_masks - known + n
        show(done, total=session.expected - known)

    with (
        progress_reporter(progress, session.expected, unit="mask", what="asking the model") as show,
        ExitStack() as stack,
    ):
        model = OpenModel(session.settings, session.subject.scene, stack, report)
        report(0)
        while session.question is not None:
            session.step(model.answer(session.question))


def ask(questions: Sequence[Question]) -> list[Reply]:
    """The replies to one explainer's questions: one in batches of its own, several in one call.

    Their numbers are the same either way: the score of a row must not depend on the other rows of
    its batch. Stored answers are not asked again. Each is asked alone if its calls are limited.
    """
    settings = questions[0].settings
    if len(questions) == 1 or settings.calls.max_calls is not None:
        return [answer(question) for question in questions]
    with open_cache(settings.calls.cache, settings.model) as section_of:
        pending = [PendingReply(question, section_of(question.scope)) for question in questions]
        rows = [np.concatenate([reply.again, reply.asked]) for reply in pending]
        ends = np.cumsum([len(some) for some in rows])
        caller, total = Caller(settings.model, settings.calls), int(ends[-1])
        inputs = [q.neighbourhood.inputs(r) for q, r in zip(questions, rows, strict=True) if len(r)]
        scores = np.empty((0, 1))
        if total:
            scores = check_scores(caller.answer(join_batches(inputs), total), total)
        replies = []
        for reply, own in zip(pending, np.split(scores, ends[:-1]), strict=True):
            again, asked = np.split(own, [len(reply.again)])
            reply.check_again(again)
            if len(asked):
                reply.enter(slice(0, len(asked)), asked)
            calls = len(own) * caller.sent // max(total, 1)
            replies.append(reply.complete(batch_size=len(own), calls=calls))
        return replies


def group_size(settings: LoopSettings) -> int:
    """How many sessions of one explainer may be open at once.

    1 if the user's batch size has no room for two, or if several calls are under way at once: an
    input is then split among them.
    """
    if settings.calls.concurrency > 1:
        return 1
    first = settings.masks_for() if settings.until is None else FIRST
    together = (settings.calls.batch_size or _MAX_ROWS) // (first + 1)
    return min(max(1, together if settings.until is None else together * _IN_TURN), _MAX_SESSIONS)


def answer(question: Question) -> Reply:
    """The model's reply to one question, with the model opened for it alone."""
    with ExitStack() as stack:
        return OpenModel(question.settings, question.scene, stack).answer(question)


def score_of_input(settings: LoopSettings, subject: Subject) -> FloatArray:
    """All outputs of the model for the input itself: one call with one input."""
    near, every = subject.neighbourhood(np.random.default_rng(0)), sys.maxsize
    question = Question(settings=settings, scene=subject.scene, neighbourhood=near, targets=every)
    return answer(question).original
