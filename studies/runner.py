"""Run a study item by item: with a progress bar, on several processes, and resumable.

The results of a study have a folder of their own: `study.json` with the settings, one file of rows
for every finished item, and `rows.csv` with all rows. The name of the folder ends in a digest of
the settings and of the inputs, which are the data files and networks that the rows depend on. So a
study with other settings or other data never reads results that are not its own. The generator of
an item depends only on the seed and the number of the item, so that the order, the processes and
restarts cannot change a number.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits
from tqdm import tqdm

import eblime
from eblime._files import write_whole
from studies.data.files import digest
from studies.tables import write_csv

__all__ = ["Row", "Task", "add_run_options", "positive", "run_study", "study_generator"]

Row = dict[str, Any]
Task = Callable[[Mapping[str, Any], int], list[Row]]


def positive(text: str) -> int:
    """A whole number of at least one, for `argparse`."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be >= 1; got {number}")
    return number


def add_run_options(
    parser: argparse.ArgumentParser,
    *,
    items: int | None = None,
    many: str = "all",
    seed: bool = True,
) -> None:
    """The options of `run_study`, the number of items and, if wanted, the seed."""
    shown = many if items is None else items
    parser.add_argument("--items", type=positive, default=items, help=f"inputs (default: {shown})")
    if seed:
        parser.add_argument("--seed", type=int, default=0, help="seed of the whole study")
    parser.add_argument("--jobs", type=positive, default=2, help="processes (default: 2)")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("eblime-studies"),
        help="folder of results, from which a study resumes (default: eblime-studies)",
    )
    parser.set_defaults(progress=True)


def run_study(
    task: Task,
    settings: Mapping[str, Any],
    items: Sequence[int],
    *,
    inputs: Sequence[Any] = (),
    out: str | os.PathLike[str] | None = None,
    jobs: int = 1,
    progress: bool = False,
) -> pd.DataFrame:
    """The rows of every item, in order; items with a stored result are not run again.

    Parameters
    ----------
    task
        A function of the settings and the number of an item; it returns rows of numbers and text.
    settings
        What the rows depend on besides the inputs.
    items
        Numbers of the items.
    inputs
        The data that the rows depend on: paths, arrays or other values, see `digest`.
    out
        Folder of results; None stores none.
    jobs
        Number of processes. Each uses one thread, so that the rows do not depend on it.
    progress
        Show a progress bar, and say where the rows are.
    """
    with ExitStack() as stack:
        if out is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        else:
            folder = _study_folder(Path(out), task, settings, inputs)
        found = {item: _read(folder, item) for item in items}
        todo = [item for item in items if found[item] is None]
        begun = {"total": len(items), "initial": len(items) - len(todo)}
        with tqdm(desc=_name(task), unit="item", disable=not progress, **begun) as bar:
            for item in _run_items(task, settings, todo, folder, jobs):
                found[item] = _read(folder, item)
                bar.update()
        table = pd.DataFrame([row for item in items for row in found[item] or ()])
        if out is not None:
            write_csv(table, folder / "rows.csv")
            if progress:
                print(f"Every row is in {folder / 'rows.csv'}.")
    return table


def study_generator(settings: Mapping[str, Any], *key: int) -> np.random.Generator:
    """A generator that depends only on the seed of the study and on `key`."""
    return np.random.default_rng(np.random.SeedSequence(settings["seed"], spawn_key=key))


def _study_folder(
    out: Path, task: Task, settings: Mapping[str, Any], inputs: Sequence[Any]
) -> Path:
    """The folder for the results of these settings and inputs alone; created if it is missing."""
    identity = {"eblime": eblime.__version__, **settings, "inputs": digest(*inputs)}
    content = json.dumps(identity, indent=1, sort_keys=True)
    folder = out / f"{_name(task)}-{digest(content)[:12]}"
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / "study.json", content.encode())
    return folder


def _name(task: Task) -> str:
    """The name of a study, from that of its task."""
    return task.__name__.removesuffix("_rows").replace("_", "-")


def _run_items(
    task: Task, settings: Mapping[str, Any], items: Sequence[int], folder: Path, jobs: int
) -> Iterator[int]:
    """Run items and write their rows; yields the number of each when it is finished."""
    if jobs == 1 or len(items) < 2:
        for item in items:
            yield _run_item(task, settings, item, folder)
        return
    with joblib.parallel_config("loky", n_jobs=jobs, inner_max_num_threads=1):
        pool = joblib.Parallel(return_as="generator_unordered", batch_size=1)
        yield from pool(joblib.delayed(_run_item)(task, settings, item, folder) for item in items)


def _run_item(task: Task, settings: Mapping[str, Any], item: int, folder: Path) -> int:
    """Run one item and write its rows."""
    with threadpool_limits(1):
        rows = task(settings, item)
    content = json.dumps(rows, default=lambda number: number.item())  # numbers of NumPy
    write_whole(_path(folder, item), content.encode())
    return item


def _read(folder: Path, item: int) -> list[Row] | None:
    """The rows of an item; None if they are missing or damaged."""
    try:
        return list(json.loads(_path(folder, item).read_bytes()))
    except (OSError, ValueError):
        return None


def _path(folder: Path, item: int) -> Path:
    """The file of an item's rows."""
    return folder / f"item-{item}.json"
