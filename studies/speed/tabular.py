"""Time the explanation of rows, compared with lime and shap's KernelExplainer in the same run.

One row: scikit-learn's breast cancer (30 columns), gradient boosting and 5,000 perturbed rows. The
time of the model is subtracted; the rest is the time of the library. lime needs numbers only;
eblime is timed on the same array and on a pandas frame. shap, where it is installed, gets the same
number of model inputs: its time depends on the size of its background (50 rows or 1, each combined
with every coalition).

Many rows: 12 columns, logistic regression, 1,000 perturbed rows, in a run of one process. The time
of the model, which is small, is included, and that of writing the results.

    pip install -e '.[studies]' && python -m studies speed-tabular
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits

import eblime
from eblime.compat import lime as compat
from studies.speed import batch
from studies.speed.clock import Clocked, add_clock_options, chosen, measure, store, versions
from studies.tables import head, row

N, ROWS, ROUNDS = 5_000, 8, 3
MANY = 200  # rows
BACKGROUND = 50  # rows, so that a mask takes 50 model calls

Job = Callable[[int], object]


def jobs_of_arrays(data: np.ndarray, model: Clocked) -> dict[str, Job]:
    """Each library's explanation of row k of an array."""
    from lime.lime_tabular import LimeTabularExplainer

    lime = LimeTabularExplainer(data, random_state=0)
    jobs: dict[str, Job] = {
        "lime": lambda k: lime.explain_instance(data[k], model, num_features=30, num_samples=N)
    }
    explainer = eblime.TabularExplainer(model, data[:BACKGROUND], n_masks=N // BACKGROUND)
    jobs[f"eblime, background {BACKGROUND}"] = partial(explain_row, explainer, data)
    for method in ("eblime", "lime"):
        jobs[f"eblime.compat.lime, {method}"] = compat_job(data, model, method)
    for size in (BACKGROUND, 1) if find_spec("shap") else ():
        jobs[f"shap, background {size}"] = shap_job(data, model, size)
    return jobs


def compat_job(data: np.ndarray, model: Clocked, method: str) -> Job:
    """Our replacement of lime, with intervals where the method has them."""
    explainer = compat.LimeTabularExplainer(data, random_state=0, method=method)

    def job(k: int) -> object:
        exp = explainer.explain_instance(data[k], model, num_features=30, num_samples=N)
        return exp.as_list(intervals=method == "eblime")

    return job


def shap_job(data: np.ndarray, model: Clocked, size: int) -> Job:
    """The KernelExplainer of shap, with a background of some rows."""
    import shap

    kernel = shap.KernelExplainer(model, data[:size], silent=True)
    return lambda k: kernel.shap_values(data[k], nsamples=N // size, silent=True)


def explain_row(explainer: eblime.TabularExplainer, rows: Any, k: int) -> object:
    """The intervals of row k of an array or a frame."""
    row = rows.iloc[k] if hasattr(rows, "iloc") else rows[k]
    return explainer.explain(row, 1, rng=k).posterior.interval()


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the benchmark."""
    add_clock_options(parser, rounds=ROUNDS)


def run(options: argparse.Namespace) -> None:
    """Measure and print, one line after the other."""
    frame, target = load_breast_cancer(return_X_y=True, as_frame=True)
    of_arrays, of_frames = (
        HistGradientBoostingClassifier(random_state=0).fit(rows, target).predict_proba
        for rows in (frame.to_numpy(), frame)
    )
    model = Clocked(
        lambda rows: of_frames(rows) if hasattr(rows, "iloc") else of_arrays(rows), options.now
    )
    jobs = jobs_of_arrays(frame.to_numpy(), model)
    explainer = eblime.TabularExplainer(model, frame[:BACKGROUND], n_masks=N // BACKGROUND)
    jobs["eblime, pandas"] = partial(explain_row, explainer, frame)
    jobs = chosen(jobs, options.only)
    lime = jobs.pop("lime")
    print(f"One row of breast cancer, {frame.shape[1]} columns, {N} perturbed rows")
    print(versions("eblime", "lime", "scikit-learn"))
    print("Median milliseconds per row; eblime's include the exact posterior and its intervals.")
    print("lime takes turns with each, so that its time may differ from line to line.\n")
    print(head(["", "own time", "lime's", "model time", "model inputs", "own time / lime's"]))
    measured: dict[str, Any] = {}
    for name, job in jobs.items():
        found = measure(model, {"lime": lime, name: job}, ROWS, options.rounds)
        (own, asked, inputs), base = found[name], found["lime"][0]
        measured |= {name: line[:2] for name, line in found.items()}
        times = [f"{1e3 * seconds:.1f}" for seconds in (own, base, asked)]
        print(row([name, *times, f"{inputs:.0f}", f"{own / base:.2f}"]), flush=True)
    many = {} if options.only else run_many()
    if options.store:
        task = f"row of {frame.shape[1]} columns, {N} perturbed rows"
        store("speed-tabular", {task: measured, **many})


def run_many() -> dict[str, dict[str, float]]:
    """Processor time per row of a run, in this process, beside lime's."""
    print(f"\n{MANY} rows, {batch.COLUMNS} columns, logistic regression, one thread")
    print("Milliseconds of processor time per row; eblime's include the files of its run.\n")
    print(head(["perturbed rows", "eblime", "lime", "eblime / lime"]))
    times = {}
    for n_masks in (batch.N, batch.FEW):
        with threadpool_limits(1), tempfile.TemporaryDirectory() as folder:
            lime = partial(batch.lime_row, "fast", n_masks=n_masks)
            explain = partial(eblime.explain_many, batch.fast(n_masks), progress=False, keep=False)
            lime(batch.rows(1)[0])
            explain(batch.rows(16), Path(folder, "warm"))
            start = time.process_time()
            for one in batch.rows(MANY // 5):
                lime(one)
            between = time.process_time()
            explain(batch.rows(MANY), Path(folder, "run"))
            end = time.process_time()
        ours, theirs = 1e3 * (end - between) / MANY, 1e3 * (between - start) / (MANY // 5)
        print(row([n_masks, f"{ours:.2f}", f"{theirs:.2f}", f"{ours / theirs:.2f}"]), flush=True)
        task = f"one of {MANY} rows, {n_masks} perturbed rows, with the model"
        times[task] = {"eblime": ours / 1e3, "lime": theirs / 1e3}
    return times
