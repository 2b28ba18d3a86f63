"""Many explanations: inputs per second compared with lime, memory, and runs that are killed.

- "fast": rows of a table with 12 columns and logistic regression, N = 1,000, beside lime in a
  joblib loop of two processes; and the processor time per row, both with one thread.
- "kills": 20,000 such rows from a Parquet file, N = 200, two workers. The run is killed twice and
  resumed, and its files are compared with those of a run without kills. `--million` does the same
  with a million rows (an hour or less): rows per second at 10,000, 100,000 and 1,000,000, and the
  memory of each process. 20 of its parts are done again in another folder, and must be the same.
- With `--only`: "slow", the rows with gradient boosting; "photo", photos of 96 x 96 pixels (from
  EBLIME_DATA; else from scikit-image) with a small network in torch, N = 1,000. `--peers` adds
  shapiq with its own `explain_X(n_jobs=2)`, one worker with all threads, and Ray.

Every number is measured in a process of its own. "per second" counts from the first finished part
to the last, without the time to start processes and to train models; "overall" counts everything.
Numbers and ratios are medians of several rounds; a ratio is taken within its round. The processes
of lime and shapiq are started before the clock.

    pip install -e '.[test,studies]' && python -m studies speed-batch
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import eblime
from eblime.batch import Workers
from studies.speed.clock import add_store_option, store
from studies.tables import head, row, table

N, FEW = 1_000, 500  # perturbed rows; of the long runs
BACKGROUND = 10  # rows, each of which is sent for each mask
COLUMNS = 12
SIDE = 96
AGAIN = 20  # parts of a million rows that are done again


def rows(count: int) -> np.ndarray:
    """Rows of a table of correlated numbers; the first are the same for every count."""
    rng = np.random.default_rng(0)
    mix = np.eye(COLUMNS) + 0.3 * rng.normal(size=(COLUMNS, COLUMNS))
    return rng.normal(size=(count, COLUMNS)) @ mix


@lru_cache(maxsize=2)
def train_model(kind: str) -> tuple[Any, Any]:
    """The background and a model that is trained on it."""
    data = rows(2_000)
    chance = 1 / (1 + np.exp(-data @ np.linspace(-1, 1, COLUMNS)))
    target = np.random.default_rng(1).random(len(data)) < chance
    if kind == "fast":
        return data, make_pipeline(StandardScaler(), LogisticRegression()).fit(data, target)
    return data, HistGradientBoostingClassifier(random_state=0).fit(data, target)


def fast(n_masks: int = N) -> eblime.TabularExplainer:
    """An eblime explainer that asks the fast model about as many rows as lime."""
    return _explainer("fast", n_masks)


def slow() -> eblime.TabularExplainer:
    """An eblime explainer of rows, with the slow model."""
    return _explainer("slow", N)


def _explainer(kind: str, n_rows: int) -> eblime.TabularExplainer:
    data, model = train_model(kind)
    return eblime.TabularExplainer(model, data[:BACKGROUND], n_masks=n_rows // BACKGROUND)


def few() -> eblime.TabularExplainer:
    """The fast explainer with fewer masks, for long runs."""
    return fast(FEW)


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


@lru_cache(maxsize=2)
def _lime(kind: str) -> Any:
    """A lime explainer of rows."""
    from lime.lime_tabular import LimeTabularExplainer

    return LimeTabularExplainer(train_model(kind)[0], random_state=0)


def lime_row(kind: str, row: Any, n_masks: int = N) -> None:
    """Explain one row with lime."""
    _lime(kind).explain_instance(row, train_model(kind)[1].predict_proba, num_samples=n_masks)


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
    start = time.perf_counter()
    with _folder() as folder:
        if "ray" in settings:
            settings = {"workers": Workers(settings["ray"], engine="ray")}
        settings = {"targets": "predicted", **settings}
        run = eblime.explain_many(getattr(batch, job), inputs, folder / "run", **settings)
        end = time.perf_counter()
        size = run.settings["part_size"]
        done = sorted(file.stat().st_mtime for file in _parts(folder / "run").values())
    return {"rate": (count - size) / (done[-1] - done[0]), "total": count / (end - start)}


def run_cpu(count: int) -> dict[str, float]:
    """Processor time per row in milliseconds, of lime and of a run, both in this process."""
    for each in rows(2):
        lime_row("fast", each)  # warm up
    found = {}
    start = time.process_time()
    for each in rows(count // 5):
        lime_row("fast", each)
    found["lime"] = 1e3 * (time.process_time() - start) / (count // 5)
    with _folder() as folder:
        eblime.explain_many(fast(), rows(64), folder / "warm", progress=False)
        start = time.process_time()
        eblime.explain_many(fast(), rows(count), folder / "run", progress=False, keep=False)
        found["eblime"] = 1e3 * (time.process_time() - start) / count
    return found


def run_long(inputs: str, out: str, workers: int) -> dict[str, float]:
    """A run of rows from a Parquet file, or what is left of it."""
    from studies.speed import batch

    eblime.explain_many(batch.few, inputs, out, workers=workers)
    return {}


@contextmanager
def _folder() -> Iterator[Path]:
    """A temporary folder."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        yield Path(name)


def _parts(run: Path) -> dict[str, Path]:
    """The finished parts of a run; their names have the digests of their bytes."""
    return {file.name: file for file in sorted(run.glob("part-*.parquet"))}


def _start(what: str, *arguments: Any, threads: int | None = None) -> subprocess.Popen[str]:
    """Start a process that measures one number."""
    here = str(Path(__file__).parents[2])
    path = os.pathsep.join([here, *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = os.environ | {"PYTHONPATH": path, "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
    if threads is not None:
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "EBLIME_THREADS")
        environment |= dict.fromkeys(names, str(threads))
    command = ["-m", "studies", "speed-batch", "--measure", what, json.dumps(arguments)]
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def measure(what: str, *arguments: Any, threads: int | None = None) -> dict[str, float]:
    """Measure one number in a process of its own."""
    process = _start(what, *arguments, threads=threads)
    out, errors = process.communicate()
    if process.returncode:
        raise RuntimeError(errors[-2000:])
    return dict(json.loads(out.splitlines()[-1]))


# Long runs


class Leg(NamedTuple):
    """A run between its start and its end, or a kill."""

    count: int  # rows from the first part that was finished to the last
    seconds: float
    cpu: float  # milliseconds of processor time per row, start included; NaN if killed
    memory: list[dict[int, float]]  # megabytes by process, over time
    driver: int


def _memory(process: int) -> dict[int, float]:
    """Megabytes that a process and its descendants hold, by number."""
    found = {}
    try:
        status = Path(f"/proc/{process}/status").read_text(encoding="ascii", errors="replace")
        children = Path(f"/proc/{process}/task/{process}/children").read_text(encoding="ascii")
    except OSError:  # it has ended
        return {}
    for line in status.splitlines():
        if line.startswith("VmRSS:"):
            found[process] = int(line.split()[1]) / 1024
    for child in children.split():
        found |= _memory(int(child))
    return found


def long_run(inputs: Path, out: Path, *, workers: int = 2, kill: int | None = None) -> Leg:
    """Start or resume a run, and kill it when it has `kill` parts."""
    before, memory, start = {*_parts(out)}, [], _cpu_of_children()
    process = _start("run_long", str(inputs), str(out), workers)
    while process.poll() is None:
        memory.append(_memory(process.pid))
        if kill is not None and len(_parts(out)) >= kill:
            process.send_signal(signal.SIGKILL)
        time.sleep(0.2)
    _, errors = process.communicate()
    if kill is None and process.returncode:
        raise RuntimeError(errors[-2000:])
    time.sleep(1.0)  # its workers end, too
    done = sorted(f.stat().st_mtime for name, f in _parts(out).items() if name not in before)
    size = json.loads((out / "manifest.json").read_text())["settings"]["part_size"]
    if not done:  # it was finished before it could be killed
        return Leg(0, 0.0, math.nan, memory, process.pid)
    cpu = 1e3 * (_cpu_of_children() - start) / (size * len(done))
    count = size * (len(done) - 1)
    return Leg(count, done[-1] - done[0], math.nan if kill else cpu, memory, process.pid)


def _cpu_of_children() -> float:
    """Seconds of processor time of the processes that have ended, with their own processes."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def report(name: str, legs: list[Leg]) -> list[str]:
    """A line about a run: rows per second, and the memory of the driver and of its workers.

    The first number of a process is its peak in the first half of a leg, the second its peak.
    """
    rate = sum(leg.count for leg in legs) / sum(leg.seconds for leg in legs)
    peaks = []
    for own in (True, False):
        halves = [0.0, 0.0]
        for leg in legs:
            for k, seen in enumerate(leg.memory):
                held = [m for pid, m in seen.items() if (pid == leg.driver) == own]
                for half in range(2):
                    if k <= len(leg.memory) / 2 or half:
                        halves[half] = max([halves[half], *held])
        peaks.append(f"{halves[0]:.0f}, {halves[1]:.0f}")
    cpu = legs[-1].cpu if len(legs) == 1 else math.nan
    return [name, f"{rate:.0f}", "" if math.isnan(cpu) else f"{cpu:.2f}", *peaks]


def kills(options: argparse.Namespace) -> None:
    """Runs of several lengths; the longest is killed twice and compared with one that is not."""
    counts = [10_000, 100_000, 1_000_000] if options.million else [options.long // 4, options.long]
    names = ["rows", "rows per second", "CPU per row, ms", "driver, MB", "workers, MB"]
    print(f"\nRows from a Parquet file, {COLUMNS} columns, N = {FEW}, two workers\n")
    print(head(names, right=0), flush=True)
    with _folder() as folder:
        for count in counts:
            inputs, out = folder / f"{count}.parquet", folder / f"{count}"
            columns = [f"c{k}" for k in range(COLUMNS)]
            pd.DataFrame(rows(count), columns=columns).to_parquet(inputs, index=False)
            if count < counts[-1] or not options.million:
                print(row(report(f"{count:,}", [long_run(inputs, out)])), flush=True)
        killed, parts = folder / "killed", -(-count // max(64, math.isqrt(count)))
        legs = [long_run(inputs, killed, kill=kill) for kill in (parts // 3, 2 * parts // 3)]
        legs.append(long_run(inputs, killed))
        print(row(report(f"{count:,}, killed twice", legs)), flush=True)
        if options.million:
            shutil.copytree(killed, out, copy_function=os.link)
            again = np.random.default_rng(0).choice([*_parts(out).values()], AGAIN, replace=False)
            for file in again:
                file.unlink()
            long_run(inputs, out, workers=1)
        same = len({*_parts(out)} & {*_parts(killed)})
        print(
            f"\n{same} of {len(_parts(killed))} parts have the same bytes as without kills", end=""
        )
        print(f"; {AGAIN} of them were done again." if options.million else ".")


# Everything


WAYS: list[tuple[str, dict[str, Any], int | None]] = [
    ("eblime, 1 worker, 1 thread", {}, 1),
    ("eblime, 2 workers", {"workers": 2}, None),
]
PEERS: list[tuple[str, dict[str, Any], int | None]] = [
    ("eblime, separate model calls, 1 worker, 1 thread", {"part_size": 1}, 1),
    ("eblime, 1 worker, all threads", {}, None),
    ("eblime, Ray, 2 actors", {"ray": 2}, None),
]


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the study."""
    parser.add_argument("--rows", type=int, default=3_000)
    parser.add_argument("--photos", type=int, default=200)
    parser.add_argument("--long", type=int, default=20_000, help="rows of the run that is killed")
    parser.add_argument("--million", action="store_true", help="kill a run of a million rows")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="fast,kills")
    parser.add_argument("--peers", action="store_true", help="shapiq, Ray and other settings, too")
    add_store_option(parser)
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)


def run(options: argparse.Namespace) -> None:
    """Measure and print."""
    if options.measure:
        what, arguments = options.measure
        print(json.dumps(globals()[what](*json.loads(arguments))))
        return
    ways, times = WAYS + (PEERS if options.peers else []), {}
    for job, title in (("fast", "logistic regression"), ("slow", "gradient boosting")):
        if job in options.only:
            fewer = max(options.rows // 5, 1)
            lines: list[Line] = [("lime, joblib, 2 processes", ("run_lime", job, fewer), None)]
            if options.peers and find_spec("shapiq"):
                lines.append(("shapiq, 2 processes", ("run_shapiq", job, fewer), None))
            lines += [(name, ("run_ours", job, options.rows, way), n) for name, way, n in ways]
            print(f"\n{options.rows} rows of {COLUMNS} columns, N = {N}, {title}\n", flush=True)
            found = _compare(lines, options.rounds, "rows per second", "relative to lime")
            times[f"one of {options.rows} rows, {N} masks, {title}"] = found
    if "fast" in options.only:
        found = measure("run_cpu", 500, threads=1)
        ours, lime = found["eblime"], found["lime"]
        print(f"\nProcessor time per row, one thread: {ours:.2f} ms, lime {lime:.2f} ms, ", end="")
        print(f"ratio {ours / lime:.2f}", flush=True)
    if "photo" in options.only:
        lines = [(name, ("run_ours", "photo", options.photos, way), n) for name, way, n in ways]
        print(f"\n{options.photos} photos, {N} masks, a small network\n", flush=True)
        found = _compare(lines, options.rounds, "photos per second", "relative to 1 worker")
        times[f"one of {options.photos} photos, {N} masks"] = found
    if options.store:
        store("speed-batch", times)
    if "kills" in options.only:
        kills(options)


Line = tuple[str, tuple[Any, ...], int | None]  # name, what to measure, threads


def _compare(lines: list[Line], rounds: int, unit: str, relative: str) -> dict[str, float]:
    """Print and return medians over rounds, as seconds; every round measures everything once."""
    found: dict[str, list[dict[str, float]]] = {name: [] for name, _, _ in lines}
    for number in range(rounds):
        for name, what, threads in lines:
            found[name].append(measure(*what, threads=threads))
            print(f"round {number + 1}: {name}: {found[name][-1]['rate']:.1f}", flush=True)
    first = np.array([each["rate"] for each in found[lines[0][0]]])
    cells = []
    for name, rows_ in found.items():
        rates = np.array([each["rate"] for each in rows_])
        total = np.median([each["total"] for each in rows_])
        numbers = f"{np.median(rates):.1f}", f"{total:.1f}", f"{np.median(rates / first):.2f}"
        cells.append([name, *numbers])
    print(f"\n{table(['', unit, 'overall', relative], cells)}", flush=True)
    return {
        name: 1 / float(np.median([each["rate"] for each in rows_]))
        for name, rows_ in found.items()
    }
