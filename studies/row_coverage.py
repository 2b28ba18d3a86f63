"""Coverage of `TabularExplainer` as it is: three models of wines, six rows each, many seeds.

13 columns and the default background. The truth is the fit to all 8,192 masks, each of which is
asked once; explanations with fewer masks take their scores from these answers. Printed beside the
aims: coverage of 95 % intervals of at least .93 in each row, and of .92 for the column with the
largest importance.

    python -m studies row-coverage                         # 2 minutes
    python -m studies row-coverage --n 128 1024
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_wine
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import eblime
from eblime.games import PLAYERS, stored_game
from studies.intervals import interval_measures
from studies.tables import frame_table

MODELS = {
    "logistic": make_pipeline(StandardScaler(), LogisticRegression(C=10)),
    "forest": RandomForestClassifier(50, random_state=0),
    "boosting": HistGradientBoostingClassifier(random_state=0),
}
AIM, AIM_OF_TOP = 0.93, 0.92


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the study."""
    parser.add_argument("--n", type=int, nargs="+", default=[1024], help="masks")
    parser.add_argument("--rows", type=int, default=6)
    parser.add_argument("--seeds", type=int, default=30)


def run(options: argparse.Namespace) -> None:
    """Print one line per model, row and number of masks."""
    wine = load_wine()
    order = np.random.default_rng(0).permutation(len(wine.data))
    known, new = order[:120], wine.data[order[120 : 120 + options.rows]]
    lines = []
    for name, model in MODELS.items():
        fitted = model.fit(wine.data[known], wine.target[known])
        explainer = eblime.TabularExplainer(fitted, wine.data[known])
        for number, row in enumerate(new):
            whole = explainer.explain(row, n_masks=2 ** wine.data.shape[1])
            for n in options.n:
                found = coverage(whole, n, options.seeds)
                lines.append({"model": name, "row": number, "masks": n, **found})
    table = pd.DataFrame(lines)
    print(frame_table(table))
    print(f"\nAims: coverage of each row {AIM}, of its largest importance {AIM_OF_TOP}")
    least = table.groupby("masks")[["coverage", "top_1", "worst column"]].min()
    print(frame_table(least.reset_index()))


def coverage(whole: eblime.Explanation, n: int, seeds: int) -> dict[str, Any]:
    """How often the intervals of n masks contain the importances of all masks."""
    values = np.empty(len(whole.masks))
    values[(whole.masks @ 2.0 ** np.arange(whole.masks.shape[1])).astype(int)] = whole.scores
    explainer, truth = eblime.Explainer(stored_game(values), PLAYERS), whole.posterior.mean
    ends = [
        explainer.explain(stored_game(values), rng=seed, n_masks=n).posterior.interval()
        for seed in range(seeds)
    ]
    measures = pd.DataFrame([interval_measures(each, truth, 0.95) for each in ends]).mean()
    inside = [(each[:, 0] <= truth) & (truth <= each[:, 1]) for each in ends]
    found = {name: measures[name] for name in ("coverage", "top_1", "top_2_3")}
    return {**found, "worst column": np.mean(inside, axis=0).min()}
