"""Run a study: items in any order, on any number of processes, resumable.

A study is a folder: `study.json` has its settings, and every finished item is a file of rows. The
items are tasks of `eblime.batch.tasks`. The generator of an item depends only on the seed and the
number of the item, so the order, the processes and restarts cannot change a number.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from eblime import registry
from eblime._checks import check_choice, check_count
from eblime._files import write_whole
from eblime._pandas import check_pandas
from eblime._progress import Progress, progress_reporter
from eblime._version import __version__
from eblime.batch.tasks import read_result, run_tasks

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "MOST_ITEMS",
    "Row",
    "check_methods",
    "count_items",
    "run_study",
    "study_generator",
    "to_table",
]

MOST_ITEMS = 40  # of a study whose number of items is not given

Row = dict[str, Any]
StudyTask = Callable[[Mapping[str, Any], int], list[Row]]


def run_study(
    task: StudyTask,
    settings: Mapping[str, Any],
    items: Sequence[int],
    *,
    out: str | os.PathLike[str] | None = None,
    jobs: int = 1,
    progress: Progress = None,
) -> list[Row]:
    """Rows of every item; items that are finished in the folder `out` are not run again.

    With several jobs, `task` must be a function of a module, so that worker processes can import
    it.
    """
    check_pandas()  # fails here, before any work, if it is missing
    with ExitStack() as stack:
        if out is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        else:
            folder = Path(out)
            _check_study(folder, settings)
        found = {item: read_result(folder, item) for item in items}
        todo = [item for item in items if found[item] is None]
        done = len(items) - len(todo)
        report = stack.enter_context(progress_reporter(progress, len(items), unit="item"))
        report(done)
        for item in run_tasks(task, settings, todo, folder, jobs):
            found[item] = read_result(folder, item)
            done += 1
            report(done)
    return [row for item in items for row in found[item]]


def count_items(items: int | None, available: Callable[[], int], *, most: int | None = None) -> int:
    """How many items a study has: `items`, or, if that is None, all but at most `most`.

    `available` counts those that there are. It may load data, so `items` is checked first.
    """
    if items is not None:
        check_count("items", items)
    wanted = most if items is None else items
    return available() if wanted is None else min(wanted, available())


def check_methods(methods: Sequence[str]) -> None:
    """Refuse names of methods that are not known."""
    for name in methods:
        check_choice("methods", name, registry.names("methods"))


def study_generator(settings: Mapping[str, Any], *key: int) -> np.random.Generator:
    """A generator that depends only on the seed of the study and on `key`."""
    return np.random.default_rng(np.random.SeedSequence(settings["seed"], spawn_key=key))


def to_table(rows: Sequence[Row]) -> pd.DataFrame:
    """Rows as a pandas frame."""
    from eblime._pandas import pd

    return pd.DataFrame(list(rows))


def _check_study(folder: Path, settings: Mapping[str, Any]) -> None:
    """Create the folder of a study, or check that it belongs to a study with these settings."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "study.json"
    wanted = json.loads(json.dumps({**settings, "eblime": __version__}))
    if not path.exists():
        write_whole(path, json.dumps(wanted, indent=1).encode())
        return
    try:
        known = dict(json.loads(path.read_text(encoding="utf8")))
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path} is damaged; use another folder, or remove it.") from error
    for name in sorted({*known, *wanted}):
        if known.get(name) != wanted.get(name):
            raise ValueError(
                f"{folder} was created with {name}={known.get(name)!r}; this call has "
                f"{name}={wanted.get(name)!r}. Use another folder."
            )
