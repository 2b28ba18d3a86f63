"""Time the explanation of a row, compared with lime and shap's KernelExplainer in the same run.

The data are German credit if EBLIME_DATA has it (29 columns), else scikit-learn's breast cancer,
with gradient boosting and 5,000 perturbed rows. The time of the model is subtracted; the rest is
the time of the library. lime needs numbers only; eblime is timed on the same array and on a pandas
frame. shap's time depends on the size of its background (50 rows or 1, each combined with every
coalition), so it gets the same number of model inputs.

    pip install -e '.[studies]' && python -m studies speed-tabular
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier

import eblime
from eblime.compat import lime as compat
from studies.speed.clock import Clocked, add_clock_options, chosen, measure, versions
from studies.tables import table

N, ROWS, ROUNDS = 5_000, 10, 5


def load() -> tuple[str, pd.DataFrame, np.ndarray]:
    """Name of the data, numeric columns, classes."""
    path = Path(os.environ.get("EBLIME_DATA", "nowhere")) / "tabular" / "german_processed.csv"
    if path.exists():
        frame = pd.read_csv(path)
        target = (frame.pop("GoodCustomer") == 1).astype(int).to_numpy()
        for name in ("Gender", "PurposeOfLoan"):
            frame[name] = pd.factorize(frame[name])[0]
        return "German credit", frame.astype(float), target
    frame, target = load_breast_cancer(return_X_y=True, as_frame=True)
    return "breast cancer", frame, target.to_numpy()


Jobs = dict[str, Callable[[int], object]]


def array_jobs(data: np.ndarray, model: Clocked) -> Jobs:
    """Each library's explanation of row k of an array."""
    import shap
    from lime.lime_tabular import LimeTabularExplainer

    jobs: Jobs = {}
    lime = LimeTabularExplainer(data, random_state=0)
    jobs["lime"] = lambda k: lime.explain_instance(data[k], model, num_features=30, num_samples=N)
    for method in ("eblime", "lime"):
        jobs[f"eblime.compat.lime, {method}"] = compat_job(data, model, method)
    for perturb in ("bins", "normal", "rows"):
        explainer = eblime.TabularExplainer(model, data, n_masks=N, perturb=perturb)
        jobs[f"eblime, {perturb}"] = partial(explain_row, explainer, data)
    for size in (50, 1):
        kernel = shap.KernelExplainer(model, data[:size], silent=True)
        jobs[f"shap, background {size}"] = lambda k, kernel=kernel, size=size: kernel.shap_values(
            data[k], nsamples=N // size, silent=True
        )
    return jobs


def compat_job(data: np.ndarray, model: Clocked, method: str) -> Callable[[int], object]:
    """Our replacement of lime, with intervals where the method has them."""
    explainer = compat.LimeTabularExplainer(data, random_state=0, method=method)

    def job(k: int) -> object:
        exp = explainer.explain_instance(data[k], model, num_features=30, num_samples=N)
        return exp.as_list(intervals=method == "eblime")

    return job


def explain_row(explainer: eblime.TabularExplainer, rows: Any, k: int) -> object:
    """The intervals of row k of an array or a frame."""
    row = rows.iloc[k] if hasattr(rows, "iloc") else rows[k]
    return explainer.explain(row, 1, rng=k).posterior.interval()


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the benchmark."""
    add_clock_options(parser, rounds=ROUNDS)


def run(options: argparse.Namespace) -> None:
    """Measure and print."""
    name, frame, target = load()
    data = frame.to_numpy()
    network = HistGradientBoostingClassifier(random_state=0).fit(data, target)
    model = Clocked(network.predict_proba, options.now)
    jobs = array_jobs(data, model)
    found = measure(model, chosen(jobs, options.only), ROWS, options.rounds)
    framed = HistGradientBoostingClassifier(random_state=0).fit(frame, target)
    model_of_frames = Clocked(framed.predict_proba, options.now)
    explainer = eblime.TabularExplainer(model_of_frames, frame, n_masks=N)
    jobs = {"eblime, pandas": partial(explain_row, explainer, frame)}
    found |= measure(model_of_frames, chosen(jobs, options.only), ROWS, options.rounds)
    print(f"{name}, {data.shape[1]} columns, {N} perturbed rows")
    print(versions("eblime", "lime", "shap", "scikit-learn"))
    print("Median milliseconds per row; eblime's include the exact posterior and its intervals.\n")
    base = found["lime"][0]
    heads = ["", "own time", "model time", "model inputs", "own time / lime's", "rows per second"]
    rows = [
        [
            job,
            *(f"{1e3 * own:.1f}", f"{1e3 * asked:.1f}", f"{inputs:.0f}"),
            *(f"{own / base:.2f}", f"{1 / (own + asked):.1f}"),
        ]
        for job, (own, asked, inputs) in found.items()
    ]
    print(table(heads, rows))
