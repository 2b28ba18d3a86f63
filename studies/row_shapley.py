"""Shapley values of rows: coverage, and error beside shap's at the same model calls.

Two tables of scikit-learn, with 10 and 13 columns, each with a linear and a tree model, and a
background of 50 rows. The exact interventional Shapley values are those of shap's `Exact`, which
asks all coalitions. `Quadrature` asks 10 and 20 masks per column in rounds, each the mean over the
background. `KernelExplainer` gets as many masks of the same background, so that both ask the model
about as many rows, and no lasso, with which its error is larger.

"ratio" is the geometric mean over rows of the squared error over that of `KernelExplainer`; "of
sums" is the ratio of the sums over rows. Both are exact for linear models: there the column "error"
says how small the error is. "error" is relative to the root mean square of the values.

    python -m studies row-shapley                          # 3 minutes
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import eblime
from studies.intervals import interval_measures
from studies.runner import Row, add_run_options, positive, run_study
from studies.tables import frame_table

MODELS = ("linear", "boosting", "logistic", "forest")
BACKGROUND = 50
_EXACT = 1e-6  # relative error below which an estimate counts as exact


class Case(NamedTuple):
    """A model, its background, and rows to explain."""

    score: Callable[[np.ndarray], np.ndarray]
    background: np.ndarray
    rows: np.ndarray


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the study."""
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=MODELS)
    parser.add_argument("--calls", type=positive, nargs="+", default=[10, 20], help="masks/column")
    parser.add_argument("--design", default="adaptive", help="name of a design")
    add_run_options(parser, items=120, seed=False)


def run(options: argparse.Namespace) -> None:
    """Run the study and print one line per model and number of calls."""
    tables = []
    for model in options.models:
        settings = {"model": model, "calls": options.calls, "design": options.design}
        study = {"out": options.out, "jobs": options.jobs, "progress": options.progress}
        tables.append(run_study(row_shapley_rows, settings, range(options.items), **study))
    print(frame_table(summary(pd.concat(tables))))


def row_shapley_rows(settings: Mapping[str, Any], number: int) -> list[Row]:
    """Both estimates for one row of a table."""
    case = load_case(settings["model"])
    row = case.rows[number % len(case.rows)]
    truth = exact_values(case, row)
    return [
        {"model": settings["model"], **one_row(case, row, truth, calls, number, settings)}
        for calls in settings["calls"]
    ]


def one_row(
    case: Case,
    row: np.ndarray,
    truth: np.ndarray,
    calls: int,
    seed: int,
    settings: Mapping[str, Any],
) -> Row:
    """Coverage and errors with so many masks per column."""
    import shap

    asked = [0]

    def counted(rows: np.ndarray) -> np.ndarray:
        asked[0] += len(rows)
        return case.score(rows)

    n_masks = calls * len(row)
    explainer = eblime.TabularExplainer(
        counted,
        case.background,
        method=eblime.Quadrature(index="shapley"),
        design=settings["design"],
        n_masks=n_masks,
    )
    found = explainer.explain(row, rng=seed).posterior
    ours = asked[0]
    np.random.seed(seed)  # noqa: NPY002  # what KernelExplainer draws from
    kernel = shap.KernelExplainer(counted, case.background)
    asked[0] = 0  # without the call of its constructor
    theirs = kernel.shap_values(row, nsamples=n_masks, l1_reg=0, silent=True)
    unit = np.mean(truth**2)
    measures = interval_measures(found.interval(), truth, 0.95)
    return {
        "calls": calls,
        "coverage": measures["coverage"],
        "top 1": measures["top_1"],
        "score": measures["score"] / np.sqrt(unit),
        "mse": np.mean((found.mean - truth) ** 2) / unit,
        "mse of shap": np.mean((theirs - truth) ** 2) / unit,
        "rows": ours,
        "rows of shap": asked[0],
    }


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """One line per model and number of calls."""
    lines = []
    for (model, calls), part in rows.groupby(["model", "calls"], sort=False):
        ours, theirs = part["mse"], part["mse of shap"]
        both = np.maximum(ours, _EXACT**2) / np.maximum(theirs, _EXACT**2)
        exact = theirs.max() <= _EXACT**2
        lines.append(
            {
                "model": model,
                "calls per column": calls,
                "fits": len(part),
                "coverage": part["coverage"].mean(),
                "top 1": part["top 1"].mean(),
                "error": np.sqrt(ours.mean()),
                "error of shap": np.sqrt(theirs.mean()),
                "ratio": np.nan if exact else np.exp(np.log(both).mean()),
                "of sums": np.nan if exact else ours.sum() / theirs.sum(),
                "model rows": part["rows"].mean(),
                "of shap": part["rows of shap"].mean(),
            }
        )
    return pd.DataFrame(lines)


@lru_cache(maxsize=1)
def load_case(model: str) -> Case:
    """Fit a model to half of a table; explain rows of the other half."""
    from sklearn.datasets import load_diabetes, load_wine
    from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier
    from sklearn.linear_model import LinearRegression, LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    made: Any = {
        "linear": LinearRegression(),
        "boosting": GradientBoostingRegressor(random_state=0, max_depth=4),
        "logistic": make_pipeline(StandardScaler(), LogisticRegression(C=10)),
        "forest": RandomForestClassifier(20, random_state=0),
    }[model]
    regression = model in ("linear", "boosting")
    whole = load_diabetes() if regression else load_wine()
    order = np.random.default_rng(0).permutation(len(whole.data))
    x, half = whole.data[order], len(order) // 2
    made.fit(x[:half], whole.target[order][:half])
    score = made.predict if regression else lambda rows: made.predict_proba(rows)[:, 0]
    return Case(score, x[:BACKGROUND], x[half : half + 120])


def exact_values(case: Case, row: np.ndarray) -> np.ndarray:
    """Interventional Shapley values by all coalitions, as shap computes them."""
    import shap

    masker = shap.maskers.Independent(case.background, max_samples=BACKGROUND)
    return np.asarray(shap.explainers.Exact(case.score, masker)(row[None], silent=True).values[0])
