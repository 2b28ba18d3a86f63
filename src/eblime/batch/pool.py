"""Worker processes and their supervision: a worker that crashes, hangs or grows is replaced.

A part whose worker crashes or hangs is done again in pieces by another worker: the inputs that were
in progress one at a time, the others together. An input is recorded as failed only if it crashes or
hangs alone, so a worker that is killed by accident costs time but no result. Every input has its
own random generator, so no number depends on how a part was done.
"""

from __future__ import annotations

import signal
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from time import monotonic
from typing import Any, Protocol

from eblime.batch.child import Child, Message

__all__ = ["TRIES", "PartRules", "Pool", "WorkerStartError"]

TRIES = 3  # deaths that no input explains: at the start, or while a part is written
GROWTH = 1 << 30  # bytes that a worker may grow after its first task before it is replaced
_LOOK = 0.5  # seconds between checks for workers that died or are late


class WorkerStartError(RuntimeError):
    """No worker process can be started, or the explainer cannot be created in it."""


class PartRules(Protocol):
    """What a pool must know about a run: its inputs by part, and how results are stored."""

    @property
    def timeout(self) -> float | None:
        """Seconds that an input may take; None is no limit."""
        ...

    def numbers(self, part: int) -> Sequence[int]:
        """The inputs of a part."""
        ...

    def failure(self, number: int, name: str, error: Exception) -> Any:
        """What is stored for an input that crashed its worker or ran out of time, or an error."""
        ...

    def finish(self, part: int, rows: Mapping[int, Any], about: Mapping[str, str]) -> int:
        """Write a part that was done in pieces; returns how many of its inputs failed."""
        ...


@dataclass(slots=True, kw_only=True)
class _Task:
    """A part to do: as a whole at first, in pieces after its worker died."""

    part: int
    pieces: list[tuple[int, ...]]  # inputs that are not done yet
    whole: bool = True
    rows: dict[int, Any] = field(default_factory=dict)  # by input, where it is done in pieces
    deaths: int = 0  # deaths of workers that no input explains

    def message(self) -> Message:
        """The next step, as a message to a worker."""
        return ("part", self.part) if self.whole else ("inputs", self.pieces[0])

    def interrupted(
        self, begun: tuple[int, ...], name: str | None, error: Exception, rules: PartRules
    ) -> None:
        """Plan what to do after the death of a worker that had begun some inputs."""
        piece = self.pieces.pop(0)
        rest = tuple(n for n in piece if n not in self.rows and n not in begun)
        if not begun:
            self.deaths += 1
            if self.deaths >= TRIES:
                raise RuntimeError(
                    f"Workers died {TRIES} times at part {self.part} while no input was being "
                    "explained. Finished parts are saved; call again to resume."
                ) from error
        elif len(piece) == 1 and not self.whole:
            self.rows[begun[0]] = rules.failure(begun[0], name or str(begun[0]), error)
        else:
            self.whole = False
            self.pieces += [(number,) for number in begun]
        if rest:
            self.pieces.append(rest)


@dataclass(slots=True, kw_only=True, eq=False)
class _Member:
    """A worker of a pool, and what it is doing."""

    child: Child
    ready: bool = False  # its explainer is created
    task: _Task | None = None
    begun: tuple[int, ...] = ()  # inputs that it is working on
    name: str | None = None  # of the only input of a task
    memory: int = 0  # bytes held after its first task

    def give(self, task: _Task) -> None:
        """Send the next step of a part."""
        self.task, self.begun, self.name = task, (), None
        self.child.send(task.message())


class Pool:
    """The worker processes of one run."""

    def __init__(self, packed_job: bytes, rules: PartRules, size: int, threads: int) -> None:
        self._job, self._rules, self._size, self._threads = packed_job, rules, size, threads
        self._members: list[_Member] = []
        self._about: dict[str, str] = {}  # the settings of the explainer
        self._failed_starts = 0
        self._looked = monotonic()  # time of the last look at the workers

    def run(self, parts: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Do parts; yields (part, number of failed inputs) as each is done."""
        todo = deque(_Task(part=part, pieces=[tuple(self._rules.numbers(part))]) for part in parts)
        while todo or any(member.task for member in self._members):
            self._assign(todo)
            children = [member.child for member in self._members]
            events: list[Any] = [child.connection for child in children]
            wait(events + [child.process.sentinel for child in children], timeout=_LOOK)
            self._excuse_pause()
            for member in list(self._members):
                died = not member.child.process.is_alive()  # before its last messages are read
                for message in member.child.messages():
                    yield from self._handle(member, message)
                if died or self._late(member):
                    error = self._error(member.child.process.exitcode)
                    yield from self._lost(member, error, todo)

    def close(self) -> None:
        """End all workers."""
        for member in self._members:
            member.child.stop()
        while self._members:
            self._members.pop().child.kill()

    def _assign(self, todo: deque[_Task]) -> None:
        """Assign parts to free workers, and start more workers if needed."""
        for member in self._members:
            if todo and member.ready and member.task is None:
                member.give(todo.popleft())
        starting = sum(not member.ready for member in self._members)
        room = self._size - len(self._members)
        for _ in range(min(room, len(todo) - starting)):
            self._members.append(_Member(child=Child(self._job, self._threads)))
            self._members[-1].child.start()

    def _handle(self, member: _Member, message: Message) -> Iterator[tuple[int, int]]:
        """Handle a message of a worker; yields its part if that is done."""
        kind, *values = message
        task = member.task
        if kind == "ready":
            member.ready, self._about, self._failed_starts = True, values[0], 0
        elif kind == "unready":
            raise WorkerStartError(f"The explainer cannot be created in a worker: {values[0]}")
        elif kind == "begin":
            member.begun = values[0]
        elif kind == "name":
            member.name = values[0]
        elif kind == "error":
            member.task = None
            raise values[0] from RuntimeError(f"In a worker process:\n{values[1]}")
        elif kind == "rows" and task is not None:
            task.rows[values[0]] = values[1]
            member.begun = tuple(number for number in member.begun if number != values[0])
        elif kind == "done" and task is not None:
            yield from self._step_done(member, task, *values)

    def _step_done(
        self, member: _Member, task: _Task, failed: int, memory: int
    ) -> Iterator[tuple[int, int]]:
        """Continue with the next piece of a part, or finish it; replace a worker that grew."""
        member.task, member.begun = None, ()
        if not task.whole:
            task.pieces.pop(0)
            if task.pieces:
                member.give(task)
                return
            failed = self._rules.finish(task.part, task.rows, self._about)
        member.memory = member.memory or memory
        if memory > member.memory + GROWTH:
            self._members.remove(member)
            member.child.kill()
        yield task.part, failed

    def _excuse_pause(self) -> None:
        """Do not count time in which this process stood still: its workers may have, too.

        Ctrl-Z stops all of them, and so does a virtual machine that is paused.
        """
        now = monotonic()
        pause = now - self._looked - 2 * _LOOK
        self._looked = now
        if pause > 0:
            for member in self._members:
                member.child.since = min(now, member.child.since + pause)

    def _late(self, member: _Member) -> bool:
        """Whether a worker has worked on its inputs for longer than the timeout."""
        timeout = self._rules.timeout
        busy = timeout is not None and member.task is not None and member.begun
        return bool(busy) and monotonic() - member.child.since > (timeout or 0.0)

    def _error(self, exit_code: int | None) -> Exception:
        """The error to record: a crash, or a timeout if the worker has no exit code."""
        if exit_code is None:
            limit = f"{self._rules.timeout:g} s"
            return TimeoutError(f"This input was not explained within the timeout of {limit}.")
        return RuntimeError(f"The worker process crashed ({_ending(exit_code)}) on this input.")

    def _lost(
        self, member: _Member, error: Exception, todo: deque[_Task]
    ) -> Iterator[tuple[int, int]]:
        """Drop a worker that died or hangs; another one continues its part."""
        if member not in self._members:  # it has just been replaced
            return
        self._members.remove(member)
        member.child.kill()
        if not member.ready:
            self._failed_starts += 1
            if self._failed_starts >= TRIES:
                how = _ending(member.child.process.exitcode)
                raise WorkerStartError(
                    f"Worker processes died {TRIES} times while they started ({how}). Is the call "
                    'in a script under `if __name__ == "__main__":`? Does the model crash or run '
                    "out of memory while it is loaded?"
                )
        task = member.task
        if task is None:
            return
        task.interrupted(member.begun, member.name, error, self._rules)
        if task.pieces:
            todo.appendleft(task)
        else:
            yield task.part, self._rules.finish(task.part, task.rows, self._about)


def _ending(exit_code: int | None) -> str:
    """How a process ended, for messages."""
    if exit_code is None or exit_code >= 0:
        return f"exit code {exit_code}"
    known = {int(entry): entry.name for entry in signal.Signals}
    hint = ", perhaps out of memory" if known.get(-exit_code) == "SIGKILL" else ""
    return f"signal {known.get(-exit_code, -exit_code)}{hint}"
