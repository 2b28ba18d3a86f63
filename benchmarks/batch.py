"""Many explanations: inputs a second beside lime and shapiq, one worker and two, Ray, and memory.

German credit rows (EBLIME_DATA; else breast cancer), 1,000 perturbed rows each, with a fast model
(a logistic regression) and a slow one (a gradient booster); photos of 96 x 96 pixels (EBLIME_DATA;
else of scikit-image) with a small convolutional network in torch, 1,000 masks each. Every figure
comes from a process of its own. "a second" counts from the first part that is done to the last,
so that starting processes and training models is left out; "in all" counts everything. Figures
are medians of three rounds, ratios too, each of them within a round. lime runs
in a joblib loop and shapiq by its own `explain_X(n_jobs=2)`, both over two processes that were
started before the clock.

    pip install -e '.[bench,test]' && python benchmarks/batch.py
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from functools import lru_cache
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tabular import load

import eblime

N = 1_000
SIDE = 96


@lru_cache(maxsize=2)
def trained(kind: str) -> tuple[Any, Any]:
    """The table and a model of it."""
    _, frame, target = load()
    data = frame.to_numpy()
    if kind == "fast":
        return data, make_pipeline(StandardScaler(), LogisticRegression()).fit(data, target)
    return data, HistGradientBoostingClassifier(random_state=0).fit(data, target)


def fast() -> eblime.TabularExplainer:
    """Ours for rows, with the fast model."""
    return _rows_explainer("fast")


def slow() -> eblime.TabularExplainer:
    """Ours for rows, with the slow model."""
    return _rows_explainer("slow")


def _rows_explainer(kind: str) -> eblime.TabularExplainer:
    data, model = trained(kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of columns that never change
        return eblime.TabularExplainer(model, data, n_masks=N)


def photo() -> eblime.ImageExplainer:
    """Ours for photos, with a small network."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    network = nn.Sequential(
        *(nn.Conv2d(3, 16, 3, stride=2, padding=1), nn.ReLU()),
        *(nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU()),
        *(nn.Conv2d(32, 64, 3, stride=2, padding=1), nn.ReLU()),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)),
    )
    return eblime.ImageExplainer(network, n_masks=N)


def photos(count: int) -> np.ndarray:
    """So many pieces of photos."""
    from PIL import Image
    from skimage import data

    folder = Path(os.environ.get("EBLIME_DATA", "nowhere")) / "photos"
    paths = sorted(folder.rglob("*.jpg"))[:140]
    whole = [np.asarray(Image.open(path).convert("RGB")) for path in paths]
    whole = whole or [data.astronaut(), data.coffee(), data.chelsea()]
    rng = np.random.default_rng(0)
    pieces = []
    for k in range(count):
        image = whole[k % len(whole)]
        side = min(image.shape[:2])
        top, left = (rng.integers(0, length - side + 1) for length in image.shape[:2])
        piece = Image.fromarray(image[top : top + side, left : left + side])
        pieces.append(np.asarray(piece.resize((SIDE, SIDE))))
    return np.array(pieces)


def rows(count: int) -> np.ndarray:
    """So many rows of the table, again and again."""
    data, _ = trained("fast")
    return np.tile(data, (-(-count // len(data)), 1))[:count]


@lru_cache(maxsize=2)
def _lime(kind: str) -> Any:
    from lime.lime_tabular import LimeTabularExplainer

    return LimeTabularExplainer(trained(kind)[0], random_state=0)


def lime_row(kind: str, row: Any) -> None:
    """Lime on one row."""
    _lime(kind).explain_instance(row, trained(kind)[1].predict_proba, num_samples=N)


def run_lime(kind: str, count: int) -> dict[str, float]:
    """Rows a second of lime in two processes."""
    import batch  # by its name, so that other processes find it

    pool = joblib.Parallel(n_jobs=2)
    begin = time.perf_counter()
    pool(joblib.delayed(batch.lime_row)(kind, row) for row in rows(8))
    start = time.perf_counter()
    pool(joblib.delayed(batch.lime_row)(kind, row) for row in rows(count))
    end = time.perf_counter()
    return {"rate": count / (end - start), "total": count / (end - begin)}


def run_shapiq(kind: str, count: int) -> dict[str, float]:
    """Rows a second of shapiq in two processes, for Shapley values and as many model inputs."""
    import shapiq

    data, model = trained(kind)
    explainer = shapiq.TabularExplainer(
        model, data, class_index=1, imputer="baseline", index="SV", max_order=1, random_state=0
    )
    begin = time.perf_counter()
    explainer.explain_X(rows(8), n_jobs=2, budget=N)
    start = time.perf_counter()
    explainer.explain_X(rows(count), n_jobs=2, budget=N)
    end = time.perf_counter()
    return {"rate": count / (end - start), "total": count / (end - begin)}


def run_ours(job: str, count: int, settings: dict[str, Any]) -> dict[str, float]:
    """Inputs a second of a run: in all, and once its first part is done."""
    import batch

    inputs = photos(count) if job == "photo" else rows(count)
    folder = Path(tempfile.mkdtemp())
    size = 5 if job == "photo" else 50
    start = time.perf_counter()
    try:
        eblime.explain_many(getattr(batch, job), inputs, folder / "run", part_size=size, **settings)
        end = time.perf_counter()
        parts = (folder / "run").glob("part-*.parquet")
        done = sorted(part.stat().st_mtime for part in parts)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return {"rate": (count - size) / (done[-1] - done[0]), "total": count / (end - start)}


def run_memory(count: int) -> dict[str, float]:
    """Peak memory of the driver, in megabytes, of rows that stream in from a generator."""
    import batch

    data, _ = trained("fast")
    folder = Path(tempfile.mkdtemp())
    given = (data[k % len(data)] for k in range(count))
    eblime.explain_many(batch.few, given, folder / "run", part_size=50, workers=2)
    shutil.rmtree(folder, ignore_errors=True)
    return {"peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def few() -> eblime.TabularExplainer:
    """Ours with few masks, for the memory of very many inputs."""
    data, model = trained("fast")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eblime.TabularExplainer(model, data, n_masks=100)


def measured(what: str, *arguments: Any, threads: int | None = None) -> dict[str, float]:
    """One figure from a process of its own."""
    here = str(Path(__file__).parent)
    environment = os.environ | {"PYTHONPATH": here, "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
    if threads is not None:
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "EBLIME_THREADS")
        environment |= dict.fromkeys(names, str(threads))
    call = [sys.executable, "-W", "ignore", __file__, "--measure", what, json.dumps(arguments)]
    run = subprocess.run(call, capture_output=True, text=True, env=environment, check=False)
    if run.returncode:
        raise RuntimeError(run.stderr[-2000:])
    return dict(json.loads(run.stdout.splitlines()[-1]))


WAYS: list[tuple[str, dict[str, Any], int | None]] = [
    ("eblime, each by itself, 1 worker of 1 thread", {"together": False}, 1),
    ("eblime, 1 worker of 1 thread", {}, 1),
    ("eblime, 1 worker, all threads", {}, None),
    ("eblime, 2 workers", {"workers": 2}, None),
    ("eblime, Ray, 2 actors", {"workers": 2, "engine": "ray"}, None),
]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=2_000)
    parser.add_argument("--photos", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="fast,slow,photo,memory")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    told = parser.parse_args()
    if told.measure:
        what, arguments = told.measure
        print(json.dumps(globals()[what](*json.loads(arguments))))
        return
    for job, title in (("fast", "logistic regression"), ("slow", "gradient booster")):
        if job in told.only:
            few = told.rows // 5
            lines: list[Line] = [
                ("lime, joblib, 2 processes", ("run_lime", job, few), None),
                ("shapiq, 2 processes", ("run_shapiq", job, few), None),
            ]
            lines += [(name, ("run_ours", job, told.rows, way), n) for name, way, n in WAYS]
            print(f"\n{told.rows} rows, N = {N}, {title}\n")
            print("| | rows a second | in all | times lime's |\n|---|---:|---:|---:|")
            _table(lines, told.rounds)
    if "photo" in told.only:
        lines = [(name, ("run_ours", "photo", told.photos, way), n) for name, way, n in WAYS[1:]]
        print(f"\n{told.photos} photos, {N} masks, a small network\n")
        print("| | photos a second | in all | times 1 worker's |\n|---|---:|---:|---:|")
        _table(lines, told.rounds)
    if "memory" in told.only:
        first, last = (measured("run_memory", n)["peak"] for n in (1_000, 10_000))
        print(f"\nDriver's peak memory: {first:.0f} MB for 1,000 inputs, {last:.0f} MB for 10,000.")


Line = tuple[str, tuple[Any, ...], int | None]  # name, what to measure, threads


def _table(lines: list[Line], rounds: int) -> None:
    """Rows of a table: medians of several rounds, in each of which everything is measured once."""
    found: dict[str, list[dict[str, float]]] = {name: [] for name, _, _ in lines}
    for _ in range(rounds):
        for name, what, threads in lines:
            found[name].append(measured(*what, threads=threads))
    first = np.array([each["rate"] for each in found[lines[0][0]]])
    for name, rows_ in found.items():
        rates = np.array([each["rate"] for each in rows_])
        total = np.median([each["total"] for each in rows_])
        print(
            f"| {name} | {np.median(rates):.1f} | {total:.1f} | {np.median(rates / first):.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
