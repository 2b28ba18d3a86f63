"""One input on its way to an explanation: ask, append, judge, until nothing is left to ask.

A `Session` decides what to ask next and when to stop; it never calls the model. `drive` in
`engine/drive.py` asks for one session, for many that share calls, or for a GPU.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from eblime._checks import as_floats, as_generator, check_weights
from eblime._threads import few_threads
from eblime._types import FloatArray, RNGLike
from eblime._warn import warn_user
from eblime.answers import Answers, Proposal
from eblime.core.population import is_exhaustive
from eblime.core.spectrum import effective_size
from eblime.designs.rounds import OneShot, as_design, first_look, in_rounds, rows_of
from eblime.engine.questions import Question, Reply
from eblime.engine.settings import LoopSettings, rule_name
from eblime.engine.targets import check_targets
from eblime.kernels import as_kernel
from eblime.methods.regression import fit_each
from eblime.posterior import Posterior
from eblime.protocols import Design, Neighbourhood, Subject
from eblime.stopping.rule import Rule, Verdict, is_due


@dataclass(slots=True, kw_only=True, eq=False)
class Session:
    """One input on its way to an explanation: what was asked and answered, and what to ask next.

    Its records, such as `answers`, are never changed; `step` puts new ones in their place.
    """

    settings: LoopSettings
    subject: Subject
    targets: Any
    seed: int | str | None  # for the record
    rng: np.random.Generator
    design: Design
    neighbourhood: Neighbourhood  # what was asked, and what is in question
    answers: tuple[Answers, ...]  # of every target; one without scores before the first reply
    expected: int  # masks that it will take in all, as far as is known
    start: float = field(default_factory=time.perf_counter)
    replies: tuple[Reply, ...] = ()
    stopped: str | None = None  # why the questions ended early
    reached: bool | None = None  # whether the stop rule was reached; None without one
    fit: tuple[Posterior, ...] | None = None  # of the answers so far, where it was needed
    generator: Mapping[str, Any] | None = None  # its state before the fit
    error: Exception | None = None  # what ended it early, if `drive` keeps errors
    question: Question | None = field(init=False)  # what to ask now; None at the end
    _weights: FloatArray = field(init=False)  # of the perturbed inputs in question
    _sampling: FloatArray | None = field(init=False)  # their factor that corrects uneven draws
    _looked_at: int = field(init=False, default=0)  # masks when the stop rule was last asked
    _began: float = field(init=False)  # of the last round

    def __post_init__(self) -> None:
        self._began = self.start
        self.question = self._next_question()

    @classmethod
    def begin(cls, settings: LoopSettings, subject: Subject, targets: Any, rng: RNGLike) -> Session:
        """A session about an input, with its first question."""
        check_targets(targets, settings.labels)
        generator, start = as_generator(rng), time.perf_counter()
        near = subject.neighbourhood(generator)
        settings = settings.for_input(subject.scene, exact=near.exact)
        p = subject.scene.n_features
        decided = near.exact or getattr(subject.scene, "by_masks", False)
        make = partial(in_rounds, generator) if settings.may_end_early else as_design
        design = make(
            settings.design,
            settings.max_masks,
            p,
            exact=decided and settings.may_ask_all(p),
            method=settings.method,
            kernel=settings.kernel,
        )
        return cls(
            settings=settings,
            subject=subject,
            targets=targets,
            seed=_seed_record(rng),
            rng=generator,
            design=design,
            start=start,
            neighbourhood=near,
            answers=(Answers.none(subject.scene.features, noisy=not near.exact),),
            expected=settings.max_masks,
        )

    def step(self, reply: Reply) -> Question | None:
        """Take the reply to the question; returns the next question."""
        self._append(reply)
        if self.settings.may_end_early:
            self._apply_rule()
        self.question = self._next_question()
        return self.question

    def fail(self, error: Exception) -> None:
        """End with an error."""
        self.error, self.question = error, None

    @property
    def first(self) -> Answers:
        """The answers of the first target, which a design may look at."""
        return self.answers[0]

    @property
    def calls(self) -> int:
        """How many inputs the model was asked about."""
        return self.settings.spent + sum(reply.calls for reply in self.replies)

    @property
    def exhaustive(self) -> bool:
        """Whether every mask was asked once, and determines its input: no chance is left."""
        return self.neighbourhood.exact and is_exhaustive(self.first.masks)

    def fits(self) -> list[tuple[Posterior, Answers]]:
        """The posterior and the answers of each target; fitted once for rule and explanations."""
        if self.fit is None:
            masks, self.generator = self.first.masks, self.rng.bit_generator.state
            with few_threads(0 if self.settings.steady else masks.size * masks.shape[1]):
                self.fit = fit_each(self.settings.method, self.rng, self.answers)
        return list(zip(self.fit, self.answers, strict=True))

    def _next_question(self) -> Question | None:
        """What to ask next; at the end, `stopped` says why."""
        settings, known, now = self.settings, self.first.n_masks, time.perf_counter()
        took = (now - self.start) + (now - self._began)  # if the next round is like the last one
        late = bool(self.replies) and took > (settings.max_seconds or np.inf)
        if self.stopped is None and not late:
            self._began = now
            wanted = self.design.next(self.rng, self.first)
            if settings.may_end_early and wanted is not None:
                wanted = self._within_budget(wanted)
            if wanted is not None:
                self._extend(wanted)
                most = settings.calls.max_calls
                return Question(
                    settings=settings,
                    scene=self.subject.scene,
                    neighbourhood=self.neighbourhood,
                    targets=self.targets,
                    opening=self.replies[0] if self.replies else None,
                    before=np.stack([a.scores for a in self.answers], axis=1) if known else None,
                    budget=None if most is None else most - sum(r.calls for r in self.replies),
                    least=max(0, min(settings.max_masks, self.first.n_features + 2) - known),
                )
        if not self.replies:
            raise ValueError("`design` must ask about at least one mask; it asked about none.")
        if settings.may_end_early and self.stopped is None:
            self._conclude(late=late and known < settings.max_masks)
        return None

    def _within_budget(self, wanted: Any) -> Any:
        """The masks to ask about next that the budget has room for; None where it is used up."""
        is_number = isinstance(wanted, (int, np.integer))
        count = int(wanted) if is_number else len(getattr(wanted, "masks", wanted))
        allowed = min(count, self.settings.max_masks - self.first.n_masks)
        if allowed <= 0:
            return None
        return allowed if is_number else rows_of(wanted, slice(0, allowed))

    def _extend(self, wanted: FloatArray | Proposal | int) -> None:
        """Add perturbed inputs to ask about, and their weights."""
        known, p, settings = len(self.neighbourhood.masks), self.first.n_features, self.settings
        masks: Any = wanted.masks if isinstance(wanted, Proposal) else wanted
        drawn = wanted.sampling_weights if isinstance(wanted, Proposal) else None  # corrects draws
        if not isinstance(masks, (int, np.integer)):
            masks = check_design_masks(masks, p)
            ends = getattr(settings.method, "ends", "unused")
            wanted = getattr(self.subject.scene, "by_masks", False)
            if known == 0 and (wanted or (self.neighbourhood.exact and ends != "unused")):
                masks, drawn = _add_ends(masks, drawn)
        self.neighbourhood = grown = self.neighbourhood.extend(self.rng, masks)
        closeness = getattr(grown, "closeness", grown.masks)[known:]
        kernel, sampling = as_kernel(settings.kernel), check_weights(drawn, len(closeness))
        self._weights = check_weights(kernel(closeness), len(closeness)) * sampling
        self._sampling = None if (sampling == 1).all() else sampling
        counting = min(int(np.count_nonzero(self._weights)), round(effective_size(self._weights)))
        if counting < p and isinstance(self.design, OneShot) and not settings.crowded:
            warn_user(
                f"There are more features ({p}) than masks that count ({counting}): expect wide "
                "intervals. Ask for more masks, or cut the input into fewer features."
            )
        if known == 0 and grown.exact and is_exhaustive(grown.masks):
            if not settings.may_ask_all(p):
                raise ValueError(
                    f"`max_calls` must be at least {2**p}, the number of all masks, for an "
                    f"exhaustive design; got {settings.calls.max_calls}."
                )
            self.expected = 2**p
        self.expected = max(self.expected, len(grown.masks))

    def _append(self, reply: Reply) -> None:
        """Append the model's reply."""
        if not self.replies:
            originals = reply.original[list(reply.columns)].tolist()
            self.answers = tuple(replace(self.first, original=score) for score in originals)
        masks, weights = self.neighbourhood.masks[self.first.n_masks :], self._weights
        sampling = self._sampling
        if reply.answered is not None:
            masks, weights = masks[reply.answered], weights[reply.answered]
            sampling = None if sampling is None else sampling[reply.answered]
        found = [
            known.append(masks, scores, weights, sampling)
            for known, scores in zip(self.answers, reply.scores.T, strict=True)
        ]
        nothing = np.flatnonzero(~found[0].masks.any(axis=1))
        if self.neighbourhood.exact and found[0].hidden is None and nothing.size:
            found = [replace(each, hidden=float(each.scores[nothing[0]])) for each in found]
        self.answers, self.replies = tuple(found), (*self.replies, reply)
        self.fit, self.stopped = None, reply.stopped

    def _apply_rule(self) -> None:
        """Ask the stop rule after a round, if it is time for that."""
        until, known = self.settings.until, self.first.n_masks
        if until is None or self.exhaustive or self.stopped is not None:
            return
        if isinstance(until, Rule):
            least = first_look(self.settings.design, self.first.n_features)
            if is_due(known, self._looked_at, least):
                verdict, self._looked_at = self._verdict(until), known
                expected = int(min(self.settings.max_masks, np.ceil(known * verdict.factor)))
                self.expected = max(known, expected)
                if verdict.reached:
                    self._reach(verdict.text)
            return
        reasons = [until(*pair) for pair in self.fits()]
        if wrong := [each for each in reasons if not (each is None or isinstance(each, str))]:
            raise TypeError(
                f"`until` must return a reason to stop, a string, or None; got {wrong[0]!r}."
            )
        if None not in reasons:
            self.stopped, self.reached = reasons[0], True

    def _conclude(self, *, late: bool) -> None:
        """Say at the end what was reached, and what was not."""
        until, place = self.settings.until, self._place
        if late:
            place = f"{self.settings.max_seconds:g} seconds, {place}"
        if until is None:
            self.stopped = f"stopped after {place}" if late and not self.exhaustive else None
        elif self.exhaustive:
            self._reach("the model was asked about all possible masks: nothing is left to chance")
        else:
            verdict = self._verdict(until) if isinstance(until, Rule) else None
            if verdict is not None and verdict.reached:
                self._reach(verdict.text)
                return
            text = f": {verdict.text}" if verdict is not None else ""
            self.stopped = f"{rule_name(until)} not reached within {place}{text}"
            self.reached = False

    def _reach(self, text: str) -> None:
        """Stop, as the rule is reached."""
        self.stopped = f"{rule_name(self.settings.until)} reached with {self._place}: {text}"
        self.reached = True

    @property
    def _place(self) -> str:
        return f"{self.first.n_masks} masks ({self.calls} model calls)"

    def _verdict(self, rule: Rule) -> Verdict:
        """The verdict about all targets: that of the least certain one."""
        return max((rule.judge(*pair) for pair in self.fits()), key=lambda verdict: verdict.factor)


def _seed_record(rng: RNGLike) -> int | str | None:
    """A seed as provenance has it: what `rng` must be to get the same masks, if that is known."""
    if isinstance(rng, np.random.SeedSequence):
        return f"SeedSequence({rng.entropy}, spawn_key={tuple(map(int, rng.spawn_key))})"
    if isinstance(rng, (int, np.integer)):
        return int(rng)
    return None if rng is None else "a generator"


def check_design_masks(masks: ArrayLike, p: int) -> FloatArray:
    """Masks of a design, which may be the user's: (n, p) zeros and ones, made read-only."""
    checked = as_floats("design", masks).copy()
    if checked.ndim != 2 or checked.shape[1] != p or not len(checked):
        raise ValueError(
            f"`design` must return masks of shape (N, {p}); got shape {checked.shape}."
        )
    if not np.isin(checked, (0, 1)).all():
        raise ValueError(
            "`design` must return zeros and ones; got values from "
            f"{checked.min():g} to {checked.max():g}."
        )
    checked.flags.writeable = False
    return checked


def _add_ends(
    masks: FloatArray, sampling: FloatArray | None
) -> tuple[FloatArray, FloatArray | None]:
    """The masks of the first round, with all shown and all hidden added, with weight zero."""
    p = masks.shape[1]
    ends = [np.full(p, end) for end in (1.0, 0.0) if not (masks == end).all(axis=1).any()]
    if not ends:
        return masks, sampling
    own = np.ones(len(masks)) if sampling is None else sampling
    return np.concatenate([masks, ends]), np.concatenate([own, np.zeros(len(ends))])
