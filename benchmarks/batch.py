"""Many explanations: rows a second beside lime, one worker and two, and Ray.

German credit rows (EBLIME_DATA; else breast cancer) with a gradient booster, 1,000 perturbed rows
each; simulated ultrasonic scans with the small network that ships, 400 masks each. lime runs in a
joblib loop over two processes.

    pip install -e '.[bench,test]' && python benchmarks/batch.py --rows 1000 --scans 200
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
import tracemalloc
import warnings
from functools import lru_cache
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from tabular import load

import eblime
from eblime.datasets.ultrasonic import endless_scans, ultrasonic_network

N, MASKS = 1_000, 400


@lru_cache(maxsize=1)
def trained() -> tuple[Any, Any]:
    """The table and its booster."""
    _, frame, target = load()
    model = HistGradientBoostingClassifier(random_state=0).fit(frame.to_numpy(), target)
    return frame.to_numpy(), model


def rows_explainer() -> eblime.TabularExplainer:
    """Ours for rows."""
    data, model = trained()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eblime.TabularExplainer(model, data, n_masks=N)


def scans_explainer() -> eblime.ImageExplainer:
    """Ours for scans."""
    return eblime.ImageExplainer(
        ultrasonic_network(),
        segmentation=("slic", {"n_segments": 40, "compactness": 1.0}),
        n_masks=MASKS,
        batch_size=50,
    )


def lime_row(k: int) -> None:
    """Lime on one row."""
    data, model = trained()
    _lime().explain_instance(data[k], model.predict_proba, num_features=30, num_samples=N)


@lru_cache(maxsize=1)
def _lime() -> Any:
    from lime.lime_tabular import LimeTabularExplainer

    return LimeTabularExplainer(trained()[0], random_state=0)


def timed(explainer: Any, inputs: Any, **settings: Any) -> float:
    """Inputs a second of a whole run."""
    folder = Path(tempfile.mkdtemp())
    try:
        start = time.perf_counter()
        eblime.explain_many(explainer, inputs, folder / "run", part_size=25, **settings)
        return len(inputs) / (time.perf_counter() - start)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def peak(count: int) -> float:
    """Peak memory of the driver for so many inputs, in megabytes."""
    data, _ = trained()
    rows = np.tile(data, (-(-count // len(data)), 1))[:count]
    folder = Path(tempfile.mkdtemp())
    explainer = eblime.TabularExplainer(lambda table: table[:, 0], data[:100], n_masks=20)
    tracemalloc.start()
    eblime.explain_many(explainer, rows, folder / "run", part_size=100)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    shutil.rmtree(folder, ignore_errors=True)
    return most / 1e6


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000)
    parser.add_argument("--scans", type=int, default=200)
    counts = parser.parse_args()
    data, _ = trained()
    rows = np.tile(data, (-(-counts.rows // len(data)), 1))[: counts.rows]
    few = min(counts.rows, 200)
    os.environ["PYTHONPATH"] = str(Path(__file__).parent)  # where joblib's processes look
    import batch  # by its name, not as __main__, so that other processes find its functions

    start = time.perf_counter()
    joblib.Parallel(n_jobs=2)(joblib.delayed(batch.lime_row)(k) for k in range(few))
    lime = few / (time.perf_counter() - start)
    print(f"rows, N = {N}, {data.shape[1]} columns\n")
    print("| | rows a second | times lime's |\n|---|---:|---:|")
    print(f"| lime, joblib, 2 processes | {lime:.1f} | 1.0 |")
    for name, settings in (
        ("eblime, each by itself", {"together": False}),
        ("eblime, 1 worker", {}),
        ("eblime, 2 workers", {"workers": 2}),
        ("eblime, Ray, 2 actors", {"workers": 2, "engine": "ray"}),
    ):
        speed = timed(batch.rows_explainer, rows, **settings)
        print(f"| {name} | {speed:.1f} | {speed / lime:.1f} |", flush=True)
    made = endless_scans(seed=5)
    scans = np.array([next(made).image for _ in range(counts.scans)])
    print(f"\nscans, {MASKS} masks\n\n| | scans a second |\n|---|---:|")
    for name, settings in (
        ("eblime, 1 worker", {}),
        ("eblime, 2 workers", {"workers": 2}),
        ("eblime, Ray, 2 actors", {"workers": 2, "engine": "ray"}),
    ):
        print(f"| {name} | {timed(batch.scans_explainer, scans, **settings):.1f} |", flush=True)
    first, last = peak(1_000), peak(10_000)
    print(f"\ndriver's peak memory: {first:.1f} MB for 1,000 inputs, {last:.1f} MB for 10,000")


if __name__ == "__main__":
    main()
