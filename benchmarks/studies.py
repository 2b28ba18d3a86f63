"""Run every study of the paper and store the result tables in docs/results; resumable.

EBLIME is there three times: as printed, with one ridge parameter for all features and an intercept
(eblime-ridge), and the default, which has a scale for each feature.

Takes about twenty minutes on two cores if the scores of the photos' masks are in the cache folder.
Computing those takes an hour on two cores, or two minutes on a GPU. `make results` writes the
pages from the tables.

    pip install -e '.[test,bench]' && EBLIME_DATA=... python benchmarks/studies.py --jobs 2
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd

from eblime.evaluation.cases import CASES
from eblime.evaluation.coverage import coverage, summary
from eblime.evaluation.faulty_parts import PARTS
from eblime.evaluation.localisation import localisation
from eblime.evaluation.stability import lambda_study, stability

RESULTS = Path(__file__).parents[1] / "docs" / "results"
WORK = Path("eblime-bench")
N = (50, 100, 200, 300, 400, 500)
METHODS = ("bayeslime", "eblime-paper", "eblime-ridge", "eblime")


def timed(name: str, study: Callable[[], pd.DataFrame], runs: dict[str, float]) -> pd.DataFrame:
    """Run a study, and record how long it took; a resumed one is quicker."""
    start = time.perf_counter()
    table = study()
    seconds = round(time.perf_counter() - start, 1)
    runs[name] = seconds
    print(f"{name}: {seconds:.0f} s", flush=True)
    return table


def run_coverage(jobs: int, runs: dict[str, float]) -> None:
    """Coverage of all cases of the paper, and that of the French bulldogs by seed."""
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
            jobs=jobs,
            out=WORK / f"coverage-{name}",
        )
        tables[name] = timed(f"coverage {name}", study, runs)
    pd.concat(map(summary, tables.values())).round(5).to_csv(RESULTS / "coverage.csv", index=False)
    photos = tables["french-bulldog"]
    keys = ["method", "truth", "n", "seed"]
    photos = photos.assign(coverage=photos["coverage"] * photos["features"])
    sums = photos.groupby(keys, sort=False)[["coverage", "features"]].sum().reset_index()
    sums["coverage"] = (sums["coverage"] / sums["features"]).round(5)
    sums.to_csv(RESULTS / "coverage-french-bulldog.csv", index=False)


def run_each(
    study: Callable[..., pd.DataFrame],
    names: Sequence[str],
    runs: dict[str, float],
    **settings: Any,
) -> None:
    """A study of several datasets, all methods and lime, in one table."""
    title = study.__name__
    tables = []
    for name in names:
        out = WORK / f"{title}-{name}"
        one = partial(study, name, methods=("lime", *METHODS), out=out, **settings)
        tables.append(timed(f"{title} {name}", one, runs))
    pd.concat(tables).round(5).to_csv(RESULTS / f"{title}.csv", index=False)


def main() -> None:
    """Run all studies; finished items are not run again."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    jobs = parser.parse_args().jobs
    RESULTS.mkdir(exist_ok=True)
    runs: dict[str, float] = {}
    run_coverage(jobs, runs)
    run_each(localisation, PARTS, runs, jobs=jobs)
    ridge = timed("lambda", partial(lambda_study, "french-bulldog", jobs=jobs), runs)
    ridge.round(5).to_csv(RESULTS / "lambda.csv", index=False)
    run_each(stability, ("french-bulldog", "german", "compas"), runs, items=20, jobs=jobs)
    packages = ("eblime", "numpy", "scipy", "scikit-learn", "scikit-image", "torch")
    about = {
        "python": platform.python_version(),
        "versions": {name: version(name) for name in packages},
        "cores": jobs,
        "seconds": runs,
    }
    (RESULTS / "runs.json").write_text(json.dumps(about, indent=1) + "\n")


if __name__ == "__main__":
    main()
