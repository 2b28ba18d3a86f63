"""The loop that explains one input: ask, append, fit, stop. No other code asks the model.

`converse` is the loop itself. It yields `Question`s and receives the model's replies, so that a
single input (`explain`), many inputs that share model calls, and a GPU pipeline all run the same
code.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from eblime._progress import Progress
from eblime._types import FloatArray, RNGLike
from eblime.designs.rounds import OneShot, OwnLaw
from eblime.engine.query import Reply, ask, progress_of
from eblime.engine.scorers import scorer_of
from eblime.engine.settings import LoopSettings, Question
from eblime.engine.state import begin
from eblime.engine.watch import Watch
from eblime.models.adapt import as_model
from eblime.protocols import Subject
from eblime.results.explanation import Explanation

__all__ = ["Talk", "converse", "explain", "reply_from", "score_of_input"]

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
    talk = converse(settings, subject, targets, rng)
    question = next(talk)
    with (
        scorer_of(as_model(settings.model), subject.scene, question.neighbourhood) as scorer,
        progress_of(progress, settings.budget) as report,
    ):
        while True:
            report(0, question.expected)
            reply = ask(
                scorer,
                question,
                batch_size=settings.batch_size,
                steady=settings.steady,
                report=report,
            )
            try:
                question = talk.send(reply)
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
    with scorer_of(as_model(settings.model), subject.scene, question.neighbourhood) as scorer:
        return ask(scorer, question, batch_size=settings.batch_size, steady=settings.steady)


def converse(settings: LoopSettings, subject: Subject, targets: Any, rng: RNGLike) -> Talk:
    """The loop: yields questions, is sent the replies, and returns the explanations by column."""
    state = begin(settings, subject, targets, rng)
    watch = Watch(settings=settings)
    design = watch.design(state)
    while (wanted := watch.allowed(state, design.next(state.rng, state.first))) is not None:
        state = state.extended(wanted, warn=isinstance(design, (OneShot, OwnLaw)))
        reply = yield state.question()
        state = watch.looked(state.answered(reply))
        if state.stopped is not None:
            break
    if not state.answers:
        raise ValueError("`design` must ask about at least one mask; it asked about none.")
    return watch.concluded(state).explanations()
