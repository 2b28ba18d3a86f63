"""The loop that explains one input: ask, append, fit, stop. No other code asks the model.

`converse` is the loop itself. It yields `Question`s and receives the model's replies, so that a
single input (`explain`), many inputs that share model calls, and a GPU pipeline all run the same
code.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Any

import numpy as np

from eblime._progress import Progress
from eblime._types import FloatArray, RNGLike
from eblime.designs.rounds import OneShot, OwnLaw
from eblime.engine.asker import answering
from eblime.engine.more import Source
from eblime.engine.query import Reply, progress_of
from eblime.engine.settings import LoopSettings, Question
from eblime.engine.state import State, begin
from eblime.engine.watch import Watch
from eblime.protocols import Design, Subject
from eblime.results.explanation import Explanation

__all__ = [
    "Talk",
    "advance",
    "converse",
    "explain",
    "finish",
    "reply_from",
    "rounds",
    "score_of_input",
]

Talk = Generator[Question, Reply, dict[int, Explanation]]


def explain(
    settings: LoopSettings,
    subject: Subject,
    targets: Any,
    rng: RNGLike,
    *,
    progress: Progress = None,
) -> dict[int, Explanation]:
    """Explain one input: section 2 of the paper perturbs, section 3 infers."""
    return finish(converse(settings, subject, targets, rng), settings, subject, progress=progress)


def finish(
    talk: Talk, settings: LoopSettings, subject: Subject, *, progress: Progress = None
) -> dict[int, Explanation]:
    """Answer all questions of a loop about one input; returns the explanations by column."""
    question = next(talk)
    known = 0 if question.before is None else len(question.before)
    with (
        progress_of(progress, question.expected - known) as report,
        answering(settings, subject.scene, question.neighbourhood, report) as answer,
    ):
        while True:
            report(0, question.expected - known)
            step = advance(talk, answer(question))
            if not isinstance(step, Question):
                return step
            question = step


def advance(talk: Talk, reply: Reply) -> Question | dict[int, Explanation]:
    """Send a reply to the loop; returns its next question, or the explanations at its end."""
    try:
        return talk.send(reply)
    except StopIteration as end:
        found: dict[int, Explanation] = end.value
        return found


def score_of_input(settings: LoopSettings, subject: Subject) -> FloatArray:
    """All outputs of the model for the input itself: one call with one input."""
    question = Question(
        neighbourhood=subject.neighbourhood(np.random.default_rng(0)),
        rows=np.empty(0, dtype=np.intp),
        targets=1,
        labels=settings.labels,
        ranked=True,
        opening=None,
    )
    return reply_from(settings, subject, question).original


def reply_from(settings: LoopSettings, subject: Subject, question: Question) -> Reply:
    """The model's reply to one question, with the model opened for it alone."""
    with answering(settings, subject.scene, question.neighbourhood) as answer:
        return answer(question)


def converse(settings: LoopSettings, subject: Subject, targets: Any, rng: RNGLike) -> Talk:
    """The loop: yields questions, is sent the replies, and returns the explanations by column."""
    state = begin(settings, subject, targets, rng)
    watch = Watch(settings=state.settings)
    return (yield from rounds(state, watch.design(state)))


def rounds(state: State, design: Design) -> Talk:
    """The rounds of the loop, from a state on."""
    watch = Watch(settings=state.settings)
    while (wanted := watch.allowed(state, design.next(state.rng, state.first))) is not None:
        state = state.extended(wanted, warn=isinstance(design, (OneShot, OwnLaw)))
        reply = yield state.question()
        state = watch.looked(state.answered(reply))
        if state.stopped is not None:
            break
    if not state.answers:
        raise ValueError("`design` must ask about at least one mask; it asked about none.")
    state = watch.concluded(state)
    source = Source(state=state)
    return {
        column: replace(explanation, source=source)
        for column, explanation in state.explanations().items()
    }
