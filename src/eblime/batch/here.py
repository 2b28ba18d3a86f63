"""Parts done in the driver itself, and a marker that says what it was doing if it dies.

A crash of the model ends the driver, too. The next call finds the marker `in-progress.json` in the
folder of the run, and does not fall into the same trap: the part is done by a worker process (see
`local`) or, where there can be none, here and input by input. A crash then names the input, and the
call after that records it as failed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace

from eblime.batch.folder import write_part
from eblime.batch.place import Place
from eblime.batch.rows import failures_in, joined_rows
from eblime.batch.work import Job, Worker, part_numbers

__all__ = ["Marker", "read_marker", "remove_marker", "run_here"]

_NAME = "in-progress.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """What a driver was doing."""

    part: int
    number: int | None = None  # the input, where they were done one by one
    crashed: tuple[int, ...] = ()  # inputs of the part on which the driver died before


def run_here(
    job: Job, parts: Sequence[int], left: Marker | None = None
) -> Iterator[tuple[int, int]]:
    """Do parts in this process, the one of a marker first and input by input.

    Yields (part, number of failed inputs) as each is done.
    """
    worker = Worker.begin(job)
    if left is not None:
        yield left.part, _one_by_one(worker, left)
    try:
        for part in parts:
            if left is None or part != left.part:
                _write_marker(job.folder, Marker(part=part))
                yield part, worker.do(part)
    finally:
        remove_marker(job.folder)


def _one_by_one(worker: Worker, left: Marker) -> int:
    """Do the part of a marker, without the inputs on which the driver died.

    Returns how many failed. If this process is interrupted, a marker stays for the next call.
    """
    died_on = () if left.number is None else (left.number,)
    marker = Marker(part=left.part, crashed=tuple(sorted({*left.crashed, *died_on})))
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
        write_part(worker.folder, marker.part, rows, worker.about)
    except BaseException:
        _write_marker(worker.folder, marker)
        raise
    remove_marker(worker.folder)
    return failures_in(rows)


def read_marker(folder: Place) -> Marker | None:
    """What a driver was doing when it died; None where none did."""
    place = folder / _NAME
    if place.kind() != "file":
        return None
    try:
        found = json.loads(place.read())
        crashed = tuple(int(number) for number in found["crashed"])
        return Marker(part=int(found["part"]), number=found["number"], crashed=crashed)
    except (ValueError, TypeError, KeyError):  # cut short: it says nothing
        return None


def remove_marker(folder: Place) -> None:
    """Take the marker away, if there is one."""
    place = folder / _NAME
    if place.kind() == "file":
        place.remove()


def _write_marker(folder: Place, marker: Marker) -> None:
    """Say what this process is doing."""
    (folder / _NAME).write(json.dumps(asdict(marker)).encode())
