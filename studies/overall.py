"""Importance over many inputs: the average of |importance|, with and without sampling noise.

A logistic function of nine columns uses five of them, two of these only in an interaction. Rows of
the table are explained with few masks, again and again with other seeds, and with 30,000 masks for
the truth. For every column this prints

- the true mean |importance| over the rows,
- the mean of folded normals, which counts noise as importance, with the coverage of its interval,
- the estimate of `Run.summary`, the mean ends of its 95 % interval, and its coverage.

With `--hardest` it simulates the hardest case instead: 200 inputs with importances of both signs
that are all as large as their errors. It prints how often 95 % intervals of the mean |importance|
contain the truth.

    python -m studies overall            # some minutes
    python -m studies overall --seeds 5
    python -m studies overall --hardest
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import eblime
from eblime.batch.results import Run
from eblime.core.overall import absolute_moments, fit_overall, overall_interval
from studies.tables import head, row

MASKS, ROWS, TRUTH = 150, 60, 30_000


def model(rows: pd.DataFrame) -> np.ndarray:
    """A logistic function of a, b, c times d, and kind."""
    a, b, c, d = (rows[name].to_numpy(float) for name in "abcd")
    red = (rows["kind"] == "red").to_numpy()
    return 1 / (1 + np.exp(-(2 * a - 1.5 * b + c * d + 0.5 * red)))


def people() -> pd.DataFrame:
    """The table."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(ROWS, 8)), columns=list("abcdefgh"))
    return table.assign(kind=rng.choice(["red", "blue"], ROWS))


def one_run(table: pd.DataFrame, masks: int, seed: int) -> Run:
    """Explain all rows of the table."""
    explainer = eblime.TabularExplainer(model, table, n_masks=masks)
    folder = Path(tempfile.mkdtemp()) / "run"
    return eblime.explain_many(explainer, table, folder, rng=seed, progress=False)


def before(run: Run) -> pd.DataFrame:
    """Means of folded normals, and their intervals."""
    rows = run.frame()
    size, variance = absolute_moments(rows["mean"].to_numpy(), rows["sd"].to_numpy())
    each = rows.assign(size=size, variance=variance).groupby("feature")
    mean, reach = each["size"].mean(), 1.96 * np.sqrt(each["variance"].sum()) / each.size()
    return pd.DataFrame({"mean": mean, "low": mean - reach, "high": mean + reach})


def hardest(seeds: int, inputs: int = 200) -> float:
    """Coverage where every importance is as large as its error, with either sign."""
    held = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        estimate = rng.choice([-1.0, 1.0], inputs) + rng.normal(size=inputs)
        found = fit_overall(rng, estimate, np.ones(inputs), np.ones(inputs))
        low, high = overall_interval(found.size, 0.95)
        held.append(low <= 1 <= high)
    return float(np.mean(held))


def study(seeds: int) -> None:
    """Print one row per column."""
    table = people()
    truth = one_run(table, TRUTH, 12345).summary().set_index("feature")["mean_abs"]
    old, new = [], []
    for seed in range(seeds):
        run = one_run(table, MASKS, seed)
        old.append(before(run).loc[truth.index])
        new.append(run.summary().set_index("feature").loc[truth.index])
    print(f"{ROWS} rows, {MASKS} masks, {seeds} seeds")
    heads = ["column", "truth", "folded normals", "covers", "estimate", "interval", "covers"]
    print(head(heads))
    name: Any
    for name, value in truth.items():
        was = pd.DataFrame([entry.loc[name] for entry in old])
        now = pd.DataFrame([entry.loc[name] for entry in new])
        held = [((f["low"] <= value) & (value <= f["high"])).mean() for f in (was, now)]
        old_cells = [f"{value:.3f}", f"{was['mean'].mean():.3f}", f"{held[0]:.2f}"]
        interval = f"{now['low'].mean():.3f} to {now['high'].mean():.3f}"
        new_cells = [f"{now['mean_abs'].mean():.3f}", interval, f"{held[1]:.2f}"]
        print(row([name, *old_cells, *new_cells]))


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the study."""
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--hardest", action="store_true", help="simulate the hardest case instead")


def run(options: argparse.Namespace) -> None:
    """Print the table, or the coverage of the hardest case."""
    if options.hardest:
        print(f"{options.seeds} simulations: covered in {100 * hardest(options.seeds):.0f} %")
    else:
        study(options.seeds)
