"""One part of a run: a function of the run's settings and the part's number alone."""

from __future__ import annotations

import signal
import time
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
from eblime.batch.together import explain_together, group_size
from eblime.explainer import ImageExplainer, TabularExplainer, TextExplainer
from eblime.explanation import Explanation
from eblime.inquiry import Inquiry, Plan
from eblime.storage import packed

__all__ = [
    "Explainer",
    "Job",
    "Rules",
    "Worker",
    "check_explainer",
    "check_finished",
    "made_explainer",
    "on_gpu",
    "part_numbers",
]

Explainer = ImageExplainer | TabularExplainer | TextExplainer
Result = list[Explanation] | BaseException
Begin = Callable[[Sequence[int]], None]  # called with the inputs that are worked on from now on


def check_explainer(given: Any) -> None:
    """Refuse what is neither an explainer nor a function that may make one."""
    if not (isinstance(given, Explainer) or callable(given)):
        raise TypeError(
            "`explainer` must be an ImageExplainer, TabularExplainer or TextExplainer, or a "
            f"function that makes one; got {type(given).__name__}."
        )


def made_explainer(given: Any) -> Explainer:
    """An explainer, or what a function that makes one returns."""
    check_explainer(given)
    made = given if isinstance(given, Explainer) else given()
    if not isinstance(made, Explainer):
        raise TypeError(
            "`explainer` must make an ImageExplainer, TabularExplainer or TextExplainer; "
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


def part_numbers(settings: Mapping[str, Any], part: int) -> range:
    """The inputs of a part."""
    size = settings["part_size"]
    return range(part * size, min((part + 1) * size, settings["count"]))


def _ignore(numbers: Sequence[int]) -> None:
    """Where nobody supervises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """Does parts: in a process of its own, in an actor, or in the driver."""

    explainer: Explainer
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
    def inquiry(self) -> Inquiry:
        """How inputs are asked about: the same way whoever asks, and without a bar for each."""
        return replace(self.explainer.inquiry, steady=True, progress=False)

    def name(self, number: int) -> str:
        """The name of an input; its number where the name cannot be read."""
        try:
            return printable(self.inputs.name(number))
        except Exception:
            return str(number)

    def _get(self, number: int) -> Any:
        """An input; the text of a row, where texts are explained."""
        entry = self.inputs.get(number)
        if isinstance(self.explainer, TextExplainer) and not isinstance(entry, str):
            if "text" not in entry:
                known = ", ".join(map(str, entry.keys()))
                raise ValueError(f'A row must have a column "text"; it has {known}.')
            return entry["text"]
        return entry

    def explained(
        self, numbers: Sequence[int], begin: Begin = _ignore
    ) -> Iterator[tuple[int, Result]]:
        """Explanations by number, or what went wrong; inputs share model calls where they can."""
        inquiry, most = self.inquiry, 1
        if on_gpu(self.explainer):
            yield from self._pipelined(inquiry, numbers, begin)
            return
        if self.settings["together"] and not isinstance(self.explainer, ImageExplainer):
            most = group_size(inquiry)
        scenes: dict[int, Any] = {}
        for number in numbers:
            begin((number,))
            result = _attempt(self.scene, number)
            if isinstance(result, BaseException):
                yield number, result
                continue
            scenes[number] = result
            if len(scenes) == most:
                yield from self._answered(inquiry, scenes, begin).items()
                scenes = {}
        yield from self._answered(inquiry, scenes, begin).items()

    def scene(self, number: int) -> Any:
        """An input, read and cut."""
        return self.explainer.scene(self._get(number))

    def _pipelined(
        self, inquiry: Inquiry, numbers: Sequence[int], begin: Begin
    ) -> Iterator[tuple[int, Result]]:
        """For a GPU, which must not wait: inputs are cut ahead of it, lines fitted behind."""
        seed, ahead = self.settings["seed"], max(2, min(8, available_cores() - 1))

        def prepared(number: int) -> tuple[Plan, np.random.Generator, float]:
            start, rng = time.perf_counter(), generator_of(seed, number)
            return inquiry.plan(self.scene(number), rng), rng, start

        with ThreadPoolExecutor(ahead) as pool:
            todo = iter(numbers)
            plans = deque((n, pool.submit(prepared, n)) for n in islice(todo, ahead))
            found: deque[tuple[int, Future[dict[int, Explanation]]]] = deque()
            while plans:
                number, plan = plans.popleft()
                begin((number,))
                plans.extend((n, pool.submit(prepared, n)) for n in islice(todo, 1))
                try:
                    made, rng, start = plan.result()
                    asked = inquiry.ask(made, self.settings["targets"])
                    future = pool.submit(inquiry.conclude, made, asked, rng, rng, start)
                except BaseException as error:
                    if _of_the_user(error):
                        raise
                    future = Future()
                    future.set_exception(error)
                found.append((number, future))
                if len(found) > ahead:
                    yield _settled(*found.popleft())
            for entry in found:
                begin(entry[:1])
                yield _settled(*entry)

    def _answered(
        self, inquiry: Inquiry, scenes: Mapping[int, Any], begin: Begin
    ) -> dict[int, Result]:
        """Scenes in few model calls; each by itself where that fails, or where there is one."""
        targets, seed = self.settings["targets"], self.settings["seed"]
        if len(scenes) > 1:
            begin(tuple(scenes))
            rngs = [generator_of(seed, number) for number in scenes]
            made = _attempt(explain_together, inquiry, list(scenes.values()), targets, rngs)
            if not isinstance(made, BaseException):
                return {n: list(entry.values()) for n, entry in zip(scenes, made, strict=True)}
        found: dict[int, Result] = {}  # each by itself: that shows which one fails
        for number, scene in scenes.items():
            if len(scenes) > 1:
                begin((number,))
            alone = _attempt(inquiry.explain, scene, targets, generator_of(seed, number))
            found[number] = alone if isinstance(alone, BaseException) else list(alone.values())
        return found


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
