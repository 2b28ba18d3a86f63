"""The family of LIME on one data set: agreement of repeated runs, model calls and seconds.

A boosted regressor on scikit-learn's diabetes data (10 columns); each system explains the same rows
with several seeds. Prints one line for each system, with a figure in every cell:

- overlap: mean Jaccard index of the three most important columns of two runs;
- flips: share of columns chosen by both runs whose signs differ;
- VSI, CSI: the stability indices of Visani et al. (2022), from 0 to 1;
- calls: rows that the model was asked about, for one explanation;
- ms: milliseconds of one explanation, model calls included.

    python benchmarks/family.py            # about a minute
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor

import eblime
from eblime.evaluation.agreement import agreement_of
from eblime.family import DLIME, averaged, fit_mixture, unravel

TOP = 3
Found = tuple[np.ndarray, np.ndarray]  # importances (p,) and intervals (p, 2)


class Counted:
    """A model that counts the rows it is asked about."""

    def __init__(self, model: Any) -> None:
        """Start at zero."""
        self.model, self.calls = model, 0

    def __call__(self, rows: Any) -> np.ndarray:
        """Predict, and count."""
        self.calls += len(rows)
        return np.asarray(self.model.predict(np.asarray(rows, dtype=float)))


def of(posterior: eblime.Posterior) -> Found:
    """Importances and intervals of a posterior; a point estimate has none."""
    p = posterior.n_features
    ends = posterior.interval() if posterior.has_spread else np.full((p, 2), np.nan)
    return posterior.mean, ends


def systems(model: Counted, rows: np.ndarray, n: int) -> dict[str, Callable[[Any, int], Found]]:
    """Each system as a function of a row and a seed."""

    def table(**settings: Any) -> Callable[[Any, int], Found]:
        explainer = eblime.TabularExplainer(model, rows, progress=False, **settings)
        return lambda x, seed: of(explainer.explain(x, rng=seed).posterior)

    def stable(x: Any, seed: int) -> Found:
        explainer = eblime.TabularExplainer(model, rows, method="lime", progress=False)
        rule = eblime.LarsStable(TOP)
        return of(explainer.explain(x, rng=seed, until=rule, max_masks=10 * n).posterior)

    def mean_of_runs(x: Any, seed: int) -> Found:
        explainer = eblime.TabularExplainer(model, rows, n_masks=n // 5, progress=False)
        found = averaged(explainer, x, runs=5, widths=(1.0,), rng=seed)
        half = 1.96 * np.asarray(found.error)
        return found.mean, np.stack([found.mean - half, found.mean + half], axis=1)

    def mixture(x: Any, seed: int) -> Found:
        whole = fit_mixture(rows[:n], model(rows[:n]), draws=200, burn_in=200, rng=seed)
        return of(whole.local(x, float(model(x[None])[0])))

    fixed = DLIME(model=model, background=rows)
    return {
        "LIME": table(method="lime", n_masks=n),
        "EBLIME": table(n_masks=n),
        "BayesLIME": table(method="bayeslime", n_masks=n),
        "BayLIME": table(method="baylime", n_masks=n),
        "GLIME": table(design="glime", method="lime", n_masks=n),
        "stratified LIME": table(design="stratified-lime", method="lime", n_masks=n),
        "S-LIME": stable,
        "averaged LIME": mean_of_runs,
        "DLIME": lambda x, seed: of(fixed.explain(x).posterior),
        "UnRAVEL": lambda x, seed: of(
            unravel(model, x, rows, n_calls=min(n, 60), rng=seed).posterior
        ),
        "DMM-MEN": mixture,
    }


def main() -> None:
    """Run all systems and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rows", type=int, default=4)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=200)
    options = parser.parse_args()
    data = load_diabetes()
    model = Counted(GradientBoostingRegressor(random_state=0).fit(data.data, data.target))
    print("| system | overlap | flips | VSI | CSI | calls | ms |\n|---|---|---|---|---|---|---|")
    for name, explain in systems(model, data.data, options.calls).items():
        model.calls, begun, found = 0, time.perf_counter(), []
        for x in data.data[: options.rows]:
            runs = [explain(x, seed) for seed in range(options.seeds)]
            means, ends = (np.array(parts) for parts in zip(*runs, strict=True))
            found.append(agreement_of(means, ends, top=TOP))
        count = options.rows * options.seeds
        cells = [np.mean([getattr(a, k) for a in found]) for k in ("overlap", "sign_flips", "vsi")]
        csi = np.mean([a.csi for a in found])
        words = "none" if np.isnan(csi) else f"{csi:.2f}"
        spent = 1_000 * (time.perf_counter() - begun) / count
        print(
            f"| {name} | {cells[0]:.2f} | {cells[1]:.2f} | {cells[2]:.2f} | {words} | "
            f"{model.calls / count:.0f} | {spent:.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
