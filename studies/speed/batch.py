"""Many explanations: inputs per second compared with lime and shapiq, workers, Ray, and memory.

- Rows of German credit (from EBLIME_DATA; else breast cancer), 1,000 perturbed rows each, with a
  fast model (logistic regression) and a slow one (gradient boosting).
- Photos of 96 x 96 pixels (from EBLIME_DATA; else from scikit-image), 1,000 masks each, with a
  small convolutional network in torch.

Every number is measured in a process of its own. "per second" counts from the first finished part
to the last, without the time to start processes and to train models; "overall" counts everything.
Numbers and ratios are medians of several rounds; a ratio is taken within its round. lime runs in a
joblib loop, and shapiq with its own `explain_X(n_jobs=2)`, both with two processes that are started
before the clock.

    pip install -e '.[test,studies]' && python -m studies speed-batch
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
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import eblime
from eblime.batch import Workers
from studies.speed.tabular import load
from studies.tables import head, row

N = 1_000
SIDE = 96


@lru_cache(maxsize=2)
def train_model(kind: str) -> tuple[Any, Any]:
    """The table and a model that is trained on it."""
    _, frame, target = load()
    data = frame.to_numpy()
    if kind == "fast":
        return data, make_pipeline(StandardScaler(), LogisticRegression()).fit(data, target)
    return data, HistGradientBoostingClassifier(random_state=0).fit(data, target)


def fast() -> eblime.TabularExplainer:
    """An eblime explainer of rows, with the fast model."""
    return _rows_explainer("fast")


def slow() -> eblime.TabularExplainer:
    """An eblime explainer of rows, with the slow model."""
    return _rows_explainer("slow")


def few() -> eblime.TabularExplainer:
    """An eblime explainer with few masks, to measure the memory for very many inputs."""
    return _rows_explainer("fast", n_masks=100)


def _rows_explainer(kind: str, n_masks: int = N) -> eblime.TabularExplainer:
    """An eblime explainer of rows."""
    data, model = train_model(kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about columns that never change
        return eblime.TabularExplainer(model, data, n_masks=n_masks)


def photo() -> eblime.ImageExplainer:
    """An eblime explainer of photos, with a small network."""
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
    """Square crops of photos."""
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
    """Rows of the table, repeated if there are too few."""
    data, _ = train_model("fast")
    return np.tile(data, (-(-count // len(data)), 1))[:count]


@lru_cache(maxsize=2)
def _lime(kind: str) -> Any:
    """A lime explainer of rows."""
    from lime.lime_tabular import LimeTabularExplainer

    return LimeTabularExplainer(train_model(kind)[0], random_state=0)


def lime_row(kind: str, row: Any) -> None:
    """Explain one row with lime."""
    _lime(kind).explain_instance(row, train_model(kind)[1].predict_proba, num_samples=N)


def run_lime(kind: str, count: int) -> dict[str, float]:
    """Rows per second of lime in two processes."""
    from studies.speed import batch  # by name, so that other processes can import it

    pool = joblib.Parallel(n_jobs=2)
    begin = time.perf_counter()
    pool(joblib.delayed(batch.lime_row)(kind, row) for row in rows(8))
    start = time.perf_counter()
    pool(joblib.delayed(batch.lime_row)(kind, row) for row in rows(count))
    end = time.perf_counter()
    return {"rate": count / (end - start), "total": count / (end - begin)}


def run_shapiq(kind: str, count: int) -> dict[str, float]:
    """Rows per second of shapiq in two processes: Shapley values, as many model inputs as ours."""
    import shapiq

    data, model = train_model(kind)
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
    """Inputs per second of a run: overall, and from its first finished part to the last."""
    from studies.speed import batch

    inputs = photos(count) if job == "photo" else rows(count)
    folder = Path(tempfile.mkdtemp())
    size = 5 if job == "photo" else 50
    start = time.perf_counter()
    try:
        if "ray" in settings:
            settings = {"workers": Workers(settings["ray"], engine="ray")}
        settings = {"part_size": size, **settings}
        eblime.explain_many(getattr(batch, job), inputs, folder / "run", **settings)
        end = time.perf_counter()
        parts = (folder / "run").glob("part-*.parquet")
        done = sorted(part.stat().st_mtime for part in parts)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return {"rate": (count - size) / (done[-1] - done[0]), "total": count / (end - start)}


def run_memory(count: int) -> dict[str, float]:
    """Peak memory of the driver in megabytes, for rows that come from a generator."""
    from studies.speed import batch

    data, _ = train_model("fast")
    folder = Path(tempfile.mkdtemp())
    inputs = (data[k % len(data)] for k in range(count))
    eblime.explain_many(batch.few, inputs, folder / "run", part_size=50, workers=2)
    shutil.rmtree(folder, ignore_errors=True)
    return {"peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def measure(what: str, *arguments: Any, threads: int | None = None) -> dict[str, float]:
    """Measure one number in a process of its own."""
    here = str(Path(__file__).parents[2])
    path = os.pathsep.join([here, *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = os.environ | {"PYTHONPATH": path, "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
    if threads is not None:
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "EBLIME_THREADS")
        environment |= dict.fromkeys(names, str(threads))
    command = ["-m", "studies", "speed-batch", "--measure", what, json.dumps(arguments)]
    call = [sys.executable, "-W", "ignore", *command]
    run = subprocess.run(call, capture_output=True, text=True, env=environment, check=False)
    if run.returncode:
        raise RuntimeError(run.stderr[-2000:])
    return dict(json.loads(run.stdout.splitlines()[-1]))


WAYS: list[tuple[str, dict[str, Any], int | None]] = [
    ("eblime, separate model calls, 1 worker, 1 thread", {"part_size": 1}, 1),
    ("eblime, 1 worker, 1 thread", {}, 1),
    ("eblime, 1 worker, all threads", {}, None),
    ("eblime, 2 workers", {"workers": 2}, None),
    ("eblime, Ray, 2 actors", {"ray": 2}, None),
]


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the study."""
    parser.add_argument("--rows", type=int, default=2_000)
    parser.add_argument("--photos", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="fast,slow,photo,memory")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)


def run(options: argparse.Namespace) -> None:
    """Measure and print."""
    if options.measure:
        what, arguments = options.measure
        print(json.dumps(globals()[what](*json.loads(arguments))))
        return
    for job, title in (("fast", "logistic regression"), ("slow", "gradient booster")):
        if job in options.only:
            fewer = max(options.rows // 5, 1)
            lines: list[Line] = [("lime, joblib, 2 processes", ("run_lime", job, fewer), None)]
            if find_spec("shapiq"):
                lines.append(("shapiq, 2 processes", ("run_shapiq", job, fewer), None))
            lines += [(name, ("run_ours", job, options.rows, way), n) for name, way, n in WAYS]
            print(f"\n{options.rows} rows, N = {N}, {title}\n")
            print(head(["", "rows per second", "overall", "relative to lime"], right=1))
            _table(lines, options.rounds)
    if "photo" in options.only:
        lines = [(name, ("run_ours", "photo", options.photos, way), n) for name, way, n in WAYS[1:]]
        print(f"\n{options.photos} photos, {N} masks, a small network\n")
        print(head(["", "photos per second", "overall", "relative to 1 worker"], right=1))
        _table(lines, options.rounds)
    if "memory" in options.only:
        first, last = (measure("run_memory", n)["peak"] for n in (1_000, 10_000))
        print(f"\nPeak memory of the driver: {first:.0f} MB for 1,000 inputs, ", end="")
        print(f"{last:.0f} MB for 10,000.")


Line = tuple[str, tuple[Any, ...], int | None]  # name, what to measure, threads


def _table(lines: list[Line], rounds: int) -> None:
    """Print the rows of a table: medians over rounds; every round measures everything once."""
    found: dict[str, list[dict[str, float]]] = {name: [] for name, _, _ in lines}
    for _ in range(rounds):
        for name, what, threads in lines:
            found[name].append(measure(*what, threads=threads))
    first = np.array([each["rate"] for each in found[lines[0][0]]])
    for name, rows_ in found.items():
        rates = np.array([each["rate"] for each in rows_])
        total = np.median([each["total"] for each in rows_])
        numbers = f"{np.median(rates):.1f}", f"{total:.1f}", f"{np.median(rates / first):.2f}"
        print(row([name, *numbers]), flush=True)
