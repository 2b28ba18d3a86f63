"""A worker explains the inputs of a part and writes the part.

The result depends on the run's settings and the part's number alone.
"""

from __future__ import annotations

import signal
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from eblime import registry
from eblime._threads import available_cores, few_threads
from eblime.batch.folder import (
    Rows,
    explained_rows,
    failure_rows,
    failures_in,
    joined_rows,
    part_files,
    part_numbers,
    read_part,
    write_part,
)
from eblime.batch.inputs import generator_of
from eblime.batch.job import Job, explainer_settings, make_explainer, on_gpu
from eblime.batch.location import arrow
from eblime.batch.shared_calls import explain_together, group_size
from eblime.engine.cache import as_cache
from eblime.engine.calls import Calls
from eblime.engine.loop import Talk, advance, converse, explain, reply_from, score_of_input
from eblime.engine.questions import Question, Reply
from eblime.engine.settings import LoopSettings, stop_settings
from eblime.engine.targets import check_targets
from eblime.explainers.base import BaseExplainer
from eblime.protocols import RenderedScene, Subject
from eblime.results.explanation import Explanation
from eblime.results.storage import pack

__all__ = ["Worker", "check_finished"]

Result = list[Explanation] | BaseException
_ASKED = 9  # inputs of a part whose predictions are compared
_NEAR = 0.02  # relative difference that another device may cause
_KEPT = 100  # inputs whose whole explanations are saved without being asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """Does parts: in its own process, in a Ray actor, or in the driver."""

    job: Job
    explainer: BaseExplainer
    about: Mapping[str, str]  # the settings of the explainer
    calls: Calls  # those of the explainer, with the stored answers of its model

    @classmethod
    def start(cls, job: Job) -> Worker:
        """Create the explainer, and check that its model is the one that the run began with."""
        arrow()  # imported here, where the delay does not count as time spent on an input
        explainer = make_explainer(job.explainer)
        if job.settings["keep"] and explainer.domain not in registry.names("domains"):
            raise TypeError(
                f"`keep=True` needs a registered domain; got {explainer.domain!r}. Register it "
                "with `eblime.registry.register`, or by an entry point of its package."
            )
        calls = explainer.loop.calls
        cache = as_cache(calls.cache)
        worker = cls(
            job=job,
            explainer=explainer,
            about=explainer_settings(explainer),
            calls=replace(
                calls,
                cache=None if cache is None else cache.for_model(explainer.model),
                partial=False,
            ),
        )
        check_targets(job.settings["targets"], explainer.labels)
        stop_settings(explainer.loop, job.until, job.settings.get("max_masks"))
        if job.resumed:
            _compare_model(worker)
        return worker

    def do(self, part: int) -> int:
        """Explain the inputs of a part and write them; returns how many failed."""
        numbers = part_numbers(self.job.settings, part)
        rows = joined_rows(self.rows(*entry) for entry in self.explained(numbers))
        write_part(self.job.folder, self.job.run, part, rows, self.about)
        return failures_in(rows)

    def rows(self, number: int, result: Result) -> Rows:
        """The rows of an input; also saves whole explanations if the run keeps them."""
        if isinstance(result, BaseException):
            return failure_rows(number, self.job.name(number), result)
        if self._keeps(number):
            for explanation in result:
                kept = f"explanations/{number}-{explanation.target}.eblime"
                (self.job.folder / kept).write(pack(explanation))
        with few_threads(0):  # more threads may add numbers in another order
            return explained_rows(result, number, self.job.name(number), self.job.settings["prob"])

    def _keeps(self, number: int) -> bool:
        """Whether the whole explanations of an input are saved."""
        keep = self.job.settings["keep"]
        if keep is None:
            return number < _KEPT and self.explainer.domain in registry.names("domains")
        return bool(keep)

    @property
    def loop(self) -> LoopSettings:
        """The settings of the loop, with batch sizes that do not depend on the machine."""
        settings = self.job.settings
        limited = stop_settings(self.explainer.loop, self.job.until, settings.get("max_masks"))
        return replace(limited, steady=True, calls=self.calls)

    def subject(self, number: int) -> Subject:
        """Read an input, so that it can be perturbed."""
        return self.explainer.subject(self.explainer.input_of(self.job.inputs.get(number)))

    def explained(self, numbers: Sequence[int]) -> Iterator[tuple[int, Result]]:
        """Explanations by number, or errors; inputs share model calls where possible."""
        if on_gpu(self.explainer):
            yield from self._pipelined(numbers)
            return
        most = group_size(self.loop)
        subjects: dict[int, Subject] = {}
        for number in numbers:
            result = _attempt(self.subject, number)
            if isinstance(result, BaseException):
                yield number, result
                continue
            subjects[number] = result
            alone = isinstance(result.scene, RenderedScene)  # arrays are too large to share a call
            if alone or len(subjects) == most:
                yield from self._explained_group(subjects).items()
                subjects = {}
        yield from self._explained_group(subjects).items()

    def _explained_group(self, subjects: Mapping[int, Subject]) -> dict[int, Result]:
        """Explain inputs with shared model calls; one at a time if that fails."""
        targets, seed, loop = self.job.settings["targets"], self.job.settings["seed"], self.loop
        if len(subjects) > 1:
            rngs = [generator_of(seed, number) for number in subjects]
            made = _attempt(explain_together, loop, list(subjects.values()), targets, rngs)
            if not isinstance(made, BaseException):
                return {n: list(entry.values()) for n, entry in zip(subjects, made, strict=True)}
        found: dict[int, Result] = {}  # one at a time, which shows which input fails
        for number, subject in subjects.items():
            found[number] = _listed(_attempt(self._explained_alone, number, subject))
        return found

    def _explained_alone(self, number: int, subject: Subject) -> dict[int, Explanation]:
        """Explain one input, without a progress bar."""
        rng = generator_of(self.job.settings["seed"], number)
        return explain(self.loop, subject, self.job.settings["targets"], rng, progress=False)

    def _pipelined(self, numbers: Sequence[int]) -> Iterator[tuple[int, Result]]:
        """Keep a GPU busy: threads read inputs ahead of it and fit posteriors behind it.

        Only this thread asks the model.
        """
        ahead = max(2, min(8, available_cores() - 1))
        with ThreadPoolExecutor(ahead) as pool:
            todo = iter(numbers)
            reading = deque((n, pool.submit(self._opened, n)) for n in islice(todo, ahead))
            fitting: deque[tuple[int, Future[Any]]] = deque()
            while reading:
                number, opened = reading.popleft()
                reading.extend((n, pool.submit(self._opened, n)) for n in islice(todo, 1))
                fitting.append((number, self._asked(opened, pool)))
                if len(fitting) > ahead:
                    yield self._finished(*fitting.popleft())
            for entry in fitting:
                yield self._finished(*entry)

    def _opened(self, number: int) -> _Conversation:
        """An input, and the loop's first question about it."""
        subject, rng = self.subject(number), generator_of(self.job.settings["seed"], number)
        talk = converse(self.loop, subject, self.job.settings["targets"], rng)
        return _Conversation(subject=subject, talk=talk, step=next(talk))

    def _asked(self, opened: Future[_Conversation], pool: ThreadPoolExecutor) -> Future[Any]:
        """Ask the model the first question, and let a thread do what follows."""
        reply = _attempt(lambda: opened.result().reply(self.loop))
        if not isinstance(reply, BaseException):
            return pool.submit(opened.result().advanced, reply)
        failed: Future[Any] = Future()
        failed.set_exception(reply)
        return failed

    def _finished(self, number: int, fitting: Future[_Conversation]) -> tuple[int, Result]:
        """The result of an input; a design that asks in rounds asks its further questions here."""
        return number, _listed(_attempt(lambda: fitting.result().finished(self.loop)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Conversation:
    """The loop about one input: its next question, or the explanations at its end."""

    subject: Subject
    talk: Talk
    step: Question | dict[int, Explanation]

    def reply(self, loop: LoopSettings) -> Reply:
        """The model's reply to the next question."""
        assert isinstance(self.step, Question)
        return reply_from(loop, self.subject, self.step)

    def advanced(self, reply: Reply) -> _Conversation:
        """After the model's reply."""
        return replace(self, step=advance(self.talk, reply))

    def finished(self, loop: LoopSettings) -> dict[int, Explanation]:
        """Ask the remaining questions; returns the explanations."""
        current = self
        while isinstance(current.step, Question):
            current = current.advanced(current.reply(loop))
        return current.step


def check_finished(job: Job) -> None:
    """Refuse an explainer or a model that differs from the one of a finished run.

    The model must answer at least one question about it.
    """
    worker = Worker.start(replace(job, resumed=False))
    answers = _compare_model(worker)
    if answers and not any(answers):
        raise RuntimeError(
            f"The model failed on all {len(answers)} inputs of {job.folder} that it was asked "
            "about, so it cannot be compared with the model of the run. `eblime.open_run` reads "
            "the run without a model."
        )


def _compare_model(worker: Worker) -> list[bool]:
    """Refuse an explainer or a model that differs from the one of the first and last part.

    The model is asked about a few inputs; returns for each whether it answered.
    """
    job = worker.job
    files = [*part_files(job.folder).items()]
    answers = []
    for part, name in dict.fromkeys([*files[:1], *files[-1:]]):
        try:
            table, about = read_part(job.folder, job.run, part, name)
        except (OSError, ValueError):  # a damaged part is done again
            continue
        for setting in sorted({*about, *worker.about}):
            before, now = about.get(setting), worker.about.get(setting)
            if before != now:
                raise ValueError(
                    f"{job.folder} was created with {setting}={before}; this call has "
                    f"{setting}={now}. Use another folder, or the explainer of the run."
                )
        good = table[table["error"].isna()]
        first = good[good["input"] == good["input"].min()]
        size = float((first["mean"].abs() + 0.1 * first["prediction"].abs()).max())
        for row in good.drop_duplicates("input")[:_ASKED].itertuples():
            allowed = _NEAR * (0.1 * abs(row.prediction) + size) + 1e-9
            answers.append(_has_same_score(worker, row, allowed))
    return answers


def _has_same_score(worker: Worker, row: Any, allowed: float) -> bool:
    """Refuse a model whose score differs, unless it is random; False if it does not answer."""

    def ask() -> Any:
        loop = replace(worker.loop, calls=replace(worker.loop.calls, cache=None))
        try:
            scores = score_of_input(loop, worker.subject(int(row.input)))
        except Exception:
            return None
        return float(scores[int(row.target)]) if row.target < len(scores) else np.inf

    found = ask()
    if found is None or abs(found - row.prediction) <= allowed:
        return found is not None
    again = ask()
    if again is not None and (again == found or abs(again - found) <= allowed):
        now = f"{found:.4g}" if found < np.inf else "no such output"
        raise ValueError(
            f"{worker.job.folder} was created with another model: its stored prediction for "
            f"{row.name!r} is {row.prediction:.4g}; the model now returns {now}."
        )
    return True


def _listed(found: Any) -> Result:
    """Explanations as a list; an error as it is."""
    return found if isinstance(found, BaseException) else list(found.values())


def _attempt(call: Callable[..., Any], *args: Any) -> Any:
    """The result of a call, or its error; a model that calls `sys.exit` has failed, too."""
    try:
        return call(*args)
    except BaseException as error:
        if _ends_the_run(error):
            raise
        return error


def _ends_the_run(error: BaseException) -> bool:
    """Whether an error ends the whole call: Ctrl-C, or an exit by a signal handler."""
    if isinstance(error, (Exception, KeyboardInterrupt)):
        return isinstance(error, KeyboardInterrupt)
    handlers = [signal.getsignal(number) for number in signal.valid_signals()]
    codes = {getattr(handler, "__code__", None) for handler in handlers} - {None}
    return any(frame.f_code in codes for frame, _ in traceback.walk_tb(error.__traceback__))
