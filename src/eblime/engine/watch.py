"""When to stop asking: a rule, a number of masks, or a time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from eblime.answers import Answers
from eblime.designs.rounds import as_design, in_rounds, rows_of
from eblime.engine.settings import LoopSettings, rule_name
from eblime.engine.state import State
from eblime.posterior import Posterior
from eblime.protocols import Design
from eblime.stopping.rule import Rule, Verdict, is_due, next_total

__all__ = ["Watch"]

_SMALLEST = 50  # a last round, cut to the time left, has at least 1/50 of the masks so far


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """Decides after every round whether to go on."""

    settings: LoopSettings

    @property
    def active(self) -> bool:
        """Whether anything can end the questions early."""
        return self.settings.until is not None or self.settings.max_seconds is not None

    def design(self, state: State) -> Design:
        """The design of the settings, in rounds if the questions may end early."""
        settings, p = self.settings, state.subject.scene.n_features
        exact = state.neighbourhood.exact and state.may_ask_all
        if not self.active:
            return as_design(
                settings.design,
                settings.n_masks,
                p,
                exact=exact,
                method=settings.fitted_by,
                kernel=settings.kernel,
            )
        return in_rounds(
            state.rng,
            settings.design,
            settings.budget,
            p,
            exact=exact,
            next_total=next_total,
            method=settings.fitted_by,
            kernel=settings.kernel,
        )

    def allowed(self, state: State, wanted: Any) -> Any:
        """What a design wants to ask next, cut where masks or seconds are used up, or None."""
        if wanted is None or not self.active:
            return wanted
        known = state.first.n_masks
        is_number = isinstance(wanted, (int, np.integer))
        count = int(wanted) if is_number else len(getattr(wanted, "masks", wanted))
        most = min(count, self.settings.budget - known)
        if most <= 0 or self._is_late(state):
            return None
        most = min(most, self._in_time(state))
        if most == count:
            return wanted
        return most if is_number else rows_of(wanted, slice(0, most))

    def looked(self, state: State) -> State:
        """The state after a round: with the verdict of the rule, if it was time for one."""
        until, known = self.settings.until, state.first.n_masks
        if until is None or state.exhaustive or state.stopped is not None:
            return state
        if not isinstance(until, Rule):
            return self._asked(state)
        if not is_due(known, state.looked_at):
            return replace(state, expected=max(known, state.expected))
        state = state.with_fit()
        verdict = _verdict(until, state)
        expected = int(min(self.settings.budget, np.ceil(known * verdict.factor)))
        state = replace(state, looked_at=known, expected=max(known, expected))
        return self._stopped(state, verdict.text) if verdict.reached else state

    def concluded(self, state: State) -> State:
        """The state at the end: with a sentence about what was reached, and what was not."""
        until = self.settings.until
        if not self.active or state.stopped is not None:
            return state
        if state.exhaustive and until is not None:
            return self._stopped(state, "all possible masks were asked: nothing is left to chance")
        known, late = state.first.n_masks, self._is_late(state)
        place = f"{known} masks ({state.calls} model calls)"
        if late and known < self.settings.budget:
            place = f"{self.settings.max_seconds:g} seconds, {place}"
        if until is None:
            early = late and known < self.settings.budget and not state.exhaustive
            return replace(state, stopped=f"stopped after {place}") if early else state
        text = f"{rule_name(until)} not reached within {place}"
        if isinstance(until, Rule):
            state = state.with_fit()
            verdict = _verdict(until, state)
            if verdict.reached:
                return self._stopped(state, verdict.text)
            text += f": {verdict.text}"
        return replace(state, stopped=text, reached=False)

    def _asked(self, state: State) -> State:
        """The state with the reason of a plain function, which holds for every target."""
        assert self.settings.until is not None
        state = state.with_fit()
        pairs = _pairs(state)
        reasons = [self.settings.until(*pair) for pair in pairs]
        for reason in reasons:
            if not (reason is None or isinstance(reason, str)):
                raise TypeError(
                    f"`until` must return a reason to stop, a string, or None; got {reason!r}."
                )
        if None in reasons:
            return state
        return replace(state, stopped=reasons[0], reached=True)

    def _stopped(self, state: State, text: str) -> State:
        """The state with the sentence about a rule that was reached."""
        known = f"{state.first.n_masks} masks ({state.calls} model calls)"
        sentence = f"{rule_name(self.settings.until)} reached with {known}: {text}"
        return replace(state, stopped=sentence, reached=True)

    def _is_late(self, state: State) -> bool:
        """Whether the seconds that are left are not enough for a round."""
        return self._in_time(state) < max(2, state.first.n_masks // _SMALLEST)

    def _in_time(self, state: State) -> int:
        """How many masks can be asked in the seconds that are left."""
        limit, known = self.settings.max_seconds, state.first.n_masks
        if limit is None or not known:
            return self.settings.budget
        spent = time.perf_counter() - state.start
        return int(known * (limit - spent) / spent)


def _verdict(rule: Rule, state: State) -> Verdict:
    """The verdict about all targets: reached if it is for each; the text is of the least sure."""
    verdicts: Sequence[Verdict] = [
        rule.judge(posterior, answers) for posterior, answers in _pairs(state)
    ]
    return max(verdicts, key=lambda verdict: verdict.factor)


def _pairs(state: State) -> list[tuple[Posterior, Answers]]:
    """The posterior and the answers of each target."""
    assert state.fit is not None
    return list(zip(state.fit.posteriors, state.answers, strict=True))
