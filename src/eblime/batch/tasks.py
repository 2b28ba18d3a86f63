"""Tasks by number in supervised worker processes, each result in a file of its own.

A task is a function of a module, `task(settings, number)`, and returns what JSON can hold. It must
depend on nothing else: then the order, the number of workers and restarts cannot change a result.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eblime._files import write_whole
from eblime.batch.pool import Pool

__all__ = ["Task", "read_result", "run_tasks"]

Task = Callable[[Mapping[str, Any], int], Any]


def run_tasks(
    task: Task, settings: Mapping[str, Any], numbers: Sequence[int], folder: Path, workers: int
) -> Iterator[int]:
    """Run tasks and write their results to a folder; yields each number when it is done.

    Several workers are processes with one thread each. A task whose worker dies is run once more
    by another worker.

    Raises
    ------
    TypeError
        If there are several workers and the task or its settings cannot be pickled.
    RuntimeError
        If a task crashes its worker twice. An exception of a task itself is raised unchanged.
    """
    run = _TaskRun(task=task, settings=dict(settings), folder=folder)
    workers = min(workers, len(numbers))
    if workers <= 1:
        for number in numbers:
            run.do(number)
            yield number
        return
    with closing(Pool(_packed(run), run, workers, threads=1)) as pool:
        for number, _ in pool.run(numbers):
            yield number


def read_result(folder: Path, number: int) -> Any:
    """The result of a task; None if it is missing or damaged."""
    try:
        return json.loads(_path(folder, number).read_bytes())
    except (OSError, ValueError):
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _TaskRun:
    """A run of tasks: sent to the workers, used by them, and asked by the pool.

    Every task is a part with one input.
    """

    task: Task
    settings: Mapping[str, Any]
    folder: Path
    timeout: float | None = None
    about: Mapping[str, str] = field(default_factory=dict)

    def start(self) -> _TaskRun:
        """Nothing has to be made first."""
        return self

    def do(self, number: int, begin: Callable[[Sequence[int]], None] = lambda numbers: None) -> int:
        """Run a task and write its result; a task that fails raises its error."""
        begin((number,))
        self.finish(number, {number: self.task(self.settings, number)}, self.about)
        return 0

    def explained(
        self, numbers: Sequence[int], begin: Callable[[Sequence[int]], None]
    ) -> Iterator[tuple[int, Any]]:
        """Results of tasks, by number."""
        for number in numbers:
            begin((number,))
            yield number, self.task(self.settings, number)

    def rows(self, number: int, result: Any) -> Any:
        """A result is stored as it is."""
        return result

    def name(self, number: int) -> str:
        """Tasks have no names but their numbers."""
        return str(number)

    def numbers(self, part: int) -> Sequence[int]:
        """The only input of a part."""
        return (part,)

    def failure(self, number: int, name: str, error: Exception) -> Any:
        """A crash ends the run: no result can stand for the missing one."""
        raise RuntimeError(
            f"Item {number} crashed its worker process twice. Finished items are saved; call again "
            "to resume."
        ) from error

    def finish(self, part: int, rows: Mapping[int, Any], about: Mapping[str, str]) -> int:
        """Write the result of a task."""
        write_whole(_path(self.folder, part), json.dumps(rows[part]).encode())
        return 0


def _path(folder: Path, number: int) -> Path:
    """The file of a result."""
    return folder / f"item-{number}.json"


def _packed(run: _TaskRun) -> bytes:
    """A run as it is sent to worker processes."""
    try:
        return pickle.dumps(run)
    except Exception as error:
        raise TypeError(
            "`task` must be a function of a module, and its settings picklable, for several "
            f"workers ({type(error).__name__}: {error})."
        ) from error
