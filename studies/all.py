"""Run every study of the documentation and store the tables in docs/results; resumable.

EBLIME is there three times: as printed, with one ridge parameter for all features and an intercept
(eblime-ridge), and the default, which has a scale for each feature.

Each part takes minutes on 16 cores, if the scores of the photos' masks are in the cache folder.
Computing those scores takes an hour on two cores, or two minutes on a GPU. `python -m studies
pages` writes the pages from the tables.

    pip install -e '.[test,studies]' && EBLIME_DATA=... python -m studies all --jobs 16
    EBLIME_DATA=... python -m studies all --only localisation
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pandas as pd

import eblime
from studies.cases import CASES
from studies.charts.comparisons import LEAGUE, REPEATS
from studies.charts.style import RESULTS
from studies.coverage import coverage, summary
from studies.coverage_by_rank import coverage_by_rank
from studies.coverage_texts import coverage_texts
from studies.data.faulty_parts import PARTS
from studies.faithfulness import HIGHER_IS_BETTER, faithfulness
from studies.figures import CUTS, figure_numbers, superpixels
from studies.localisation import localisation
from studies.quadrature import quadrature
from studies.runner import positive
from studies.stability import stability
from studies.tables import write_csv

N = (50, 100, 200, 300, 400, 500)
METHODS = ("bayeslime", "eblime-paper", "eblime-ridge", "eblime")
MASKED = ("lime", "bayeslime", "eblime", "eblime+paired", "quadrature+paired")

Rows = Callable[..., pd.DataFrame]  # of a study, its data set and its settings
Tables = Iterator[tuple[str, pd.DataFrame]]  # names of files and their content


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of all studies."""
    parser.add_argument("--only", nargs="+", default=list(STUDIES), choices=STUDIES)
    parser.add_argument("--items", type=positive, help="inputs of a data set, at most, for a trial")
    parser.add_argument("--jobs", type=positive, default=2, help="processes (default: 2)")
    parser.add_argument("--out", type=Path, default=Path("eblime-studies"), help="of the rows")
    parser.add_argument("--results", type=Path, default=RESULTS, help="of the tables")


def run(options: argparse.Namespace) -> None:
    """Run what is not finished, and store the tables, versions and times."""
    options.results.mkdir(parents=True, exist_ok=True)

    def rows_of(study: Rows, name: str = "", **settings: Any) -> pd.DataFrame:
        """The rows of a study; a resumed one takes less time."""
        print(study.__name__, name, flush=True)
        if options.items:
            settings["items"] = min(options.items, settings.get("items", options.items))
        how = {"jobs": options.jobs, "out": options.out, "progress": True, **settings}
        return study(name, **how) if name else study(**how)

    for part in options.only:
        start = time.perf_counter()
        for file, table in STUDIES[part](rows_of):
            digits = None if part == "faithfulness" else 5  # it has four significant digits
            write_csv(table, options.results / file, digits=digits)
        note(part, time.perf_counter() - start, options)


def note(part: str, seconds: float, options: argparse.Namespace) -> None:
    """Store the time of a part, and the versions that it was run with."""
    path = options.results / "runs.json"
    stored = json.loads(path.read_text()) if path.exists() else {}
    stored[part] = {"seconds": round(seconds, 1), "cores": options.jobs, "versions": versions()}
    path.write_text(json.dumps(stored, indent=1) + "\n")


def coverage_tables(rows_of: Rows) -> Tables:
    """Table 2 and figure 3."""
    settings: dict[str, Any] = {"n": N, "methods": METHODS, "truths": ("exact", "lime", "paper")}
    covered = {
        name: rows_of(coverage, name, items=20 if name.startswith("digit") else 40, **settings)
        for name in CASES
        if not name.startswith("stored")  # not in the paper
    }
    yield "coverage.csv", pd.concat(map(summary, covered.values()))
    yield "coverage-french-bulldog.csv", coverage_by_seed(covered["french-bulldog"])


def localisation_tables(rows_of: Rows) -> Tables:
    """Table 1."""
    yield "localisation.csv", pd.concat(rows_of(localisation, name) for name in PARTS)


def figure_tables(rows_of: Rows) -> Tables:
    """Figures 2, 4 and 5; `python -m studies figures` draws them."""
    for name in CUTS:
        yield f"figures-{name}.csv", figure_numbers(rows_of(superpixels, name))


def stability_tables(rows_of: Rows) -> Tables:
    """Repeated runs."""
    names, methods = ("french-bulldog", "german", "compas"), ("lime", *METHODS)
    found = [rows_of(stability, name, items=20, methods=methods) for name in names]
    yield "stability.csv", pd.concat(found)


def rank_tables(rows_of: Rows) -> Tables:
    """Coverage of the most important features."""
    yield "coverage-by-rank.csv", rows_of(coverage_by_rank)


def text_tables(rows_of: Rows) -> Tables:
    """Coverage of short texts."""
    yield "coverage-texts.csv", rows_of(coverage_texts)


def quadrature_tables(rows_of: Rows) -> Tables:
    """Error and coverage of quadrature and of the regressions on photos."""
    yield "quadrature.csv", rows_of(quadrature)


def faithfulness_tables(rows_of: Rows) -> Tables:
    """Insertion, deletion and other measures of many packages."""
    league = pd.concat(rows_of(faithfulness, name, **how) for name, how in LEAGUE.items())
    for name in HIGHER_IS_BETTER:
        league[name] = league[name].map(lambda value: float(f"{value:.4g}"))
    yield "faithfulness.csv", league


def agreement_tables(rows_of: Rows) -> Tables:
    """Repeated runs of designs and packages."""
    repeats = []
    for name, how in REPEATS.items():
        more = ("quadrature+adaptive",) if name.startswith("stored") else ()
        repeats.append(rows_of(stability, name, methods=(*MASKED, *more), **how))
    yield "agreement.csv", pd.concat(repeats)


STUDIES: dict[str, Callable[[Rows], Tables]] = {
    "coverage": coverage_tables,
    "localisation": localisation_tables,
    "figures": figure_tables,
    "stability": stability_tables,
    "coverage-by-rank": rank_tables,
    "coverage-texts": text_tables,
    "quadrature": quadrature_tables,
    "faithfulness": faithfulness_tables,
    "agreement": agreement_tables,
}


def coverage_by_seed(rows: pd.DataFrame) -> pd.DataFrame:
    """Coverage of all features for each method, truth, number of masks and seed."""
    rows = rows.assign(coverage=rows["coverage"] * rows["features"])
    keys = ["method", "truth", "n", "seed"]
    sums = rows.groupby(keys, sort=False)[["coverage", "features"]].sum().reset_index()
    return sums.assign(coverage=sums["coverage"] / sums["features"])


def versions() -> dict[str, str]:
    """The versions of Python and of the packages that are installed."""
    found = {"python": platform.python_version(), "eblime": eblime.__version__}
    packages = ("numpy", "scipy", "scikit-learn", "scikit-image", "torch", "lime", "shap", "captum")
    for name in packages:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
