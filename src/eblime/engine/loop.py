"""The loop that explains one input: ask, append, fit, stop.

`converse` is the loop itself. It yields `Question`s and receives the model's replies, so that a
single input (`explain`), many inputs that share model calls, and a GPU pipeline all run the same
code.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import replace
from typing import Any

import numpy as np

from eblime._progress import Progress, progress_reporter
from eblime._types import FloatArray, RNGLike
from eblime.designs.rounds import OneShot, OwnLaw, as_design, in_rounds, rows_of
from eblime.engine.more import Source
from eblime.engine.questions import Question, Reply, open_model
from eblime.engine.settings import LoopSettings, rule_name
from eblime.engine.state import State, begin
from eblime.protocols import Design, Subject
from eblime.results.explanation import Explanation
from eblime.stopping.rule import Rule, Verdict, is_due, next_total

__all__ = [
    "Talk",
    "advance",
    "converse",
    "design_of",
    "explain",
    "finish",
    "reply_from",
    "rounds",
    "score_of_input",
]

Talk = Generator[Question, Reply, dict[int, Explanation]]

_SMALLEST = 50  # a last round, cut to the time left, has at least 1/50 of the masks so far


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
    question, done = next(talk), 0
    known = 0 if question.before is None else len(question.before)
    total = question.expected - known
    with progress_reporter(progress, total, unit="mask", what="asking the model") as show:

        def report(n: int) -> None:
            nonlocal done
            done += n
            show(done, total=question.expected - known)

        with open_model(settings, subject.scene, report) as model:
            while True:
                report(0)
                step = advance(talk, model.answer(question))
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
    with open_model(settings, subject.scene) as model:
        return model.answer(question)


def converse(settings: LoopSettings, subject: Subject, targets: Any, rng: RNGLike) -> Talk:
    """The loop: yields questions, is sent the replies, and returns the explanations by column."""
    state = begin(settings, subject, targets, rng)
    return (yield from rounds(state, design_of(state)))


def rounds(state: State, design: Design) -> Talk:
    """The rounds of the loop, from a state on."""
    may_end, one_shot = state.settings.may_end_early, isinstance(design, (OneShot, OwnLaw))
    while state.stopped is None:
        wanted = design.next(state.rng, state.first)
        if may_end and wanted is not None:
            wanted = _cut(state, wanted)
        if wanted is None:
            break
        state = state.extend(wanted, warn=one_shot)
        reply = yield state.question()
        state = state.append(reply)
        if may_end:
            state = _apply_rule(state)
    if not state.answers:
        raise ValueError("`design` must ask about at least one mask; it asked about none.")
    if may_end:
        state = _conclude(state)
    return state.explanations(Source(state=state))


def design_of(state: State) -> Design:
    """The design of the settings, in rounds if the questions may end early."""
    settings, p = state.settings, state.first.n_features
    exact = state.neighbourhood.exact and settings.may_ask_all(p)
    options: dict[str, Any] = {"method": settings.fitted_by, "kernel": settings.kernel}
    if not settings.may_end_early:
        return as_design(settings.design, settings.n_masks, p, exact=exact, **options)
    return in_rounds(
        state.rng,
        settings.design,
        settings.budget,
        p,
        exact=exact,
        next_total=next_total,
        **options,
    )


def _cut(state: State, wanted: Any) -> Any:
    """What a design wants to ask next, cut where masks or seconds are used up, or None."""
    is_number = isinstance(wanted, (int, np.integer))
    count = int(wanted) if is_number else len(getattr(wanted, "masks", wanted))
    most = min(count, state.settings.budget - state.first.n_masks)
    if most <= 0 or _is_late(state):
        return None
    most = min(most, _masks_in_time(state))
    if most == count:
        return wanted
    return most if is_number else rows_of(wanted, slice(0, most))


def _apply_rule(state: State) -> State:
    """The state after a round: with the verdict of the stop rule, if it was time for one."""
    until, known = state.settings.until, state.first.n_masks
    if until is None or state.exhaustive or state.stopped is not None:
        return state
    if isinstance(until, Rule):
        if not is_due(known, state.looked_at):
            return replace(state, expected=max(known, state.expected))
        state = state.with_fit()
        verdict = _verdict(until, state)
        expected = int(min(state.settings.budget, np.ceil(known * verdict.factor)))
        state = replace(state, looked_at=known, expected=max(known, expected))
        return _reach(state, verdict.text) if verdict.reached else state
    state = state.with_fit()
    reasons = [until(*pair) for pair in state.fits]
    for reason in reasons:
        if not (reason is None or isinstance(reason, str)):
            raise TypeError(
                f"`until` must return a reason to stop, a string, or None; got {reason!r}."
            )
    return state if None in reasons else replace(state, stopped=reasons[0], reached=True)


def _conclude(state: State) -> State:
    """The state at the end: with a sentence about what was reached, and what was not."""
    settings, until = state.settings, state.settings.until
    if state.stopped is not None:
        return state
    if state.exhaustive and until is not None:
        text = "the model was asked about all possible masks: nothing is left to chance"
        return _reach(state, text)
    late = _is_late(state) and state.first.n_masks < settings.budget
    place = f"{state.first.n_masks} masks ({state.calls} model calls)"
    if late:
        place = f"{settings.max_seconds:g} seconds, {place}"
    if until is None:
        early = late and not state.exhaustive
        return replace(state, stopped=f"stopped after {place}") if early else state
    text = f"{rule_name(until)} not reached within {place}"
    if isinstance(until, Rule):
        state = state.with_fit()
        verdict = _verdict(until, state)
        if verdict.reached:
            return _reach(state, verdict.text)
        text += f": {verdict.text}"
    return replace(state, stopped=text, reached=False)


def _reach(state: State, text: str) -> State:
    """The state with the sentence about a rule that was reached."""
    known = f"{state.first.n_masks} masks ({state.calls} model calls)"
    sentence = f"{rule_name(state.settings.until)} reached with {known}: {text}"
    return replace(state, stopped=sentence, reached=True)


def _verdict(rule: Rule, state: State) -> Verdict:
    """The verdict about all targets: that of the least certain one."""
    return max((rule.judge(*pair) for pair in state.fits), key=lambda verdict: verdict.factor)


def _is_late(state: State) -> bool:
    """Whether the seconds that are left are not enough for a round."""
    return _masks_in_time(state) < max(2, state.first.n_masks // _SMALLEST)


def _masks_in_time(state: State) -> int:
    """How many masks can be asked in the seconds that are left."""
    limit, known = state.settings.max_seconds, state.first.n_masks
    if limit is None or not known:
        return state.settings.budget
    spent = time.perf_counter() - state.start
    return int(known * (limit - spent) / spent)
