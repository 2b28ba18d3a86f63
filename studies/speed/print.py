"""Time of looking at results: a printed row and text, a frame, and the views of a run.

Processor time, so that other work on the machine does not count. The explanations and the runs are
made first and are not part of the times. The run has 2,000 rows with 12 columns.

    python -m studies speed-print               # less than a minute
    python -m studies speed-print --rows 500    # a smaller run
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import matplotlib as mpl
import numpy as np

import eblime
from eblime.batch.results import Run
from studies.speed.clock import versions
from studies.tables import head, row

COLUMNS, WORDS = 12, 1_800


def add_options(parser: argparse.ArgumentParser) -> None:
    """The size of the run."""
    parser.add_argument("--rows", type=int, default=2_000, help="inputs of the run")


def scores(table: np.ndarray, steep: float = 1.0) -> np.ndarray:
    """A logistic function of three of the columns, two of them in a product."""
    return 1 / (1 + np.exp(-steep * (table[:, 0] - table[:, 1] + 0.5 * table[:, 2] * table[:, 3])))


def explained_row(rows: np.ndarray) -> eblime.Explanation:
    """One row of the table."""
    return eblime.TabularExplainer(scores, rows, n_masks=1_000).explain(rows[0], rng=0)


def explained_text() -> eblime.Explanation:
    """A text whose 1,800 words are all features."""

    def answer(texts: list[str]) -> np.ndarray:
        return np.array([("w7 " in t) + 0.5 * ("w70 " in t) + 1e-4 * len(t) for t in texts])

    text = " ".join(f"w{number}" for number in range(WORDS))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # there are few masks for so many words
        return eblime.TextExplainer(answer, tokens=r"\S+", n_masks=600).explain(text, rng=0)


def run_of(rows: np.ndarray, folder: Path, steep: float) -> Run:
    """A run over the rows."""
    explainer = eblime.TabularExplainer(lambda table: scores(table, steep), rows, n_masks=100)
    return eblime.explain_many(explainer, rows, folder, progress=False)


def views(count: int, folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """What is timed, with its name; each is made when its turn comes."""
    rows = np.random.default_rng(0).normal(size=(count, COLUMNS))
    one = explained_row(rows)
    yield f"print of a row, {COLUMNS} columns", lambda: str(one)
    yield "its table in a notebook", one._repr_html_
    yield "its frame, with P(top k)", one.to_frame
    text = explained_text()
    yield f"print of a text, {WORDS:,} words", lambda: str(text)
    yield "its P(top k)", lambda: text.posterior.top_k_probability(5)
    first, second = (run_of(rows, folder / str(steep), steep) for steep in (1.0, 2.0))
    yield f"frame of a run, {count:,} rows", first.frame
    yield "its summary", first.summary
    yield "its beeswarm", lambda: first.plot("beeswarm")
    yield "its comparison with another run", lambda: first.compare(second)


def run(options: argparse.Namespace) -> None:
    """Print the table, a row at a time."""
    mpl.use("Agg")
    print(versions("numpy", "pandas", "pyarrow"))
    print(head(["", "first, ms", "again, ms"]))
    with tempfile.TemporaryDirectory() as folder:
        for name, view in views(options.rows, Path(folder)):
            times = []
            for _ in range(2):
                start = time.process_time()
                view()
                times.append(1e3 * (time.process_time() - start))
            print(row([name, *(f"{value:,.1f}" for value in times)]), flush=True)
