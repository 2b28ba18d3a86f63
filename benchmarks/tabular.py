"""Time the explanation of a row, compared with lime and shap's KernelExplainer in the same run.

The data are German credit if EBLIME_DATA has it (29 columns), else scikit-learn's breast cancer,
with gradient boosting and 5,000 perturbed rows. The time of the model is subtracted; the rest is
the time of the library. lime needs numbers only; eblime is timed on the same array and on a pandas
frame. shap's time depends on the size of its background (50 rows or 1, each combined with every
coalition), so it gets the same number of model inputs.

    pip install -e '.[bench]' && python benchmarks/tabular.py
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
import shap
from clock import Clocked, measure
from lime.lime_tabular import LimeTabularExplainer
from md_table import table
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier

import eblime
from eblime.compat import lime as compat

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


Job = Callable[[int], object]  # explains row k


def our_jobs(model: Clocked, data: np.ndarray) -> dict[str, Job]:
    """Explanations with their intervals, for every way to perturb."""
    ours = {
        perturb: eblime.TabularExplainer(model, data, n_masks=N, perturb=perturb)
        for perturb in ("bins", "normal", "rows")
    }
    return {
        f"eblime, {perturb}": lambda k, e=e: e.explain(data[k], 1, rng=k).posterior.interval()
        for perturb, e in ours.items()
    }


def lime_jobs(model: Clocked, data: np.ndarray) -> dict[str, Job]:
    """Lime, and its replacement with lime's own method and with ours, which has intervals."""
    lime = LimeTabularExplainer(data, random_state=0)
    replacements = {
        method: compat.LimeTabularExplainer(data, random_state=0, method=method)
        for method in ("eblime", "lime")
    }

    def listed(k: int, method: str) -> object:
        exp = replacements[method].explain_instance(data[k], model, num_features=30, num_samples=N)
        return exp.as_list(intervals=method == "eblime")

    return {
        "lime": lambda k: lime.explain_instance(data[k], model, num_features=30, num_samples=N),
        **{
            f"eblime.compat.lime, {method}": lambda k, method=method: listed(k, method)
            for method in replacements
        },
    }


def shap_jobs(model: Clocked, data: np.ndarray) -> dict[str, Job]:
    """KernelExplainer with backgrounds of two sizes and the same number of model inputs."""
    shaps = {size: shap.KernelExplainer(model, data[:size], silent=True) for size in (50, 1)}
    return {
        f"shap, background {size}": lambda k, e=e, size=size: e.shap_values(
            data[k], nsamples=N // size, silent=True
        )
        for size, e in shaps.items()
    }


def frame_job(model: Clocked, frame: pd.DataFrame) -> dict[str, Job]:
    """Explanations of rows of a pandas frame."""
    explainer = eblime.TabularExplainer(model, frame, n_masks=N)
    return {
        "eblime, pandas": lambda k: explainer.explain(frame.iloc[k], 1, rng=k).posterior.interval()
    }


def main() -> None:
    """Measure and print."""
    name, frame, target = load()
    data = frame.to_numpy()
    boosted = HistGradientBoostingClassifier(random_state=0)
    of_arrays = Clocked(clone(boosted).fit(data, target).predict_proba)
    of_frames = Clocked(clone(boosted).fit(frame, target).predict_proba)
    jobs = lime_jobs(of_arrays, data) | our_jobs(of_arrays, data) | shap_jobs(of_arrays, data)
    found = measure(of_arrays, jobs, ROWS, ROUNDS)
    found |= measure(of_frames, frame_job(of_frames, frame), ROWS, ROUNDS)
    packages = ", ".join(f"{p} {version(p)}" for p in ("eblime", "lime", "shap", "scikit-learn"))
    print(f"{name}, {data.shape[1]} columns, {N} perturbed rows")
    print(f"Python {platform.python_version()}, {packages}")
    print("Median milliseconds per row; eblime's include the exact posterior and its intervals.\n")
    base = found["lime"][0]
    heads = ["own time", "model time", "model inputs", "own time / lime's", "rows per second"]
    rows = []
    for job, (own, asked, inputs) in found.items():
        times = f"{1e3 * own:.1f}", f"{1e3 * asked:.1f}", f"{inputs:.0f}"
        rows.append([job, *times, f"{own / base:.2f}", f"{1 / (own + asked):.1f}"])
    print(table(["", *heads], rows))


if __name__ == "__main__":
    main()
