"""The report of `league.py`: stored estimates against the truth, as tables and as a picture."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from studies.intervals import interval_measures

__all__ = ["INDICES", "KEYS", "judge_all", "plot", "read_lines", "report", "summary"]

KEYS = ("index", "method", "game", "calls", "seed")  # of an estimate
INDICES = ("banzhaf", "shapley")
COLOURS = {"Quadrature, rounds": "C3", "Quadrature, pairs": "C0"}
LEAST = 1e-12  # of a relative error: float32 games tell no smaller one


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The stored estimates; an empty list if there is no file yet."""
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]


def exact(index: str, values: np.ndarray) -> np.ndarray:
    """The Banzhaf or Shapley values of a game, from all coalitions."""
    p = len(values).bit_length() - 1
    shown = np.arange(2**p)[:, None] >> np.arange(p) & 1
    size = shown.sum(axis=1)
    rest = size[:, None] - shown  # of the other players
    if index == "banzhaf":
        weights = np.full((2**p, p), 0.5 ** (p - 1))
    else:
        each = np.array([1.0 / (p * _binomial(p - 1, s)) for s in range(p)])
        weights = each[rest]
    return np.asarray(((2 * shown - 1) * weights * values.astype(float)[:, None]).sum(axis=0))


def _binomial(n: int, k: int) -> float:
    """How many subsets of size k there are."""
    return float(np.prod([(n - i) / (i + 1) for i in range(k)]))


def judge(row: dict[str, Any], truth: np.ndarray) -> dict[str, Any]:
    """One estimate against the truth."""
    from scipy.stats import kendalltau

    found = np.array(row["values"])
    unit = float(np.mean(truth**2))
    first = [set(np.argsort(-np.abs(values))[:5].tolist()) for values in (found, truth)]
    kind = row["game"].split("/")[0]
    measures = {key: row[key] for key in KEYS} | {"kind": kind, "asked": row["asked"]}
    measures["log_mse"] = float(np.log(max(LEAST, np.mean((found - truth) ** 2) / unit)))
    measures["top 5"] = len(first[0] & first[1]) / 5
    tau = kendalltau(found, truth).statistic if np.ptp(found) and np.ptp(truth) else np.nan
    measures |= {"tau": float(tau), "seconds": row["seconds"], "features": len(truth)}
    if "ends" in row:
        intervals = interval_measures(np.array(row["ends"]), truth, 0.95)
        measures["coverage"] = intervals["coverage"]
        measures["score"] = intervals["score"] / np.sqrt(unit)
    return measures


def judge_all(options: argparse.Namespace, games: dict[str, np.ndarray]) -> Any:
    """All stored estimates of these games beside the truth; prints how many failed."""
    import pandas as pd

    truth = {(index, name): exact(index, games[name]) for index in INDICES for name in games}
    rows, failed = [], 0
    for file in ("ours.jsonl", "peers.jsonl"):
        for row in read_lines(options.store / file):
            if row["game"] not in games or row["calls"] not in options.calls:
                continue
            if "error" in row or not np.isfinite(row["values"]).all():
                failed += 1
                continue
            measures = judge(row, truth[row["index"], row["game"]])
            rows.append(measures | {"peer": file == "peers.jsonl"})
    print(f"{failed} estimates of shapiq failed")
    return pd.DataFrame(rows)


def summary(rows: Any, by: list[str]) -> Any:
    """Means over games and seeds; coverage over features."""
    rows = rows.assign(inside=rows["coverage"] * rows["features"])
    groups = rows.groupby([*by, "method", "peer"], sort=False)
    means = groups[["log_mse", "top 5", "tau", "score"]].mean()
    means.insert(0, "mse", np.exp(means.pop("log_mse")))
    spread = rows.dropna(subset=["coverage"]).groupby([*by, "method", "peer"], sort=False)
    means["coverage"] = spread["inside"].sum() / spread["features"].sum()
    means["seconds"] = groups["seconds"].median()
    means["games"] = groups["game"].nunique()
    return means.reset_index()


def with_ratio(table: Any, by: list[str]) -> Any:
    """The table with the ratio of mse to the best peer, for methods that played all games."""
    complete = table["games"] == table.groupby(by)["games"].transform("max")
    best = table[table["peer"] & complete].groupby(by)["mse"].min().rename("best")
    joined = table.merge(best, on=by, how="left")
    joined["ratio"] = (joined["mse"] / joined.pop("best")).where(complete.to_numpy())
    return joined


def report(options: argparse.Namespace, rows: Any) -> None:
    """Print the league, and our coverage by kind of game."""
    import pandas as pd

    pd.set_option("display.width", 200, "display.max_columns", 30)
    by = ["index", "calls"]
    photos = rows["kind"] == "photo"
    groups = {"games of shapiq": rows[~photos], "photos": rows[photos]}
    parts = []
    for title, part in groups.items():
        if not len(part):
            continue
        table = with_ratio(summary(part, by), by).sort_values([*by, "mse"])
        print(f"\n{title}")
        for (index, calls), lines in table.groupby(by):
            print(f"\n{index}, {calls} calls per feature")
            shown = lines.drop(columns=[*by, "peer"])
            print(shown.to_string(index=False, float_format="%.3g".__mod__))
        kinds = with_ratio(summary(part, [*by, "kind"]), [*by, "kind"])
        ours = kinds[kinds["coverage"].notna()]
        print("\ncoverage by kind of game")
        print(ours.pivot_table(index=[*by, "method"], columns="kind", values="coverage").round(3))
        print("\nratio to the best peer by kind of game")
        print(ours.pivot_table(index=[*by, "method"], columns="kind", values="ratio").round(2))
        parts += [table.assign(kind=title), kinds]
    if options.summary:
        pd.concat(parts).to_csv(options.summary, index=False, float_format="%.4g")


def plot(table: Any, path: Path) -> None:
    """Error against calls, one panel for each index: ours in colour, peers in grey."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    complete = table["games"] == table.groupby(["index", "calls"])["games"].transform("max")
    calls = sorted(table["calls"].unique())
    figure, axes = plt.subplots(1, 2, figsize=(11, 5.2), sharey=True, layout="constrained")
    for ax, index in zip(axes, INDICES, strict=True):
        _write(ax, _draw(ax, table[complete & (table["index"] == index)]))
        ax.set(xscale="log", yscale="log", title=f"{index.capitalize()} values")
        ax.set_xlabel("model calls per feature")
        ax.set_xticks(calls, [str(n) for n in calls])
        ax.minorticks_off()
        ax.set_xlim(calls[0] / 1.08, calls[-1] * (calls[-1] / calls[0]) ** 0.7)
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("relative mean squared error")
    figure.savefig(path, dpi=120)


def _draw(ax: Any, table: Any) -> list[tuple[float, str, str]]:
    """One line for each method; the error at its right end, its name and its colour."""
    ends = []
    for (name, peer), part in table.groupby(["method", "peer"], sort=False):
        line = part.sort_values("calls")
        colour = "0.7" if peer else COLOURS.get(name, "C2")
        ax.plot(line["calls"], line["mse"], "-o", color=colour, lw=1 if peer else 2.2, ms=3)
        ends.append((float(line["mse"].iloc[-1]), name, colour))
    return sorted(ends)


def _write(ax: Any, ends: list[tuple[float, str, str]]) -> None:
    """The names at the right ends; methods with the same error share a line of text."""
    right = max(line.get_xdata()[-1] for line in ax.lines)
    shared: list[tuple[float, list[str], str]] = []
    for error, name, colour in ends:
        if shared and error < 1.005 * shared[-1][0] and colour == shared[-1][2]:
            shared[-1][1].append(name)
        else:
            shared.append((error, [name], colour))
    height = 0.0
    for error, names, colour in shared:
        height = max(error, 1.33 * height)
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        place = {"xy": (right, error), "xytext": (right * 1.1, height)}
        shade = "0.35" if colour == "0.7" else colour
        arrow = {"arrowstyle": "-", "color": "0.85", "lw": 0.5}
        ax.annotate(
            min(names, key=len) + more,
            **place,
            fontsize=7,
            color=shade,
            va="center",
            arrowprops=arrow,
        )
