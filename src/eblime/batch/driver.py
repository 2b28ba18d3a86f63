"""Parts that the driver, the calling process, does itself.

If the model crashes, the driver crashes too. The file `in-progress.json` in the run folder says
which part it was doing, and the next call does that part in a worker process (see `local`). If the
explainer cannot be sent to a worker, the driver does the part input by input. Another crash then
identifies the input, and the call after that records it as failed.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from dataclasses import asdict, dataclass, replace

from eblime.batch.folder import part_numbers, write_part
from eblime.batch.job import Job
from eblime.batch.location import Location
from eblime.batch.rows import failures_in, joined_rows
from eblime.batch.worker import Worker

__all__ = ["Marker", "read_marker", "remove_marker", "run_in_driver"]

_NAME = "in-progress.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """What a driver is doing."""

    part: int
    number: int | None = None  # the input, if they are done one by one
    crashed: tuple[int, ...] = ()  # inputs of the part on which a driver crashed


def run_in_driver(
    job: Job, parts: Sequence[int], interrupted: Marker | None = None
) -> Generator[tuple[int, int]]:
    """Do parts in this process; an interrupted part comes first and is done input by input.

    Yields (part, number of failed inputs) after each part.
    """
    worker = Worker.start(job)
    if interrupted is not None:
        yield interrupted.part, _one_by_one(worker, interrupted)
    try:
        for part in parts:
            if interrupted is None or part != interrupted.part:
                _write_marker(job.folder, Marker(part=part))
                yield part, worker.do(part)
    finally:
        remove_marker(job.folder)


def _one_by_one(worker: Worker, interrupted: Marker) -> int:
    """Do an interrupted part without the inputs on which a driver crashed; returns the failures.

    If this process is interrupted, the marker stays for the next call.
    """
    last = () if interrupted.number is None else (interrupted.number,)
    crashed = tuple(sorted({*interrupted.crashed, *last}))
    marker = Marker(part=interrupted.part, crashed=crashed)
    pieces = []
    try:
        for number in part_numbers(worker.settings, marker.part):
            if number in marker.crashed:
                error = RuntimeError("The process crashed on this input.")
                pieces.append(worker.rows(number, error))
                continue
            _write_marker(worker.folder, replace(marker, number=number))
            pieces += [worker.rows(*entry) for entry in worker.explained([number])]
        rows = joined_rows(pieces)
        write_part(worker.folder, worker.run, marker.part, rows, worker.about)
    except BaseException:
        _write_marker(worker.folder, marker)
        raise
    remove_marker(worker.folder)
    return failures_in(rows)


def read_marker(folder: Location) -> Marker | None:
    """What the last driver was doing when it crashed; None if it did not."""
    marker_file = folder / _NAME
    if marker_file.kind() != "file":
        return None
    try:
        found = json.loads(marker_file.read())
        crashed = tuple(int(number) for number in found["crashed"])
        return Marker(part=int(found["part"]), number=found["number"], crashed=crashed)
    except (ValueError, TypeError, KeyError):  # incomplete
        return None


def remove_marker(folder: Location) -> None:
    """Delete the marker, if there is one."""
    marker_file = folder / _NAME
    if marker_file.kind() == "file":
        marker_file.remove()


def _write_marker(folder: Location, marker: Marker) -> None:
    """Record what this process is doing."""
    (folder / _NAME).write(json.dumps(asdict(marker)).encode())
