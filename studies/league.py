"""The league: Banzhaf and Shapley values from few calls, beside every estimator of shapiq.

Games whose value is known for every coalition: those of `--games` (key `kind/name`, entry m is the
value of the coalition of the bits of m) and the stored photos (`--photos`). Each estimator may ask
5, 10 or 20 coalitions per feature. For each index, number of calls and estimator:

- mse: geometric mean over games of the mean squared error over the mean square of the truth;
- top 5: how many of the five largest absolute values are found; tau: Kendall's, of the values;
- coverage: how often 95 % intervals hold the truth, "top 1" and "top 2-3" that of the features with
  the largest absolute truth; score: their mean interval score, in units of
  the root mean square of the truth; seconds: median processor time for one game, without the
  model;
- ratio: mse over that of the best single estimator of shapiq in the same run.

Ours are `Quadrature` with pairs at random ("leverage" for Shapley values)
and in rounds ("adaptive"), `EBLIME` with the uniform kernel and `BayesSHAP`, on the same pairs.
shapiq runs in an environment of its own, see league_shapiq.py; `--peer-python` is its Python.
Without it, `--peers docs/results/league.csv` takes the stored results of shapiq, which are of the
same games.

Both parts resume. `--summary` writes the table by kind of game; `python -m studies pages` draws it.
With several seeds the errors of a game are averaged as logarithms.

    python -m studies league --games games.npz --photos --jobs 16
    python -m studies league --games games.npz --peer-python /path/to/python3.12
    python -m studies league --games games.npz --peers docs/results/league.csv
"""

from __future__ import annotations

import argparse
import json
import subprocess
import time
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from eblime import EBLIME, BayesSHAP, Quadrature
from eblime.designs.adaptive import Adaptive
from eblime.designs.rounds import as_design
from eblime.protocols import Design, Method
from studies.data.files import digest
from studies.data.stored import stored_photos
from studies.intervals import interval_measures
from studies.pairs import paired
from studies.populations import ask
from studies.runner import Row, add_run_options, positive, run_study
from studies.tables import frame_table

INDICES = ("banzhaf", "shapley")
KEYS = ("index", "method", "game", "calls", "seed")  # of an estimate
OURS = ("Quadrature, pairs", "Quadrature, rounds", "regression")
NAMES = {"banzhaf": "EBLIME, uniform kernel", "shapley": "BayesSHAP"}  # of the regressions
PAIRS = {"banzhaf": paired, "shapley": "leverage"}
LEAST = 1e-12  # of a relative error: float32 games tell no smaller one


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the study."""
    parser.add_argument("--games", type=Path, help="file of games, .npz")
    parser.add_argument("--photos", action="store_true", help="play the stored photos too")
    parser.add_argument(
        "--calls", type=positive, nargs="+", default=[5, 10, 20], help="per feature"
    )
    parser.add_argument("--kinds", nargs="*", help="kinds of games; all if missing")
    parser.add_argument("--limit", type=positive, help="games of each kind, at most")
    parser.add_argument("--seeds", type=positive, default=1)
    parser.add_argument("--peer-python", help="a Python that has shapiq; none: only stored ones")
    parser.add_argument("--estimators", nargs="*", help="of shapiq; all but the slowest if missing")
    parser.add_argument("--peers", type=Path, help="take shapiq's rows from a table, .csv")
    parser.add_argument("--summary", type=Path, help="write the table, .csv")
    add_run_options(parser, seed=False)


def run(options: argparse.Namespace) -> None:
    """Play what is not stored yet, then print the league."""
    games = read_games(options)
    file = store_games(games, options.out)
    settings = {"file": str(file), "calls": options.calls, "seeds": options.seeds}
    ours = run_study(
        league_rows,
        settings,
        range(min(options.items or len(games), len(games))),
        out=options.out,
        jobs=options.jobs,
        progress=options.progress,
    )
    peers = file.with_suffix(".jsonl")
    if options.peer_python:
        play_peers(options, file, peers)
    lines = peers.read_text().splitlines() if peers.exists() else []
    wanted = [row for row in map(json.loads, lines) if row["calls"] in options.calls]
    estimates = [*ours.to_dict(orient="records"), *({**row, "peer": True} for row in wanted)]
    rows = judge_all(estimates, games)
    report(options, rows)


def read_games(options: argparse.Namespace) -> dict[str, np.ndarray]:
    """The games that are not constant, by name."""
    found: dict[str, np.ndarray] = {}
    if options.games:
        stored = np.load(options.games)
        found |= {name: stored[name] for name in stored.files}
    if options.photos:
        found |= {f"photo/{k:02}": scores for k, scores in enumerate(stored_photos())}
    kinds = options.kinds or {name.split("/")[0] for name in found}
    by_kind: dict[str, list[str]] = {kind: [] for kind in sorted(kinds)}
    for name, values in found.items():
        if name.split("/")[0] in by_kind and np.ptp(values):
            by_kind[name.split("/")[0]].append(name)
    return {name: found[name] for names in by_kind.values() for name in names[: options.limit]}


def store_games(games: dict[str, np.ndarray], out: Path) -> Path:
    """A file of the games; its name has their digest, so that other games have another file."""
    parts = [part for name, values in games.items() for part in (name, values)]
    path = (out / f"league-games-{digest(*parts)[:12]}.npz").resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        np.savez(path, **games)
    return path


def league_rows(settings: Mapping[str, Any], number: int) -> list[Row]:
    """All estimates of ours for one game."""
    with np.load(settings["file"]) as stored:
        name = stored.files[number]
        values = stored[name]
    return [
        {**estimate(task, values), "peer": False}
        for times in settings["calls"]
        for method in OURS
        for index in INDICES
        for seed in range(settings["seeds"])
        for task in [
            {
                "index": index,
                "method": NAMES[index] if method == "regression" else method,
                "game": name,
                "calls": times,
                "seed": seed,
                "p": len(values).bit_length() - 1,
            }
        ]
    ]


def estimate(task: dict[str, Any], values: np.ndarray) -> dict[str, Any]:
    """One estimate of ours with its intervals."""
    index, n = task["index"], task["calls"] * task["p"]
    rng = np.random.default_rng([task["seed"], zlib.crc32(task["game"].encode())])
    start = time.process_time()
    method: Method = Quadrature(index=index)
    design: Design = as_design(PAIRS[index], n, task["p"])
    if task["method"] == "Quadrature, rounds":
        design = Adaptive(n_masks=n, method=Quadrature(index=index))
    elif task["method"] in NAMES.values():
        method = EBLIME() if index == "banzhaf" else BayesSHAP()
    answers = ask(design, values, rng)
    post = method.fit(rng, answers)
    ends = post.interval(0.95)
    seconds = time.process_time() - start
    found = {"values": post.mean.tolist(), "ends": ends.tolist(), "seconds": seconds}
    return task | found | {"asked": answers.n_masks}


def play_peers(options: argparse.Namespace, games: Path, out: Path) -> None:
    """Store the estimates of shapiq, by a Python that has it."""
    script = Path(__file__).with_name("league_shapiq.py")
    command = [options.peer_python, script, "--games", games, "--out", out]
    command += ["--seeds", options.seeds, "--calls", *options.calls]
    if options.estimators:
        command += ["--estimators", *options.estimators]
    subprocess.run([str(part) for part in command], check=True)


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
    measures = {key: row[key] for key in (*KEYS, "asked", "peer")} | {"kind": kind}
    measures["log_mse"] = float(np.log(max(LEAST, np.mean((found - truth) ** 2) / unit)))
    measures["top 5"] = len(first[0] & first[1]) / 5
    tau = kendalltau(found, truth).statistic if np.ptp(found) and np.ptp(truth) else np.nan
    measures |= {"tau": float(tau), "seconds": row["seconds"], "features": len(truth)}
    if "ends" in row:
        intervals = interval_measures(np.array(row["ends"]), truth, 0.95)
        measures |= {"top 1": intervals["top_1"], "top 2-3": intervals["top_2_3"]}
        measures["coverage"] = intervals["coverage"]
        measures["score"] = intervals["score"] / np.sqrt(unit)
    return measures


def judge_all(rows: Sequence[Row], games: dict[str, np.ndarray]) -> pd.DataFrame:
    """All estimates beside the truth; prints how many of shapiq's failed."""
    truth = {(index, name): exact(index, games[name]) for index in INDICES for name in games}
    good = [row for row in rows if "error" not in row and np.isfinite(row["values"]).all()]
    print(f"{len(rows) - len(good)} estimates of shapiq failed")
    return pd.DataFrame([judge(row, truth[row["index"], row["game"]]) for row in good])


def summary(rows: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Means over games and seeds; coverage over features."""
    rows = rows.assign(inside=rows["coverage"] * rows["features"])
    groups = rows.groupby([*by, "method", "peer"], sort=False)
    means = groups[["log_mse", "top 5", "tau", "score", "top 1", "top 2-3"]].mean()
    means.insert(0, "mse", np.exp(means.pop("log_mse")))
    spread = rows.dropna(subset=["coverage"]).groupby([*by, "method", "peer"], sort=False)
    means["coverage"] = spread["inside"].sum() / spread["features"].sum()
    means["seconds"] = groups["seconds"].median()
    means["games"] = groups["game"].nunique()
    return means.reset_index()


def with_ratio(table: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """The table with the ratio of mse to the best peer, for methods that played all games."""
    complete = table["games"] == table.groupby(by)["games"].transform("max")
    best = table[table["peer"] & complete].groupby(by)["mse"].min().rename("best")
    joined = table.merge(best, on=by, how="left")
    joined["ratio"] = (joined["mse"] / joined.pop("best")).where(complete.to_numpy())
    return joined


def report(options: argparse.Namespace, rows: pd.DataFrame) -> None:
    """Print the league, and our coverage by kind of game."""
    by = ["index", "calls"]
    photos = rows["kind"] == "photo"
    groups = {"games of shapiq": rows[~photos], "photos": rows[photos]}
    stored = peer_rows(options.peers, options.calls) if options.peers else None
    parts = []
    for title, part in groups.items():
        if not len(part):
            continue
        table = summary(part, by).assign(kind=title)
        kinds = summary(part, [*by, "kind"])
        if stored is not None:
            table = pd.concat([table, stored[stored["kind"] == title]])
            kinds = pd.concat([kinds, stored[stored["kind"].isin(kinds["kind"])]])
        table = with_ratio(table, by).sort_values([*by, "mse"])
        print(f"\n{title}")
        for (index, calls), lines in table.groupby(by):
            print(f"\n{index}, {calls} calls per feature")
            shown = lines.drop(columns=[*by, "peer", "kind"])
            print(frame_table(shown))
        kinds = with_ratio(kinds, [*by, "kind"])
        ours = kinds[kinds["coverage"].notna()]
        print("\ncoverage by kind of game")
        print(frame_table(by_kind(ours, "coverage")))
        print("\nratio to the best peer by kind of game")
        print(frame_table(by_kind(ours, "ratio")))
        parts += [table, kinds]
    if options.summary:
        pd.concat(parts).to_csv(options.summary, index=False, float_format="%.4g")


def peer_rows(path: Path, calls: Sequence[int]) -> pd.DataFrame:
    """The rows of shapiq in a table that `--summary` wrote."""
    found = pd.read_csv(path).drop(columns="ratio")
    return found[found["peer"] & found["calls"].isin(calls)]


def by_kind(ours: pd.DataFrame, value: str) -> pd.DataFrame:
    """A measure of our methods, one column for each kind of game."""
    return ours.pivot_table(index=["index", "calls", "method"], columns="kind", values=value)
