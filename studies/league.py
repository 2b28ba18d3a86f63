"""The league: Banzhaf and Shapley values from few calls, beside every estimator of shapiq.

Games whose value is known for every coalition: those of `--games` (key `kind/name`, entry m is the
value of the coalition of the bits of m) and the stored photos (`--photos`). Each estimator may ask
5, 10 or 20 coalitions per feature. For each index, number of calls and estimator:

- mse: geometric mean over games of the mean squared error over the mean square of the truth;
- top 5: how many of the five largest absolute values are found; tau: Kendall's, of the values;
- coverage: how often 95 % intervals hold the truth; score: their mean interval score, in units of
  the root mean square of the truth; seconds: median processor time for one game, without the
  model;
- ratio: mse over that of the best single estimator of shapiq in the same run.

Ours are `Quadrature` with pairs at random ("paired" for Banzhaf, "leverage" for Shapley values)
and in rounds ("adaptive"), `EBLIME` with the uniform kernel and `BayesSHAP`, on the same pairs.
shapiq runs in an environment of its own, see league_shapiq.py; `--peer-python` is its Python.

Estimates are stored as JSON lines in `--store`, from which a later call resumes; our part needs
NumPy and SciPy only. `--summary` writes the table by kind of game, `--plot` the picture, both
from what is stored. With several seeds the errors of a game are averaged as logarithms.

    python -m studies league --games games.npz --store FOLDER --jobs 16
    python -m studies league --games games.npz --store FOLDER --peer-python /path/to/python3.12
    python -m studies league --games games.npz --store FOLDER --no-play --plot league.png
"""

from __future__ import annotations

import argparse
import json
import subprocess
import time
import zlib
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from eblime import EBLIME, BayesSHAP, Quadrature
from eblime.designs.adaptive import Adaptive
from eblime.designs.rounds import as_design
from eblime.protocols import Design, Method
from studies.data.stored import answers_file
from studies.league_report import INDICES, KEYS, judge_all, plot, read_lines, report, summary
from studies.populations import ask

OURS = ("Quadrature, pairs", "Quadrature, rounds", "regression")
NAMES = {"banzhaf": "EBLIME, uniform kernel", "shapley": "BayesSHAP"}  # of the regressions
PAIRS = {"banzhaf": "paired", "shapley": "leverage"}


def read_games(options: argparse.Namespace) -> dict[str, np.ndarray]:
    """The games that are not constant, by name."""
    found: dict[str, np.ndarray] = {}
    if options.games:
        stored = np.load(options.games)
        found |= {name: stored[name] for name in stored.files}
    if options.photos:
        stored = np.load(answers_file("imagenet-p13.npz"))
        found |= {f"photo/{name}": stored[f"scores_{i}"] for i, name in enumerate(stored["names"])}
    kinds = options.kinds or {name.split("/")[0] for name in found}
    by_kind: dict[str, list[str]] = {kind: [] for kind in sorted(kinds)}
    for name, values in found.items():
        if name.split("/")[0] in by_kind and np.ptp(values):
            by_kind[name.split("/")[0]].append(name)
    return {name: found[name] for names in by_kind.values() for name in names[: options.limit]}


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


def tasks(options: argparse.Namespace, games: dict[str, np.ndarray]) -> Iterator[dict[str, Any]]:
    """What our methods are to estimate."""
    for times in options.calls:
        for method in OURS:
            for index in INDICES:
                for game, values in games.items():
                    for seed in range(options.seeds):
                        name = NAMES[index] if method == "regression" else method
                        task = {"index": index, "method": name, "game": game, "calls": times}
                        yield task | {"seed": seed, "p": len(values).bit_length() - 1}


def play(options: argparse.Namespace, games: dict[str, np.ndarray]) -> None:
    """Store our estimates that are not stored yet."""
    path = options.store / "ours.jsonl"
    done = {tuple(row[key] for key in KEYS) for row in read_lines(path)}
    left = [t for t in tasks(options, games) if tuple(t[key] for key in KEYS) not in done]
    with path.open("a") as file, ProcessPoolExecutor(options.jobs) as pool:
        found = pool.map(estimate, left, [games[task["game"]] for task in left], chunksize=4)
        for number, row in enumerate(found, 1):
            file.write(json.dumps(row) + "\n")
            if number % 20 == 0:
                file.flush()
                print(f"{number} of {len(left)} estimates", flush=True)


def play_peers(options: argparse.Namespace, games: dict[str, np.ndarray]) -> None:
    """Store the estimates of shapiq, by a Python that has it."""
    np.savez(options.store / "games.npz", **games)
    script = Path(__file__).with_name("league_shapiq.py")
    command = [options.peer_python, script, "--games", options.store / "games.npz"]
    command += ["--out", options.store / "peers.jsonl", "--seeds", options.seeds]
    command += ["--calls", *options.calls]
    if options.estimators:
        command += ["--estimators", *options.estimators]
    subprocess.run([str(part) for part in command], check=True)


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the study."""
    parser.add_argument("--games", type=Path, help="file of games, .npz")
    parser.add_argument("--photos", action="store_true", help="play the stored photos too")
    parser.add_argument("--store", type=Path, required=True, help="folder of the estimates")
    parser.add_argument("--calls", type=int, nargs="*", default=[5, 10, 20], help="per feature")
    parser.add_argument("--kinds", nargs="*", help="kinds of games; all if missing")
    parser.add_argument("--limit", type=int, help="games of each kind, at most")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="processes for our part")
    parser.add_argument("--peer-python", help="a Python that has shapiq; none: only stored ones")
    parser.add_argument("--estimators", nargs="*", help="of shapiq; all but the slowest if missing")
    parser.add_argument("--no-play", action="store_true", help="report what is stored")
    parser.add_argument("--summary", type=Path, help="write the table, .csv")
    parser.add_argument("--plot", type=Path, help="write the picture, .png")


def run(options: argparse.Namespace) -> None:
    """Play what is not stored yet, then print the league."""
    options.store.mkdir(parents=True, exist_ok=True)
    games = read_games(options)
    if not options.no_play:
        play(options, games)
        if options.peer_python:
            play_peers(options, games)
    if find_spec("pandas") is None:
        print("The estimates are stored. The report needs pandas: use --no-play where it is.")
        return
    rows = judge_all(options, games)
    report(options, rows)
    if options.plot:
        by = ["index", "calls"]
        plot(summary(rows[rows["kind"] != "photo"], by), options.plot)
