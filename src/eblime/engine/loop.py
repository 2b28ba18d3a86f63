"""The loop that explains one input: ask, append, fit, stop.

`converse` is the loop itself. It yields `Question`s and receives the model's replies; at the end it
yields its state and receives it with the fit. So a single input (`explain`), many inputs that share
model calls and fits, and a GPU pipeline all run the same code. `Source` continues an
explanation with more masks.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Generator
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from eblime._checks import check_count
from eblime._progress import Progress, check_progress, progress_reporter
from eblime._types import FloatArray, RNGLike
from eblime._warn import warn_user
from eblime.answers import Answers, Proposal
from eblime.designs.rounds import OneShot, OwnLaw, as_design, first_look, in_rounds, rows_of
from eblime.engine.calls import Caller, model_error
from eblime.engine.questions import Question, Reply, open_model
from eblime.engine.settings import LoopSettings, rule_name
from eblime.engine.state import State, begin
from eblime.engine.targets import class_number, scores_of
from eblime.models.adapt import with_reader
from eblime.models.conversion import on_cpu
from eblime.protocols import Composite, Design, Neighbourhood, Subject, has_exact_ends
from eblime.results.explanation import Explanation
from eblime.scores import Reader, restore_score
from eblime.stopping.rule import Rule, Verdict, is_due, next_total

__all__ = [
    "Source",
    "Talk",
    "advance",
    "aim",
    "converse",
    "design_of",
    "explain",
    "finish",
    "first_question",
    "reply_from",
    "rounds",
    "score_of_input",
    "send",
    "source_of",
]

_MOST_MASKS = 10_000_000  # of an explanation that is continued

Talk = Generator[Question | State, Reply | State, dict[int, Explanation]]


def explain(
    settings: LoopSettings,
    subject: Subject,
    targets: Any,
    rng: RNGLike,
    *,
    progress: Progress = None,
) -> dict[int, Explanation]:
    """Explain one input: section 2 of the paper perturbs, section 3 infers."""
    settings, subject, targets = aim(settings, subject, targets)
    return finish(converse(settings, subject, targets, rng), settings, subject, progress=progress)


def aim(
    settings: LoopSettings, subject: Subject, targets: Any
) -> tuple[LoopSettings, Subject, Any]:
    """Settings whose model returns the scores of boxes and regions, if these are the targets.

    The model is asked about the input once: its answer has the form of the output, and the boxes,
    regions and activations that the user has not given. The scene keeps them.
    """
    scores = scores_of(targets, settings.labels)
    if not scores:
        return settings, subject, targets
    scene: Any = subject.scene
    if not hasattr(scene, "scores"):
        raise TypeError(
            "A box or a region can be a target for an image only; the domain of this input is "
            f"{scene.domain!r}. Pass the number or the label of an output."
        )
    shape = scene.labels.shape
    for score in scores:
        score.check(shape)
    find = partial(class_number, labels=settings.labels)
    output = _output_of_input(settings, scene)
    reader = Reader(*zip(*(score.settle(output, shape, find) for score in scores), strict=True))
    for score, value in zip(reader.scores, np.ravel(on_cpu(reader(output, 1))), strict=True):
        if value == 0:
            warn_user(f"The model finds no {score.name} in the input: the score is 0.")
    calls = settings.calls
    if calls.max_calls is not None:  # one call is made
        calls = replace(calls, max_calls=max(1, calls.max_calls - 1))
    settings = replace(
        settings,
        model=with_reader(settings.model, reader),
        labels=[score.name for score in reader.scores],
        about={**settings.about, "score": "; ".join(score.words for score in reader.scores)},
        calls=calls,
        spent=1,
    )
    marked = replace(scene, scores=[score.plain() for score in reader.scores])
    return settings, replace(subject, scene=marked), list(range(len(scores)))  # type: ignore[type-var]


def _output_of_input(settings: LoopSettings, scene: Any) -> Any:
    """All that the model returns for the input itself."""
    found: list[Any] = []

    def keep(output: Any, n: int) -> FloatArray:
        found[:] = [output]
        return np.zeros((n, 1))

    batch = scene.batch(1)
    batch[0] = scene.shown
    try:
        Caller(with_reader(settings.model, keep), settings.calls).answer(batch, 1)
    except Exception as error:
        raise model_error(1, error) from error
    return found[0]


def finish(
    talk: Talk, settings: LoopSettings, subject: Subject, *, progress: Progress = None
) -> dict[int, Explanation]:
    """Answer all questions of a loop about one input; returns the explanations by column."""
    question, done = first_question(talk), 0
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


def first_question(talk: Talk) -> Question:
    """The question that the loop begins with."""
    question = next(talk)
    assert isinstance(question, Question)
    return question


def advance(talk: Talk, reply: Reply | State) -> Question | dict[int, Explanation]:
    """Send a reply to the loop; returns its next question, or the explanations at its end."""
    step = send(talk, reply)
    return advance(talk, step.with_fit()) if isinstance(step, State) else step


def send(talk: Talk, reply: Reply | State) -> Question | State | dict[int, Explanation]:
    """Send a reply to the loop; also returns its state where that has no fit yet."""
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
    limit, began, late = state.settings.max_seconds or np.inf, state.start, False
    while state.stopped is None:
        now = time.perf_counter()
        if state.answers and (now - state.start) + (now - began) > limit:  # as long as the last one
            late = state.first.n_masks < state.settings.budget
            break
        began = now
        wanted = design.next(state.rng, state.first)
        if may_end and wanted is not None:
            wanted = _within_budget(state, wanted)
        if wanted is None:
            break
        state = state.extend(wanted, warn=one_shot)
        reply = yield state.question()
        assert isinstance(reply, Reply)
        state = state.append(reply)
        if may_end:
            state = _apply_rule(state)
    if not state.answers:
        raise ValueError("`design` must ask about at least one mask; it asked about none.")
    if may_end:
        state = _conclude(state, late=late)
    if state.fit is None:
        fitted = yield state
        assert isinstance(fitted, State)
        state = fitted
    return state.explanations(Source(state=state))


def design_of(state: State) -> Design:
    """The design of the settings, in rounds if the questions may end early."""
    settings, p = state.settings, state.first.n_features
    exact = state.neighbourhood.exact and settings.may_ask_all(p)
    options: dict[str, Any] = {"method": settings.method, "kernel": settings.kernel}
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
    """The state with the sentence about a rule that was reached."""
    known = f"{state.first.n_masks} masks ({state.calls} model calls)"
    sentence = f"{rule_name(state.settings.until)} reached with {known}: {text}"
    return replace(state, stopped=sentence, reached=True)


def _verdict(rule: Rule, state: State) -> Verdict:
    """The verdict about all targets: that of the least certain one."""
    return max((rule.judge(*pair) for pair in state.fits), key=lambda verdict: verdict.factor)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Source:
    """Where an explanation comes from, so that it can be continued; it is never saved."""

    state: State  # after the last answer

    def __reduce__(self) -> tuple[Any, tuple[()]]:
        """A pickled explanation has no source: the model may be anything."""
        return type(None), ()

    def more(self, explanation: Explanation, n: int, progress: Progress) -> Explanation:
        """The explanation from n more masks and the answers so far."""
        check_count("n", n)
        check_progress(progress)
        if explanation.exhaustive:
            raise ValueError("The model was asked about all masks; there are no more.")
        state = _state_before(self.state, explanation, n)
        near = state.neighbourhood
        known = explanation.answers
        most = min(_MOST_MASKS, 2**known.n_features if near.exact else _MOST_MASKS) - known.n_masks
        if n > most:
            raise ValueError(f"`n` must be at most {most:,}; got {n:,}.")
        settings = state.settings.for_input(
            state.subject.scene, exact=near.exact, exact_ends=has_exact_ends(near)
        )
        design = _More(design=_larger_design(settings, state), total=settings.n_masks)
        talk = rounds(state, design)
        (found,) = finish(talk, settings, state.subject, progress=progress).values()
        before, now = explanation.prediction, found.prediction
        if not np.isclose(before, now, rtol=1e-3, atol=1e-6):
            raise ValueError(
                f"The explanation was made with another model: its prediction is {before:.6g}; "
                f"the model now returns {now:.6g}."
            )
        kept = {"top_classes"} & {*explanation.provenance}
        first = {name: explanation.provenance[name] for name in kept}
        return replace(found, label=explanation.label, provenance={**found.provenance, **first})


def source_of(settings: LoopSettings, subject: Subject, explanation: Explanation) -> Source:
    """The source of an explanation that was loaded from a file, given its explainer and input."""
    _check_same_input(subject.scene, explanation.scene)
    stored = [restore_score(score) for score in getattr(explanation.scene, "scores", ())]
    settings, subject, _ = aim(settings, subject, stored)
    state = State(
        settings=replace(settings, labels=None),  # a label may also be a number
        subject=subject,
        targets=[explanation.target],
        seed=explanation.provenance.get("seed"),
        rng=np.random.default_rng(0),
        start=time.perf_counter(),
        neighbourhood=_restore_neighbourhood(settings, subject, explanation),
        first=explanation.answers,
    )
    return Source(state=state)


def _check_same_input(scene: Any, stored: Any) -> None:
    """Refuse an input that is not the explained one."""
    same = list(scene.features) == list(stored.features)
    if same and isinstance(scene, Composite) and isinstance(stored, Composite):
        same = all(
            np.array_equal(getattr(scene, name), getattr(stored, name))
            for name in ("shown", "hidden", "labels")
        )
    if not same:
        raise ValueError(
            "`x` must be the explained input, and `explainer` must read it as before; the features "
            "differ from those of the explanation."
        )


def _restore_neighbourhood(
    settings: LoopSettings, subject: Subject, explanation: Explanation
) -> Neighbourhood:
    """The perturbed inputs of a loaded explanation, made again from its seed."""
    seed, masks = explanation.provenance.get("seed"), explanation.masks
    rng = np.random.default_rng(seed if isinstance(seed, int) else 0)
    empty = subject.neighbourhood(rng)
    own_law = settings.design is None
    restored = empty.extend(rng, len(masks) if own_law else masks)
    if not np.array_equal(restored.masks, masks):
        raise ValueError(
            "The perturbed inputs cannot be made again: `rng` was not a whole number, or the "
            "explainer had other settings. Explain the input again."
        )
    return restored


def _state_before(state: State, explanation: Explanation, n: int) -> State:
    """The state before the next question about one target."""
    answers, cost = explanation.answers, explanation.provenance
    total = answers.n_masks + n
    return State(
        settings=replace(
            state.settings,
            n_masks=total,
            method=explanation.method,
            calls=replace(state.settings.calls, max_calls=None, partial=False),
            until=None,
            max_seconds=None,
        ),
        subject=state.subject,
        targets=[explanation.target],
        seed=state.seed,
        rng=_generator(answers),
        start=time.perf_counter() - float(cost.get("seconds", 0.0)),
        neighbourhood=_neighbourhood_of(state, answers),
        first=answers,
        answers=(answers,),
        replies=tuple(
            replace(reply, columns=[explanation.target], calls=0) for reply in state.replies[:1]
        ),
        expected=total,
        calls=int(cost.get("model_calls", 0)),
    )


def _neighbourhood_of(state: State, answers: Answers) -> Neighbourhood:
    """The perturbed inputs that have an answer."""
    if len(state.neighbourhood.masks) == answers.n_masks:
        return state.neighbourhood
    if not state.neighbourhood.exact:
        raise ValueError(
            "An explanation of a table row that was interrupted, or that reached `max_calls`, "
            "cannot be continued. Explain the row again, with a cache."
        )
    return state.subject.neighbourhood(state.rng).extend(state.rng, answers.masks)


def _generator(answers: Answers) -> np.random.Generator:
    """A generator that depends on the masks so far alone: the same in every process."""
    digest = hashlib.blake2b(answers.masks.tobytes(), digest_size=16).digest()
    return np.random.default_rng(int.from_bytes(digest, "little"))


def _larger_design(settings: LoopSettings, state: State) -> Any:
    """The design with room for more masks."""
    design: Any = as_design(
        settings.design,
        settings.n_masks,
        state.first.n_features,
        exact=False,
        method=settings.method,
        kernel=settings.kernel,
    )
    sized = is_dataclass(design) and "n_masks" in {entry.name for entry in fields(design)}
    return replace(design, n_masks=settings.n_masks) if sized else design


@dataclass(frozen=True, slots=True, kw_only=True)
class _More:
    """A design that continues another one up to a number of masks."""

    design: Design
    total: int

    def next(
        self, rng: np.random.Generator, answers: Answers
    ) -> FloatArray | Proposal | int | None:
        """Masks that the design would ask about next."""
        left = self.total - answers.n_masks
        if left <= 0:
            return None
        if isinstance(self.design, OwnLaw):
            return left
        if isinstance(self.design, OneShot):
            drawn = self.design.masks(rng, left + 2, answers.n_features)
            masks = np.asarray(drawn.masks if isinstance(drawn, Proposal) else drawn)
            begin = 0  # without the input itself and its complement, which were asked
            if masks[:1].all():
                begin = 1 if masks[1:2].any() else 2
            some: FloatArray | Proposal = rows_of(drawn, slice(begin, begin + left))
            return some
        found = self.design.next(rng, answers)
        if found is None:
            raise ValueError("`design` has no more masks to ask about.")
        return found if isinstance(found, (int, np.integer)) else rows_of(found, slice(0, left))
