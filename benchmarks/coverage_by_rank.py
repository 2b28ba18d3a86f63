"""Coverage by rank: how often the intervals of the most important features contain the truth.

An average over features hides the few that people read. For every case and number of masks this
prints how often 95 % intervals contain the truth for all features, for the most important one (by
its true absolute importance) and for the next two, with the mean interval score and the root mean
square error, both divided by those of the common ridge parameter, `EBLIME(local=False)`.

The truth is the weighted linear fit, intercept free, to a whole population of answers: all masks
of photos with at most 13 superpixels, 10,000 masks of photos with about 36, 20,000 perturbed rows
of tables. Masks are drawn from that population with replacement, so that nothing else is unknown.

- photos: EfficientNet-Lite0, from the stored tables `imagenet-p13.npz` and `imagenet-p40.npz`;
- German credit, boosted trees; breast cancer, logistic regression on standardised columns and on
  the columns as they are; a linear function of 100 columns that uses 5.

    EBLIME_DATA=... python benchmarks/coverage_by_rank.py --tables FOLDER    # ten minutes
    EBLIME_DATA=... python benchmarks/coverage_by_rank.py --tables FOLDER --quick
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd

import eblime
from eblime.datasets.tabular import german
from eblime.evaluation.scores import judged
from eblime.kernels import ExponentialKernel

Population = tuple[np.ndarray, np.ndarray, np.ndarray]  # masks, scores, weights
SIZES = (100, 200, 500, 1000)
BASELINE = "EBLIME(local=False)"
METHODS = {
    BASELINE: eblime.EBLIME(local=False),
    "EBLIME()": eblime.EBLIME(),
    "BayesLIME()": eblime.BayesLIME(),
    "EBLIME.paper()": eblime.EBLIME.paper(),
}


def photos_13(tables: Path) -> Iterator[Population]:
    """Photos whose answers are known for every mask."""
    stored = np.load(tables / "imagenet-p13.npz")
    for i in range(len(stored["names"])):
        scores = stored[f"scores_{i}"].astype(float)
        p = len(scores).bit_length() - 1
        masks = (np.arange(2**p)[:, None] >> np.arange(p) & 1).astype(float)
        yield masks, scores, ExponentialKernel()(masks)


def photos_40(tables: Path) -> Iterator[Population]:
    """Photos whose answers are known for 5,000 masks and their complements."""
    stored = np.load(tables / "imagenet-p40.npz")
    for i in range(len(stored["names"])):
        p = int(stored["segments"][i].max()) + 1
        half = np.unpackbits(stored[f"masks_{i}"], axis=1)[:, :p].astype(float)
        masks = np.vstack([half, 1 - half])
        yield masks, stored[f"scores_{i}"].astype(float), ExponentialKernel()(masks)


def rows_of(model: object, data: object, rows: list, target: int) -> Iterator[Population]:
    """20,000 perturbed rows around each of some rows."""
    explainer = eblime.TabularExplainer(model, data, n_masks=20_000, method="lime")
    for number, row in enumerate(rows):
        e = explainer.explain(row, target=target, rng=1_000 + number)
        yield e.masks, e.scores, e.weights


def german_credit(tables: Path) -> Iterator[Population]:
    """German credit with boosted trees, 20 rows that they have not seen."""
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import GradientBoostingClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    table = german()
    words = [name for name in table.data if table.data[name].dtype.kind not in "uif"]
    encode = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), words), remainder="passthrough"
    )
    order = np.random.default_rng(0).permutation(len(table.data))
    model = make_pipeline(encode, GradientBoostingClassifier(random_state=0))
    model.fit(table.data.iloc[order[:800]], table.target[order[:800]])
    return rows_of(model, table.data, [table.data.iloc[k] for k in order[800:820]], 1)


def breast_cancer(tables: Path, *, standardised: bool) -> Iterator[Population]:
    """Breast cancer with logistic regression, 20 rows that it has not seen."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    data, target = load_breast_cancer(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(data))
    logistic = LogisticRegression(max_iter=20_000)
    model = make_pipeline(StandardScaler(), logistic) if standardised else logistic
    model.fit(data[order[:450]], target[order[:450]])
    return rows_of(model, data, list(data[order[450:470]]), 1)


def sparse_linear(tables: Path) -> Iterator[Population]:
    """A linear function of 100 normal columns that uses 5 of them."""
    data = np.random.default_rng(0).normal(size=(1000, 100))
    slopes = np.zeros((100, 1))
    slopes[:5, 0] = [3, -2, 2, -1, 1]
    return rows_of(lambda rows: np.asarray(rows, float) @ slopes, data, list(data[:20]), 0)


CASES: dict[str, Callable[[Path], Iterator[Population]]] = {
    "photos, p = 11-13": photos_13,
    "photos, p = 28-45": photos_40,
    "German credit, p = 20": german_credit,
    "breast cancer, standardised, p = 30": lambda t: breast_cancer(t, standardised=True),
    "breast cancer, as it is, p = 30": lambda t: breast_cancer(t, standardised=False),
    "linear, 5 of p = 100": sparse_linear,
}


def best_fit(masks: np.ndarray, scores: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The weighted least squares slopes of a population."""
    columns = np.column_stack([np.ones(len(masks)), masks])
    root = np.sqrt(weights)
    return np.linalg.lstsq(columns * root[:, None], scores * root, rcond=None)[0][1:]


def judge(population: Population, truth: np.ndarray, n: int, seed: list[int]) -> Iterator[dict]:
    """One draw of n masks, fitted by every method."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(len(population[0]), size=n)
    for name, method in METHODS.items():
        post = eblime.fit(*(part[rows] for part in population), method=method, rng=rng)
        found = judged(post.interval(0.95), truth, 0.95)
        yield {
            "method": name,
            "all": found["coverage"],
            "top 1": found["top_1"],
            "top 2-3": found["top_2_3"],
            "score": found["score"],
            "square": np.mean((post.mean - truth) ** 2),
        }


def study(tables: Path, cases: list[str], sizes: tuple[int, ...], fits: int) -> pd.DataFrame:
    """Means over inputs and draws, one row for each case, number of masks and method."""
    found = []
    for case in cases:
        inputs = [(population, best_fit(*population)) for population in CASES[case](tables)]
        draws = -(-fits // len(inputs))
        for n in sizes:
            for number, (population, truth) in enumerate(inputs):
                for draw in range(draws):
                    rows = judge(population, truth, n, [number, n, draw])
                    found += [{"case": case, "N": n, **row} for row in rows]
            cell = summary(pd.DataFrame(found)).tail(len(METHODS))
            print(cell.to_string(header=False), flush=True)
    return summary(pd.DataFrame(found))


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Means by cell, score and root mean square error relative to the common ridge parameter."""
    means = rows.groupby(["case", "N", "method"], sort=False).mean()
    means["error"] = np.sqrt(means.pop("square"))
    for name in ("score", "error"):
        common = means[name].xs(BASELINE, level="method")
        means[name] = means[name] / common.reindex(means.index.droplevel("method")).to_numpy()
    return means


def printed(means: pd.DataFrame) -> str:
    """Markdown: a table for each case, a line for each method, N along each cell."""
    columns = {"all": "{:.3f}", "top 1": "{:.2f}", "top 2-3": "{:.2f}", "score": "{:.2f}"}
    columns["error"] = "{:.2f}"
    head = "| method | " + " | ".join(columns) + " |\n|" + "---|" * 6
    lines = []
    for case, methods in means.groupby(level="case", sort=False):
        lines += ["", f"**{case[0].upper()}{case[1:]}**", "", head]
        for method, part in methods.groupby(level="method", sort=False):
            cells = [
                " / ".join(form.format(value).lstrip("0") for value in part[name])
                for name, form in columns.items()
            ]
            lines.append(f"| `{method}` | " + " | ".join(cells) + " |")
    return "\n".join(lines[1:])


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=Path, required=True, help="folder of the stored tables")
    parser.add_argument("--cases", nargs="*", default=list(CASES), choices=list(CASES))
    parser.add_argument("--fits", type=int, default=100, help="fits in each cell, at least")
    parser.add_argument("--quick", action="store_true", help="20 fits in each cell, two sizes")
    options = parser.parse_args()
    sizes, fits = (SIZES[:2], 20) if options.quick else (SIZES, options.fits)
    print(printed(study(options.tables, options.cases, sizes, fits)))


if __name__ == "__main__":
    main()
