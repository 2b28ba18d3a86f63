"""One part of a run: a function of the run's settings and the part's number alone."""

from __future__ import annotations

import signal
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np

from eblime._text import printable
from eblime._threads import available_cores
from eblime.batch.folder import write_part
from eblime.batch.inputs import Inputs, generator_of
from eblime.batch.place import Place
from eblime.batch.recognise import description, recognise
from eblime.batch.rows import Rows, explained_rows, failure_rows, failures_in, joined_rows
from eblime.batch.shared_calls import explain_together, group_size
from eblime.engine.loop import Talk, converse, explain, reply_from
from eblime.engine.settings import LoopSettings, Question
from eblime.explainers.base import BaseExplainer
from eblime.protocols import RenderedScene, Subject
from eblime.results.explanation import Explanation
from eblime.results.storage import packed

__all__ = [
    "Job",
    "Rules",
    "Worker",
    "check_explainer",
    "check_finished",
    "made_explainer",
    "on_gpu",
    "part_numbers",
]

Result = list[Explanation] | BaseException
Begin = Callable[[Sequence[int]], None]  # called with the inputs that are worked on from now on


def check_explainer(given: Any) -> None:
    """Refuse what is neither an explainer nor a function that may make one."""
    if not (isinstance(given, BaseExplainer) or callable(given)):
        raise TypeError(
            "`explainer` must be an explainer, such as ImageExplainer or TabularExplainer, or a "
            f"function that makes one; got {type(given).__name__}."
        )


def made_explainer(given: Any) -> BaseExplainer:
    """An explainer, or what a function that makes one returns."""
    check_explainer(given)
    made = given if isinstance(given, BaseExplainer) else given()
    if not isinstance(made, BaseExplainer):
        raise TypeError(
            "`explainer` must make an explainer, such as ImageExplainer or TabularExplainer; "
            f"it made {type(made).__name__}."
        )
    return made


def on_gpu(explainer: Any) -> bool:
    """Whether an explainer holds a network that lives on a GPU."""
    model = getattr(explainer, "model", None)
    module: Any = getattr(model, "module", None)
    if not hasattr(module, "parameters"):
        return False
    if getattr(model, "device", "auto") not in ("auto", "cpu"):
        return True
    first = next(module.parameters(), None)
    return first is not None and first.device.type != "cpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What the process that supervises workers must know of a run: not its model or inputs."""

    settings: Mapping[str, Any]
    folder: Place
    timeout: float | None  # seconds per input

    def numbers(self, part: int) -> range:
        """The inputs of a part."""
        return part_numbers(self.settings, part)

    def failure(self, number: int, name: str, error: Exception) -> Rows:
        """What is stored for an input that crashed its worker or ran out of time."""
        return failure_rows(number, name, error)

    def finish(self, part: int, rows: Mapping[int, Rows], about: Mapping[str, str]) -> int:
        """Write a part that was done in pieces; returns how many of its inputs failed."""
        joined = joined_rows(rows[number] for number in sorted(rows))
        write_part(self.folder, part, joined, about)
        return failures_in(joined)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A run as it is sent to its workers."""

    explainer: Any  # or a function that makes it
    inputs: Inputs
    settings: Mapping[str, Any]
    folder: Place
    resumed: bool  # some parts are done, perhaps by another model
    timeout: float | None = None  # seconds per input

    @property
    def rules(self) -> Rules:
        """Its share for the process that supervises workers."""
        return Rules(settings=self.settings, folder=self.folder, timeout=self.timeout)

    def start(self) -> Worker:
        """Make the worker of this run, in the process that does the work."""
        return Worker.begin(self)


def part_numbers(settings: Mapping[str, Any], part: int) -> range:
    """The inputs of a part."""
    size = settings["part_size"]
    return range(part * size, min((part + 1) * size, settings["count"]))


def _ignore(numbers: Sequence[int]) -> None:
    """Where nobody supervises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """Does parts: in a process of its own, in an actor, or in the driver."""

    explainer: BaseExplainer
    inputs: Inputs
    settings: Mapping[str, Any]
    folder: Place
    about: Mapping[str, str] = field(default_factory=dict)  # what decides the explainer's numbers

    @classmethod
    def begin(cls, job: Job) -> Worker:
        """Make the explainer, and see that its model is the one that the run began with."""
        made = made_explainer(job.explainer)
        worker = cls(
            explainer=made,
            inputs=job.inputs,
            settings=job.settings,
            folder=job.folder,
            about=description(made),
        )
        if job.resumed:
            recognise(worker)
        return worker

    def do(self, part: int, begin: Begin = _ignore) -> int:
        """Explain the inputs of a part and write them; returns how many failed."""
        numbers = part_numbers(self.settings, part)
        rows = joined_rows(self.rows(*entry) for entry in self.explained(numbers, begin))
        begin(())
        write_part(self.folder, part, rows, self.about)
        return failures_in(rows)

    def rows(self, number: int, result: Result) -> Rows:
        """What is stored of an input; the whole explanations too, where the run keeps them."""
        if isinstance(result, BaseException):
            return failure_rows(number, self.name(number), result)
        if self.settings["keep"]:
            for explanation in result:
                kept = f"explanations/{number}-{explanation.target}.eblime"
                (self.folder / kept).write(packed(explanation))
        return explained_rows(result, number, self.name(number), self.settings["prob"])

    @property
    def loop(self) -> LoopSettings:
        """How inputs are asked about: in batches whose sizes do not depend on the machine."""
        return replace(self.explainer.loop, steady=True)

    def name(self, number: int) -> str:
        """The name of an input; its number where the name cannot be read."""
        try:
            return printable(self.inputs.name(number))
        except Exception:
            return str(number)

    def subject(self, number: int) -> Subject:
        """Read an input, so that it can be perturbed."""
        return self.explainer.subject(self.explainer.input_of(self.inputs.get(number)))

    def explained(
        self, numbers: Sequence[int], begin: Begin = _ignore
    ) -> Iterator[tuple[int, Result]]:
        """Explanations by number, or what went wrong; inputs share model calls where they can."""
        if on_gpu(self.explainer):
            yield from self._pipelined(numbers, begin)
            return
        most = group_size(self.loop) if self.settings["together"] else 1
        subjects: dict[int, Subject] = {}
        for number in numbers:
            begin((number,))
            result = _attempt(self.subject, number)
            if isinstance(result, BaseException):
                yield number, result
                continue
            subjects[number] = result
            alone = isinstance(result.scene, RenderedScene)  # arrays are too large to share a call
            if alone or len(subjects) == most:
                yield from self._answered(subjects, begin).items()
                subjects = {}
        yield from self._answered(subjects, begin).items()

    def _pipelined(self, numbers: Sequence[int], begin: Begin) -> Iterator[tuple[int, Result]]:
        """For a GPU, which must not wait: inputs are read before it and fitted after it."""
        ahead = max(2, min(8, available_cores() - 1))
        with ThreadPoolExecutor(ahead) as pool:
            todo = iter(numbers)
            coming = deque((n, pool.submit(self._opened, n)) for n in islice(todo, ahead))
            found: deque[tuple[int, Future[Any]]] = deque()
            while coming:
                number, opened = coming.popleft()
                begin((number,))
                coming.extend((n, pool.submit(self._opened, n)) for n in islice(todo, 1))
                asked = _attempt(self._asked, opened)
                future: Future[Any] = Future()
                if isinstance(asked, BaseException):
                    future.set_exception(asked)
                else:
                    future = pool.submit(self._finished, *asked)
                found.append((number, future))
                if len(found) > ahead:
                    yield _settled(*found.popleft())
            for entry in found:
                begin(entry[:1])
                yield _settled(*entry)

    def _opened(self, number: int) -> tuple[Subject, Talk, Question]:
        """An input and the loop's first question about it."""
        subject, rng = self.subject(number), generator_of(self.settings["seed"], number)
        talk = converse(self.loop, subject, self.settings["targets"], rng)
        return subject, talk, next(talk)

    def _asked(self, opened: Future[tuple[Subject, Talk, Question]]) -> tuple[Any, ...]:
        """The model's reply to the first question."""
        subject, talk, question = opened.result()
        return subject, talk, reply_from(self.loop, subject, question)

    def _finished(self, subject: Subject, talk: Talk, reply: Any) -> dict[int, Explanation]:
        """The explanations; a loop that asks in rounds has its further questions answered here."""
        while True:
            try:
                reply = reply_from(self.loop, subject, talk.send(reply))
            except StopIteration as end:
                found: dict[int, Explanation] = end.value
                return found

    def _answered(self, subjects: Mapping[int, Subject], begin: Begin) -> dict[int, Result]:
        """Explanations from few model calls; one input at a time where that fails."""
        targets, seed, loop = self.settings["targets"], self.settings["seed"], self.loop
        if len(subjects) > 1:
            begin(tuple(subjects))
            rngs = [generator_of(seed, number) for number in subjects]
            made = _attempt(explain_together, loop, list(subjects.values()), targets, rngs)
            if not isinstance(made, BaseException):
                return {n: list(entry.values()) for n, entry in zip(subjects, made, strict=True)}
        found: dict[int, Result] = {}  # one by one: that shows which one fails
        for number, subject in subjects.items():
            if len(subjects) > 1:
                begin((number,))
            alone = _attempt(_explained, loop, subject, targets, generator_of(seed, number))
            found[number] = alone if isinstance(alone, BaseException) else list(alone.values())
        return found


def _explained(
    loop: LoopSettings, subject: Subject, targets: Any, rng: np.random.Generator
) -> dict[int, Explanation]:
    """One input by itself, without a progress bar."""
    return explain(loop, subject, targets, rng, progress=False)


def check_finished(job: Job) -> None:
    """Refuse an explainer or a model that is not the one that a finished run was created with."""
    recognise(Worker.begin(replace(job, resumed=False)), explain=False)


def _attempt(call: Callable[..., Any], *args: Any) -> Any:
    """What a call returns, or what it raises: a model that calls `sys.exit` has failed, too."""
    try:
        return call(*args)
    except BaseException as error:
        if _of_the_user(error):
            raise
        return error


def _of_the_user(error: BaseException) -> bool:
    """Whether an error ends the whole call: Ctrl-C, or an exit by a signal handler."""
    if isinstance(error, (Exception, KeyboardInterrupt)):
        return isinstance(error, KeyboardInterrupt)
    handlers = [signal.getsignal(number) for number in signal.valid_signals()]
    codes = {getattr(handler, "__code__", None) for handler in handlers} - {None}
    return any(frame.f_code in codes for frame, _ in traceback.walk_tb(error.__traceback__))


def _settled(number: int, future: Future[dict[int, Explanation]]) -> tuple[int, Result]:
    """The result of an input."""
    found = _attempt(future.result)
    return number, found if isinstance(found, BaseException) else list(found.values())
