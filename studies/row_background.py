"""How far the rows of a background that are kept are from all of them.

Importances with 64 masks of rows of three tables, with a forest, for all 500 rows of a background
and for some: those that `TabularExplainer` keeps, and rows drawn at random. Five backgrounds.
Printed are root mean squared differences from the importances for all rows, over their root mean
square.

    python -m studies row-background                       # 3 minutes
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

import eblime
from studies.data.tabular import table_and_forest
from studies.tables import frame_table

TIMES, MASKS, ROWS = 5, 64, 500


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the study."""
    parser.add_argument("--kept", type=int, nargs="+", default=[50, 100, 200])
    parser.add_argument("--rows", type=int, default=6)


def run(options: argparse.Namespace) -> None:
    """Print one line per table and number of rows kept."""
    lines = []
    for name in ("german", "compas", "breast cancer"):
        frame, model, new = case(name, options.rows)

        def explain(rows: pd.DataFrame, most: int, model: Any = model, new: Any = new) -> Any:
            explainer = eblime.TabularExplainer(model, rows, rows_per_mask=most, n_masks=MASKS)
            return np.stack(
                [explainer.explain(row, 1).posterior.mean for row in new.to_dict("records")]
            )

        errors: dict[tuple[int, str], list[float]] = defaultdict(list)
        for seed in range(TIMES):
            background = frame.sample(ROWS, random_state=seed)
            whole = explain(background, ROWS)
            for most in options.kept:
                for key, rows in (("kept", background), ("drawn at random", background[:most])):
                    missed = np.mean((explain(rows, most) - whole) ** 2)
                    errors[most, key].append(float(missed / np.mean(whole**2)))
        for most in options.kept:
            means = {
                key: np.sqrt(np.mean(errors[most, key])) for key in ("kept", "drawn at random")
            }
            lines.append({"table": name, "rows": most, **means})
    print(frame_table(pd.DataFrame(lines)))


def case(name: str, n_rows: int) -> tuple[pd.DataFrame, Any, pd.DataFrame]:
    """A table, a model, and rows that are explained, which the table does not have."""
    if name != "breast cancer":
        table, model, new = table_and_forest(name)
        rest = np.setdiff1d(np.arange(len(table.data)), new[:n_rows])
        return table.data.iloc[rest], model, table.data.iloc[new[:n_rows]]
    frame, target = load_breast_cancer(return_X_y=True, as_frame=True)
    model = RandomForestClassifier(100, random_state=0).fit(frame[n_rows:], target[n_rows:])
    return frame[n_rows:], model, frame[:n_rows]
