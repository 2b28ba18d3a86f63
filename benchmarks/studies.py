"""Run every study of the paper and store the result tables in docs/results; resumable.

EBLIME has one ridge parameter for all features here, as in the paper; coverage_by_rank.py compares
it with the default, which has a scale for each feature.

Takes about fifteen minutes on two cores if the scores of the photos' masks are in the cache folder.
Computing those takes an hour on two cores, or two minutes on a GPU. `make results` writes the
pages from the tables.

    pip install -e '.[test,bench]' && EBLIME_DATA=... python benchmarks/studies.py
"""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable, Iterable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd

from eblime.evaluation.cases import CASES
from eblime.evaluation.coverage import coverage, summary
from eblime.evaluation.localisation import PARTS, localisation
from eblime.evaluation.stability import lambda_study, stability

RESULTS = Path(__file__).parents[1] / "docs" / "results"
WORK = Path("eblime-bench")
N = (50, 100, 200, 300, 400, 500)
METHODS = ("bayeslime", "eblime-paper", "eblime-ridge")


def timed(name: str, study: Callable[[], Any], runs: dict[str, float]) -> Any:
    """Run a study, and record how long its first run took."""
    start = time.perf_counter()
    table = study()
    seconds = round(time.perf_counter() - start, 1)
    runs.setdefault(name, seconds)  # a resumed study keeps the time of its first run
    print(f"{name}: {seconds:.0f} s", flush=True)
    return table


def run_coverage(runs: dict[str, float]) -> None:
    """Coverage of every case of the paper."""
    tables = {}
    for name in (name for name in CASES if not name.startswith("stored")):  # not in the paper
        study = partial(
            coverage,
            name,
            n=N,
            seeds=5,
            items=20 if name.startswith("digit") else 40,
            methods=METHODS,
            truths=("exact", "lime", "paper"),
            jobs=2,
            out=WORK / f"coverage-{name}",
        )
        tables[name] = timed(f"coverage {name}", study, runs)
    write("coverage", map(summary, tables.values()))
    photos = tables["french-bulldog"]
    photos = photos.assign(coverage=photos["coverage"] * photos["features"])
    keys = ["method", "truth", "n", "seed"]
    sums = photos.groupby(keys, sort=False)[["coverage", "features"]].sum().reset_index()
    sums["coverage"] = sums["coverage"] / sums["features"]
    write("coverage-french-bulldog", [sums])


def run_localisation(runs: dict[str, float]) -> None:
    """Localisation of defects in every kind of part."""
    found = []
    for name in PARTS:
        out = WORK / f"localisation-{name}"
        study = partial(localisation, name, methods=("lime", *METHODS), jobs=2, out=out)
        found.append(timed(f"localisation {name}", study, runs))
    write("localisation", found)


def run_posteriors(runs: dict[str, float]) -> None:
    """The ridge parameter, and the agreement of repeated runs."""
    write("lambda", [timed("lambda", partial(lambda_study, "french-bulldog", jobs=2), runs)])
    found = []
    for name in ("french-bulldog", "german", "compas"):
        out = WORK / f"stability-{name}"
        study = partial(stability, name, items=20, methods=("lime", *METHODS), jobs=2, out=out)
        found.append(timed(f"stability {name}", study, runs))
    write("stability", found)


def write(name: str, tables: Iterable[pd.DataFrame]) -> None:
    """Write tables as one file of results, rounded to five decimals."""
    pd.concat(list(tables)).round(5).to_csv(RESULTS / f"{name}.csv", index=False)


def main() -> None:
    """Run all studies; finished items are not run again."""
    RESULTS.mkdir(exist_ok=True)
    record = RESULTS / "runs.json"
    runs: dict[str, float] = json.loads(record.read_text())["seconds"] if record.exists() else {}
    run_coverage(runs)
    run_localisation(runs)
    run_posteriors(runs)
    packages = ("eblime", "numpy", "scipy", "scikit-learn", "scikit-image", "torch")
    about = {
        "python": platform.python_version(),
        "versions": {name: version(name) for name in packages},
        "seconds": runs,
    }
    record.write_text(json.dumps(about, indent=1) + "\n")


if __name__ == "__main__":
    main()
