"""Clocks: one inside a model, to separate its time from that of the explainer, and medians."""

from __future__ import annotations

import contextlib
import gc
import io
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["Clocked", "measure", "median_seconds", "quiet"]


class Clocked:
    """A function whose calls are timed and counted."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function
        self.seconds, self.inputs = 0.0, 0

    def __call__(self, batch: Any) -> Any:
        """Call the model."""
        start = time.perf_counter()
        answer = self._function(batch)
        self.seconds += time.perf_counter() - start
        self.inputs += len(answer)
        return answer


def quiet(job: Callable[[], object]) -> object:
    """Run without any output or warning."""
    with (
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        return job()


def median_seconds(
    runs: dict[str, Callable[[], object]],
    repeats: int,
    *,
    warm_up: int = 1,
    wait: Callable[[], object] = lambda: None,
) -> dict[str, float]:
    """Median times; the runs take turns, so that a busy moment affects all of them.

    The first `warm_up` turns do not count. `wait` is called before and after each run, such as
    `torch.cuda.synchronize`.
    """
    times: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(warm_up + repeats):
        for name, run in runs.items():
            gc.collect()
            wait()
            start = time.perf_counter()
            run()
            wait()
            if turn >= warm_up:
                times[name].append(time.perf_counter() - start)
    return {name: float(np.median(values)) for name, values in times.items()}


def measure(
    model: Clocked, jobs: dict[str, Callable[[int], object]], inputs: int, rounds: int
) -> dict[str, tuple[float, float, float]]:
    """Medians over rounds of (own seconds, model seconds, model inputs) per explanation.

    The jobs take turns, so that a busy moment of the machine affects all of them.
    """
    seen: dict[str, list[tuple[float, float, float]]] = {name: [] for name in jobs}
    for job in jobs.values():  # warm up
        quiet(lambda job=job: job(0))
    for _ in range(rounds):
        for name, job in jobs.items():
            gc.collect()
            model.seconds, model.inputs = 0.0, 0
            start = time.perf_counter()
            quiet(lambda job=job: [job(k) for k in range(inputs)])
            whole = time.perf_counter() - start
            seen[name].append(
                ((whole - model.seconds) / inputs, model.seconds / inputs, model.inputs / inputs)
            )
    return {name: tuple(np.median(rows, axis=0)) for name, rows in seen.items()}
