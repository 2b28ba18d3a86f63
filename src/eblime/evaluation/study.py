"""Running a study: items in any order, on any number of processes, resumable, nothing lost.

A study is a folder: `study.json` says what is studied, and each finished item is one file of rows,
written under another name and renamed. An item's generator depends on the seed and its number
alone, so that order, processes and restarts cannot change a number.
"""

from __future__ import annotations

import json
import multiprocessing
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from eblime._files import write_whole
from eblime._progress import Progress, progress_reporter
from eblime._threads import limit_threads
from eblime._version import __version__

__all__ = ["Row", "run_study", "to_table"]

Row = dict[str, Any]
Task = Callable[[Mapping[str, Any], int], list[Row]]


def run_study(
    task: Task,
    settings: Mapping[str, Any],
    items: Sequence[int],
    *,
    out: str | os.PathLike[str] | None = None,
    jobs: int = 1,
    progress: Progress = None,
) -> list[Row]:
    """Rows of every item, those done before read from `out`.

    `task(settings, item)` must be a function of a module, so that other processes can find it.
    """
    to_table([])  # a missing pandas is told before anything is run
    folder = None if out is None else _opened(Path(out), settings)
    done = {} if folder is None else _finished(folder, items)
    todo = [item for item in items if item not in done]
    total = len(items)
    with progress_reporter(progress, total, unit="item") as report:
        report(len(done))
        for item, rows in _results(task, settings, todo, jobs):
            done[item] = rows
            if folder is not None:
                write_whole(folder / f"item-{item}.json", json.dumps(rows).encode())
            report(len(done))
    return [row for item in items for row in done[item]]


def to_table(rows: Sequence[Row]) -> Any:
    """Rows as a pandas frame."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError("A data frame needs pandas: pip install 'eblime[frame]'.") from error
    return pd.DataFrame(list(rows))


def _results(task: Task, settings: Mapping[str, Any], todo: Sequence[int], jobs: int) -> Any:
    """Finished items as they come."""
    if jobs == 1 or len(todo) < 2:
        for item in todo:
            yield item, task(settings, item)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(
        min(jobs, len(todo)), mp_context=context, initializer=limit_threads
    ) as pool:
        waiting = {pool.submit(task, settings, item): item for item in todo}
        try:
            for future in as_completed(waiting):
                yield waiting[future], future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _opened(folder: Path, settings: Mapping[str, Any]) -> Path:
    """The folder of a study, new or the same one as before."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "study.json"
    wanted = json.loads(json.dumps({**settings, "eblime": __version__}))
    if path.exists():
        try:
            known = json.loads(path.read_text(encoding="utf8"))
        except ValueError as error:
            raise ValueError(f"{path} is damaged; take another folder, or remove it.") from error
        changed = sorted(name for name in {*known, *wanted} if known.get(name) != wanted.get(name))
        if changed:
            name = changed[0]
            raise ValueError(
                f"{folder} holds a study with another {name!r}: {known.get(name)!r} there, "
                f"{wanted.get(name)!r} now. Take another folder."
            )
    else:
        write_whole(path, json.dumps(wanted, indent=1).encode())
    return folder


def _finished(folder: Path, items: Sequence[int]) -> dict[int, list[Row]]:
    """Items done before; a file that is damaged counts as not done."""
    done = {}
    for item in items:
        path = folder / f"item-{item}.json"
        if path.exists():
            try:
                done[item] = json.loads(path.read_text(encoding="utf8"))
            except ValueError:
                continue
    return done
