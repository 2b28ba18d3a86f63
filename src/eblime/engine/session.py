"""One input on its way to an explanation: ask, append, judge, until nothing is left to ask.

A `Session` decides what to ask next and when to stop; it never calls the model. `drive` in
`engine/drive.py` asks for one session, for many that share calls, or for a GPU.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from eblime._checks import as_generator
from eblime._types import RNGLike
from eblime.answers import Answers
from eblime.designs.rounds import OneShot, as_design, first_look, in_rounds, rows_of
from eblime.engine.questions import Question, Reply
from eblime.engine.settings import LoopSettings, rule_name
from eblime.engine.state import State
from eblime.engine.targets import check_targets
from eblime.protocols import Design, Subject
from eblime.stopping.rule import Rule, Verdict, is_due, next_total


class Session:
    """One input on its way to an explanation: what was asked and answered, and what to ask next.

    Attributes
    ----------
    question
        What to ask the model now; None when everything is asked. `step` takes the reply.
    state
        Where it stands: frozen, a new one after each step.
    error
        What ended it early, if `drive` keeps such errors.
    """

    def __init__(self, state: State, design: Design) -> None:
        self.state = state
        self.error: BaseException | None = None
        self._design, self._one_shot = design, isinstance(design, OneShot)
        self._began = state.start  # of the last round
        self.question: Question | None = self._next_question()

    @classmethod
    def begin(cls, settings: LoopSettings, subject: Subject, targets: Any, rng: RNGLike) -> Session:
        """A session about an input, with its first question."""
        check_targets(targets, settings.labels)
        generator = as_generator(rng)
        near = subject.neighbourhood(generator)
        settings = settings.for_input(subject.scene, exact=near.exact)
        state = State(
            settings=settings,
            subject=subject,
            targets=targets,
            seed=_seed_record(rng),
            rng=generator,
            start=time.perf_counter(),
            neighbourhood=near,
            first=Answers.none(subject.scene.features, noisy=not near.exact),
            expected=settings.budget,
        )
        return cls(state, design_of(state))

    def step(self, reply: Reply) -> Question | None:
        """Take the reply to the question; returns the next question."""
        self.state = self.state.append(reply)
        if self.state.settings.may_end_early:
            self.state = _apply_rule(self.state)
        self.question = self._next_question()
        return self.question

    def fail(self, error: BaseException) -> None:
        """End with an error."""
        self.error, self.question = error, None

    def _next_question(self) -> Question | None:
        """What to ask next; at the end, the state says why."""
        state, settings, now = self.state, self.state.settings, time.perf_counter()
        took = (now - state.start) + (now - self._began)  # if the next round is like the last one
        late = bool(state.answers) and took > (settings.max_seconds or np.inf)
        if state.stopped is None and not late:
            self._began = now
            wanted = self._design.next(state.rng, state.first)
            if settings.may_end_early and wanted is not None:
                wanted = _within_budget(state, wanted)
            if wanted is not None:
                self.state = state.extend(wanted, warn=self._one_shot)
                return self.state.question()
        if not state.answers:
            raise ValueError("`design` must ask about at least one mask; it asked about none.")
        if settings.may_end_early:
            self.state = _conclude(state, late=late and state.first.n_masks < settings.budget)
        return None


def _seed_record(rng: RNGLike) -> int | str | None:
    """A seed as provenance has it: what `rng` must be to get the same masks, if that is known."""
    if isinstance(rng, np.random.SeedSequence):
        return f"SeedSequence({rng.entropy}, spawn_key={tuple(map(int, rng.spawn_key))})"
    if isinstance(rng, (int, np.integer)):
        return int(rng)
    return None if rng is None else "a generator"


def design_of(state: State) -> Design:
    """The design of the settings, in rounds if the questions may end early."""
    settings, p = state.settings, state.first.n_features
    exact = state.neighbourhood.exact and settings.may_ask_all(p)
    options: dict[str, Any] = {"method": settings.method, "kernel": settings.kernel}
    if not settings.may_end_early:
        return as_design(settings.design, settings.masks_for(), p, exact=exact, **options)
    return in_rounds(
        state.rng,
        settings.design,
        settings.budget,
        p,
        exact=exact,
        next_total=next_total,
        **options,
    )


def _within_budget(state: State, wanted: Any) -> Any:
    """The masks to ask about next that the budget has room for; None where it is used up."""
    is_number = isinstance(wanted, (int, np.integer))
    count = int(wanted) if is_number else len(getattr(wanted, "masks", wanted))
    allowed = min(count, state.settings.budget - state.first.n_masks)
    if allowed <= 0:
        return None
    if is_number:
        return allowed
    return wanted if allowed == count else rows_of(wanted, slice(0, allowed))


def _apply_rule(state: State) -> State:
    """The state after a round: with the verdict of the stop rule, if it was time for one."""
    until, known = state.settings.until, state.first.n_masks
    least = first_look(state.settings.design, state.first.n_features)
    if until is None or state.exhaustive or state.stopped is not None:
        return state
    if isinstance(until, Rule):
        if not is_due(known, state.looked_at, least):
            return state
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


def _conclude(state: State, *, late: bool) -> State:
    """The state at the end: with a sentence about what was reached, and what was not."""
    settings, until = state.settings, state.settings.until
    if state.stopped is not None:
        return state
    if state.exhaustive and until is not None:
        text = "the model was asked about all possible masks: nothing is left to chance"
        return _reach(state, text)
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
    known = f"{state.first.n_masks} masks ({state.calls} model calls)"
    sentence = f"{rule_name(state.settings.until)} reached with {known}: {text}"
    return replace(state, stopped=sentence, reached=True)


def _verdict(rule: Rule, state: State) -> Verdict:
    """The verdict about all targets: that of the least certain one."""
    return max((rule.judge(*pair) for pair in state.fits), key=lambda verdict: verdict.factor)
