"""Workers and their supervision: a worker that crashes, hangs or grows is replaced.

A part whose worker crashes or hangs is done again, one input at a time. An input is recorded as
failed only if it crashes or hangs alone, so a worker that is killed by accident costs time but no
result. Every input has its own random generator, so no number depends on how a part was done.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from time import monotonic
from typing import Any, Literal, NamedTuple, Protocol

from eblime._checks import check_choice, check_count, check_number
from eblime.batch.folder import (
    Rows,
    count_failures,
    entry_rows,
    part_numbers,
    write_part,
)
from eblime.batch.worker import Job

Count = int | Literal["auto"]
TRIES = 3  # deaths of workers that were starting
GROWTH = 1 << 30  # bytes that a worker may grow after its first task before it is replaced
_LOOK = 0.5  # seconds between checks for workers that are late


@dataclass(frozen=True, slots=True)
class Workers:
    """How many workers a run has, where they are, and how long each may take for an input.

    Parameters
    ----------
    count
        Number of workers. "auto" is as many as cores and memory allow, and one if the model runs
        on a GPU. One local worker without a timeout is the calling process.
    timeout
        Seconds per input; an input that takes longer is recorded as failed. The inputs of a part
        share this time at first. If it is too short for all of them, they are explained one at a
        time, each with the whole time. None waits without a limit.
    engine
        "local" for processes on this machine, or "ray".
    cpus, gpus
        What each Ray actor claims; by default an equal share of the cores, at most one, and no GPU.

    Examples
    --------
    >>> from eblime.batch import Workers
    >>> Workers(4, timeout=60)
    Workers(count=4, timeout=60, engine='local', cpus=None, gpus=None)
    """

    count: Count = 1
    timeout: float | None = None
    engine: str = "local"
    cpus: float | None = None
    gpus: float | None = None

    def check(self) -> None:
        """Refuse settings that cannot work."""
        if self.count != "auto":
            check_count("workers", self.count)
        if self.timeout is not None:
            check_number("timeout", self.timeout)
        check_choice("engine", self.engine, ("local", "ray"))
        if self.engine == "local" and (self.cpus is not None or self.gpus is not None):
            raise ValueError("`cpus` and `gpus` are for `engine` 'ray'.")


class WorkerStartError(RuntimeError):
    """No worker can be started, or the explainer cannot be created in it."""


class Task(NamedTuple):
    """A part, which the worker writes, or one of its inputs, whose rows it returns."""

    part: int
    number: int | None = None


class Finished(NamedTuple):
    """What a worker returns."""

    value: Any  # how many inputs of a part failed, or the rows of an input; at its start, `about`
    memory: int  # bytes that it holds


class Slot(Protocol):
    """A worker process, seen from the process that supervises it."""

    def start(self) -> Future[Finished]:
        """Start the process and create its explainer; the result is the explainer's settings."""
        ...

    def submit(self, task: Task) -> Future[Finished]:
        """Give it a task."""
        ...

    def ending(self, error: BaseException | None) -> str | None:
        """How the process ended, or None if it lives; `error` is that of its task, if any."""
        ...

    def kill(self) -> None:
        """End the process at once."""
        ...


@dataclass(slots=True, eq=False)
class _Member:
    """A worker, and what it is doing."""

    slot: Slot
    future: Future[Finished] | None = None
    task: Task | None = None  # None while it starts
    since: float = 0.0  # when it began
    memory: int = 0  # bytes held after its first task
    died: float | None = None  # when its process was found dead, and its task had no result yet


class Crew:
    """Up to `most` workers of a run, and the parts that are left; `hire` creates a worker."""

    def __init__(self, job: Job, parts: Sequence[int], hire: Callable[[], Slot], most: int) -> None:
        self._members: list[_Member] = []
        self._job, self._hire, self._most = job, hire, most
        self._todo = deque(Task(part) for part in parts)
        self._rows: dict[int, dict[int, Rows]] = {}  # of parts that are done input by input
        self._about: Mapping[str, str] = {}  # the settings of the explainer
        self._failed_starts = 0
        self._late: set[int] = set()  # parts that took longer than the timeout of one input
        self._alone = False  # parts need longer, though no input does
        self._last_check = monotonic()

    def run(self) -> Iterator[tuple[int, int]]:
        """Do all parts; yields (part, number of failed inputs) as each is done."""
        try:
            while self._todo or any(member.task for member in self._members):
                self._assign()
                pending = [member.future for member in self._members if member.future is not None]
                wait(pending, timeout=_LOOK, return_when=FIRST_COMPLETED)
                self._excuse_pause()
                for member in list(self._members):
                    yield from self._check_on(member)
        finally:
            for member in self._members:
                member.slot.kill()

    def _assign(self) -> None:
        """Give tasks to free workers, and start more workers if needed."""
        while self._alone and self._todo and self._todo[0].number is None:
            self._split(self._todo.popleft().part)
        for member in list(self._members):
            if self._todo and member.future is None:
                if member.slot.ending(None) is not None:  # it died while it was free
                    self._remove(member)
                    continue
                member.task, member.since = self._todo.popleft(), monotonic()
                member.future = member.slot.submit(member.task)
        starting = sum(member.task is None for member in self._members if member.future is not None)
        for _ in range(min(self._most - len(self._members), len(self._todo) - starting)):
            member = _Member(slot=self._hire())
            self._members.append(member)  # first: if the start is interrupted, it is still killed
            member.future = member.slot.start()

    def _check_on(self, member: _Member) -> Iterator[tuple[int, int]]:
        """Handle what a worker has done; yields its part if that is finished."""
        if member.future is None:
            return
        error = member.future.exception() if member.future.done() else None
        ending = member.slot.ending(error)
        timeout = self._job.timeout
        if member.future.done() and error is None:
            yield from self._finish_task(member, member.future.result())
        elif ending is not None and (error is not None or self._is_long_dead(member)):
            text = f"The worker process crashed{ending and f' ({ending})'} on this input."
            yield from self._drop_worker(member, RuntimeError(text), ending)
        elif error is not None:
            raise error
        elif timeout is not None and member.task and monotonic() - member.since > timeout:
            self._late.add(member.task.part)
            text = f"This input was not explained within the timeout of {timeout:g} s."
            yield from self._drop_worker(member, TimeoutError(text), "")

    def _is_long_dead(self, member: _Member) -> bool:
        """Whether a dead worker will not send a result any more; it may be on its way."""
        member.died = member.died or monotonic()
        return monotonic() - member.died > 4 * _LOOK

    def _finish_task(self, member: _Member, result: Finished) -> Iterator[tuple[int, int]]:
        """A task is done, or the worker has started."""
        task, member.future, member.task = member.task, None, None
        if task is None:
            self._failed_starts, self._about = 0, result.value
            return
        member.memory = member.memory or result.memory
        if result.memory > member.memory + GROWTH:
            self._remove(member)
        if task.number is None:
            yield task.part, result.value
        else:
            yield from self._add(task.part, task.number, result.value)

    def _drop_worker(
        self, member: _Member, error: Exception, ending: str
    ) -> Iterator[tuple[int, int]]:
        """Drop a worker that died or hangs; another one continues its part."""
        self._remove(member)
        if member.task is None:
            self._failed_starts += 1
            if self._failed_starts >= TRIES:
                raise WorkerStartError(
                    f"Worker processes died {TRIES} times while they started ({ending}). Is the "
                    'call in a script under `if __name__ == "__main__":`? Does the model crash or '
                    "run out of memory while it is loaded?"
                )
        elif (number := member.task.number) is None:
            self._split(member.task.part)
        else:
            entry = (number, self._job.name(number), error)
            rows = entry_rows([entry], self._job.settings["prob"])
            yield from self._add(member.task.part, number, rows)

    def _remove(self, member: _Member) -> None:
        """End a worker."""
        self._members.remove(member)
        member.slot.kill()

    def _split(self, part: int) -> None:
        """Do a part one input at a time, before others."""
        self._rows[part] = {}
        numbers = part_numbers(self._job.settings, part)
        self._todo.extendleft(Task(part, number) for number in reversed(numbers))

    def _add(self, part: int, number: int, rows: Rows) -> Iterator[tuple[int, int]]:
        """Add the rows of an input; write its part if they were the last."""
        found = self._rows[part]
        found[number] = rows
        if len(found) < len(part_numbers(self._job.settings, part)):
            return
        joined = [row for number in sorted(found) for row in found[number]]
        del self._rows[part]
        write_part(self._job.folder, self._job.run, part, joined, self._about)
        failed = count_failures(joined)
        self._alone |= part in self._late and not failed
        yield part, failed

    def _excuse_pause(self) -> None:
        """Do not count time in which this process stood still: its workers may have, too.

        Ctrl-Z stops all of them, and so does a virtual machine that is paused.
        """
        now = monotonic()
        pause = now - self._last_check - 2 * _LOOK
        self._last_check = now
        if pause > 0:
            for member in self._members:
                member.since = min(now, member.since + pause)
