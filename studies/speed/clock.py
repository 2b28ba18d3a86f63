"""Times of jobs that take turns, and a model whose time is counted apart."""

from __future__ import annotations

import argparse
import contextlib
import gc
import io
import platform
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from studies.tables import write_csv

__all__ = [
    *("Clocked", "add_clock_options", "add_store_option", "chosen", "measure", "median_seconds"),
    *("store", "versions"),
]

Now = Callable[[], float]
SPEED = Path(__file__).parents[2] / "docs" / "results" / "speed.csv"


def add_clock_options(parser: argparse.ArgumentParser, *, rounds: int) -> None:
    """The options of a benchmark: `rounds`, `only` and the clock `now`."""
    parser.add_argument("--rounds", type=int, default=rounds, help="how often to measure")
    parser.add_argument(
        "--only",
        action="append",
        metavar="NAME",
        help="measure lime and the lines whose names begin with this; may be repeated",
    )
    parser.add_argument(
        "--processor-time",
        dest="now",
        action="store_const",
        const=time.process_time,
        default=time.perf_counter,
        help="of this process instead of elapsed time, for a machine with other work; set "
        "OMP_NUM_THREADS=1, because the times of all threads add up",
    )
    add_store_option(parser)


def add_store_option(parser: argparse.ArgumentParser) -> None:
    """The option `store`."""
    parser.add_argument(
        "--store", action="store_true", help="replace the rows of this study in the page's table"
    )


def store(study: str, times: dict[str, dict[str, Any]]) -> None:
    """Replace the rows of a study in docs/results/speed.csv.

    `times` has, for each task and then for each line, the seconds of one explanation, or a pair:
    the library's own seconds and those of the model.
    """
    rows = []
    for task, lines in times.items():
        for name, seconds in lines.items():
            own, model = seconds if isinstance(seconds, tuple) else (seconds, None)
            row = {"study": study, "task": task, "name": name}
            rows.append({**row, "seconds": float(f"{own:.4g}"), "model_seconds": model})
    found = pd.DataFrame(rows)
    found["model_seconds"] = found["model_seconds"].astype(float).round(5)
    if SPEED.exists():
        others = pd.read_csv(SPEED)
        found = pd.concat([others[others["study"] != study], found])
    write_csv(found, SPEED)


def chosen(jobs: dict[str, Any], only: list[str] | None) -> dict[str, Any]:
    """lime, with which all are compared, and the jobs whose names begin with one of `only`."""
    names = ("lime", *(only or jobs))
    return {name: job for name, job in jobs.items() if name.startswith(names)}


class Clocked:
    """A function whose calls are timed and counted."""

    def __init__(self, function: Callable[[Any], Any], now: Now = time.perf_counter) -> None:
        self._function, self.now = function, now
        self.seconds, self.inputs = 0.0, 0

    def __call__(self, batch: Any) -> Any:
        """Call the model."""
        start = self.now()
        answer = self._function(batch)
        self.seconds += self.now() - start
        self.inputs += len(answer)
        return answer


def versions(*packages: str) -> str:
    """The versions of Python and of some packages."""
    named = [f"{name} {version(name)}" for name in packages]
    return ", ".join([f"Python {platform.python_version()}", *named])


def median_seconds(
    jobs: dict[str, Callable[[], object]],
    rounds: int,
    now: Now = time.perf_counter,
    wait: Callable[[], object] = lambda: None,
) -> dict[str, float]:
    """Median times over rounds; the jobs take turns, so that a busy moment affects all of them.

    The first turn warms up and does not count. `wait` is called around each job, such as for a GPU.
    """
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for turn in range(rounds + 1):
        for name, job in jobs.items():
            gc.collect()
            wait()
            start = now()
            job()
            wait()
            if turn:
                times[name].append(now() - start)
    return {name: float(np.median(values)) for name, values in times.items()}


def quiet(job: Callable[[], object]) -> object:
    """Run without any output or warning."""
    with (
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        return job()


def measure(
    model: Clocked, jobs: dict[str, Callable[[int], object]], inputs: int, rounds: int
) -> dict[str, tuple[float, float, float]]:
    """Medians over rounds of (own seconds, model seconds, model inputs) per explanation.

    The jobs take turns, so that a busy moment of the machine affects all of them. Each round prints
    its own seconds as it ends.
    """
    seen: dict[str, list[tuple[float, float, float]]] = {name: [] for name in jobs}
    for job in jobs.values():  # warm up
        quiet(lambda job=job: job(0))
    for turn in range(rounds):
        for name, job in jobs.items():
            gc.collect()
            model.seconds, model.inputs = 0.0, 0
            start = model.now()
            quiet(lambda job=job: [job(k) for k in range(inputs)])
            whole = model.now() - start
            seen[name].append(
                ((whole - model.seconds) / inputs, model.seconds / inputs, model.inputs / inputs)
            )
        own = ", ".join(f"{name} {1e3 * rows[-1][0]:.0f}" for name, rows in seen.items())
        print(f"round {turn + 1} of {rounds}, own milliseconds: {own}", flush=True)
    return {name: tuple(np.median(rows, axis=0)) for name, rows in seen.items()}
