"""The family of LIME on one data set: agreement of repeated runs, model calls and seconds.

A boosted regressor on scikit-learn's diabetes data (10 columns); each system explains the same rows
with several seeds. Prints one line for each system, with a figure in every cell:

- overlap: mean Jaccard index of the three most important columns of two runs;
- flips: share of columns chosen by both runs whose signs differ;
- VSI, CSI: the stability indices of Visani et al. (2022), from 0 to 1;
- spread: standard deviation of an importance between seeds, as a share of the row's largest one;
- calls: rows that the model was asked about, for one explanation;
- ms: milliseconds of processor time of one explanation, model calls included.

LIME has no intervals: its CSI uses those of its weighted ridge regression.

    python -m studies family            # a few minutes
    python -m studies family --write    # also puts the table into a page; `pages` then writes it
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor

import eblime
from eblime.family import DLIME, UnRAVEL, averaged, fit_mixture
from eblime.measures import stability_of
from eblime.stopping import LarsStable
from studies.measures import interval_of
from studies.tables import head, row

PAGE = Path(__file__).parents[1] / "docs" / "measurements" / "comparisons.md.in"
BEGIN, END = "<!-- table of studies/family.py -->", "<!-- end of the table -->"
TOP = 3
PER_MASK = 10  # rows of the background, each of which is a model call
Found = tuple[np.ndarray, np.ndarray]  # importances (p,) and intervals (p, 2)
System = Callable[[Any, int], Found]  # of a row and a seed


class Counted:
    """A model that counts the rows it is asked about."""

    def __init__(self, model: Any) -> None:
        """Start at zero."""
        self.model, self.calls = model, 0

    def __call__(self, rows: Any) -> np.ndarray:
        """Predict, and count."""
        self.calls += len(rows)
        return np.asarray(self.model.predict(np.asarray(rows, dtype=float)))


def of(e: eblime.Explanation) -> Found:
    """Importances and intervals of an explanation."""
    return e.posterior.mean, interval_of(e)


def of_rows(model: Counted, rows: np.ndarray, **settings: Any) -> System:
    """A `TabularExplainer` with these settings."""
    explainer = eblime.TabularExplainer(model, rows, progress=False, **settings)
    return lambda x, seed: of(explainer.explain(x, rng=seed))


def stable(model: Counted, rows: np.ndarray, n: int, x: Any, seed: int) -> Found:
    """S-LIME, with at most ten times as many masks."""
    explainer = eblime.TabularExplainer(
        model, rows, method="lime", rows_per_mask=PER_MASK, progress=False
    )
    rule = LarsStable(TOP)
    return of(explainer.explain(x, rng=seed, until=rule, max_masks=10 * n // PER_MASK))


def mean_of_runs(model: Counted, rows: np.ndarray, n: int, x: Any, seed: int) -> Found:
    """Averaged LIME: five runs, each with a fifth of the masks."""
    explainer = eblime.TabularExplainer(
        model,
        rows,
        n_masks=n // 5 // PER_MASK,
        rows_per_mask=PER_MASK,
        method="lime",
        progress=False,
    )
    found = averaged(explainer, x, runs=5, widths=(1.0,), rng=seed)
    half = 1.96 * found.error
    return found.mean, np.stack([found.mean - half, found.mean + half], axis=1)


def mixture(model: Counted, rows: np.ndarray, n: int, x: Any, seed: int) -> Found:
    """DMM-MEN: the regression of the row's component."""
    whole = fit_mixture(rows[:n], model(rows[:n]), draws=200, burn_in=200, rng=seed)
    post = whole.local(x, float(model(x[None])[0]))
    return post.mean, post.interval()


def active(model: Counted, rows: np.ndarray, n: int, x: Any, seed: int) -> Found:
    """UnRAVEL, with at most 60 calls."""
    explainer = eblime.TabularExplainer(model, rows, n_masks=n, progress=False)
    return of(UnRAVEL().explain(explainer, x, rng=seed))


def systems(model: Counted, rows: np.ndarray, n: int) -> dict[str, System]:
    """Each system as a function of a row and a seed."""
    table = partial(of_rows, model, rows, n_masks=n // PER_MASK, rows_per_mask=PER_MASK)
    whole = eblime.TabularExplainer(model, rows, n_masks=len(rows) + 1, progress=False)
    return {
        "LIME": table(method="lime"),
        "EBLIME": table(),
        "BayesLIME": table(method="bayeslime"),
        "BayesSHAP": table(method="bayesshap", design="leverage"),
        "BayLIME": table(method="baylime"),
        "Quadrature": table(method="quadrature", design="orthogonal"),
        "GLIME": table(design="glime", method="lime"),
        "stratified LIME": table(design="stratified-lime", method="lime"),
        "S-LIME": partial(stable, model, rows, n),
        "averaged LIME": partial(mean_of_runs, model, rows, n),
        "DLIME": lambda x, seed: of(DLIME(method="eblime").explain(whole, x)),
        "UnRAVEL": partial(active, model, rows, n),
        "DMM-MEN": partial(mixture, model, rows, n),
    }


def measure(explain: System, model: Counted, rows: np.ndarray, seeds: int) -> list[str]:
    """Explain each row with each seed; the cells of agreement, calls and time."""
    explain(rows[0], 0)  # warm up
    model.calls, begun, agreed = 0, time.process_time(), []
    for x in rows:
        runs = [explain(x, seed) for seed in range(seeds)]
        means, ends = (np.array(parts) for parts in zip(*runs, strict=True))
        found = stability_of(means, ends, top=TOP)
        largest = np.abs(means.mean(axis=0)).max()
        spread = np.sqrt(means.var(axis=0, ddof=1).mean()) / largest
        agreed.append([found.overlap, found.sign_flips, found.vsi, found.csi, spread])
    spent, count = time.process_time() - begun, len(rows) * seeds
    shares = [f"{share:.2f}" for share in np.mean(agreed, axis=0)]
    return [*shares, f"{model.calls / count:.0f}", f"{1_000 * spent / count:.0f}"]


def put_into_page(text: str) -> None:
    """Replace what is between the markers of the page."""
    page = PAGE.read_text("utf8")
    found, count = re.subn(
        f"{BEGIN}.*{END}", lambda _: f"{BEGIN}\n\n{text}\n\n{END}", page, flags=re.DOTALL
    )
    if count != 1:
        raise ValueError(f"{PAGE} must have the markers {BEGIN} and {END} once; found {count}.")
    PAGE.write_text(found, "utf8")


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the study."""
    parser.add_argument("--rows", type=int, default=6, help="rows to explain")
    parser.add_argument("--seeds", type=int, default=5, help="runs of each row, at least 2")
    parser.add_argument("--calls", type=int, default=200, help="model calls of most systems")
    parser.add_argument("--write", action="store_true", help="put the table into the docs")


def run(options: argparse.Namespace) -> None:
    """Run all systems and print the table."""
    data = load_diabetes()
    model = Counted(GradientBoostingRegressor(random_state=0).fit(data.data, data.target))
    lines = [head(["system", "overlap", "flips", "VSI", "CSI", "spread", "calls", "ms"])]
    print(lines[0])
    for name, explain in systems(model, data.data, options.calls).items():
        cells = measure(explain, model, data.data[: options.rows], options.seeds)
        lines.append(row([name, *cells]))
        print(lines[-1], flush=True)
    if options.write:
        put_into_page("\n".join(lines))
