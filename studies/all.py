"""Run every study of the documentation and store the tables in docs/results; resumable.

EBLIME is there three times: as printed, with one ridge parameter for all features and an intercept
(eblime-ridge), and the default, which has a scale for each feature.

Takes about half an hour on two cores, and the training of the networks for tiles and drilled holes,
if the scores of the photos' masks are in the cache folder. Computing those scores takes an hour on
two cores, or two minutes on a GPU. `python -m studies pages` writes the pages from the tables.

    pip install -e '.[test,studies]' && EBLIME_DATA=... python -m studies all --jobs 2
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd

from studies.cases import CASES
from studies.coverage import coverage, summary
from studies.data.faulty_parts import PARTS
from studies.faithfulness import HIGHER_IS_BETTER, faithfulness
from studies.localisation import localisation
from studies.pages import LEAGUE, REPEATS, RESULTS
from studies.ridge import ridge_parameters
from studies.runner import positive
from studies.stability import stability
from studies.tables import write_csv

N = (50, 100, 200, 300, 400, 500)
METHODS = ("bayeslime", "eblime-paper", "eblime-ridge", "eblime")
MASKED = ("lime", "bayeslime", "eblime", "eblime+paired", "quadrature+paired")


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of all studies."""
    parser.add_argument("--jobs", type=positive, default=2, help="processes (default: 2)")
    parser.add_argument("--out", type=Path, default=Path("eblime-studies"), help="of the rows")


def run(options: argparse.Namespace) -> None:
    """Run what is not finished, and store the tables, versions and times."""
    seconds: dict[str, float] = {}

    def table_of(study: Callable[..., pd.DataFrame], name: str, **settings: Any) -> pd.DataFrame:
        """The rows of a study; a resumed one takes less time."""
        start = time.perf_counter()
        print(f"{study.__name__} {name}", flush=True)
        rows = study(name, jobs=options.jobs, out=options.out, progress=True, **settings)
        seconds[f"{study.__name__} {name}"] = round(time.perf_counter() - start, 1)
        return rows

    covered = {
        name: table_of(
            coverage,
            name,
            n=N,
            items=20 if name.startswith("digit") else 40,
            methods=METHODS,
            truths=("exact", "lime", "paper"),
        )
        for name in CASES
        if not name.startswith("stored")  # not in the paper
    }
    store(pd.concat(map(summary, covered.values())), "coverage.csv")
    store(coverage_by_seed(covered["french-bulldog"]), "coverage-french-bulldog.csv")
    both = ("lime", *METHODS)
    store(pd.concat(table_of(localisation, p, methods=both) for p in PARTS), "localisation.csv")
    store(table_of(ridge_parameters, "french-bulldog"), "lambda.csv")
    three = ("french-bulldog", "german", "compas")
    again = [table_of(stability, name, items=20, methods=both) for name in three]
    store(pd.concat(again), "stability.csv")
    packages = ("eblime", "numpy", "scipy", "scikit-learn", "scikit-image", "torch")
    about = {"python": platform.python_version(), "versions": versions(packages)}
    about |= {"cores": options.jobs, "seconds": seconds.copy()}
    (RESULTS / "runs.json").write_text(json.dumps(about, indent=1) + "\n")

    league = pd.concat(table_of(faithfulness, name, **how) for name, how in LEAGUE.items())
    for name in HIGHER_IS_BETTER:
        league[name] = league[name].map(lambda value: float(f"{value:.4g}"))
    write_csv(league, RESULTS / "faithfulness.csv")
    repeats = []
    for name, how in REPEATS.items():
        more = ("quadrature+adaptive",) if name.startswith("stored") else ()
        repeats.append(table_of(stability, name, methods=(*MASKED, *more), **how))
    store(pd.concat(repeats), "agreement.csv")
    packages = ("eblime", "lime", "shap", "captum", "numpy", "scikit-learn", "torch")
    about = {"python": platform.python_version(), **versions(packages)}
    (RESULTS / "faithfulness.json").write_text(json.dumps(about, indent=1) + "\n")


def store(rows: pd.DataFrame, name: str) -> None:
    """Write a table to docs/results."""
    write_csv(rows, RESULTS / name, digits=5)


def coverage_by_seed(rows: pd.DataFrame) -> pd.DataFrame:
    """Coverage of all features for each method, truth, number of masks and seed."""
    rows = rows.assign(coverage=rows["coverage"] * rows["features"])
    keys = ["method", "truth", "n", "seed"]
    sums = rows.groupby(keys, sort=False)[["coverage", "features"]].sum().reset_index()
    return sums.assign(coverage=sums["coverage"] / sums["features"])


def versions(packages: Sequence[str]) -> dict[str, str]:
    """The versions of packages."""
    return {name: version(name) for name in packages}
