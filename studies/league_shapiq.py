"""The estimators of shapiq on stored games; `league.py` starts this with another Python.

shapiq 1.8 needs Python 3.12 and packages that eblime does not need, so that it has an environment
of its own: `pip install "shapiq==1.8.*" lightgbm xgboost sparse-transform galois`. Every estimator
gets the same game, seed and number of calls. One line of JSON for each estimate goes to `--out`.

    python3.12 studies/league_shapiq.py --games games.npz --out peers.jsonl --calls 10 20
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import shapiq.approximator as peers

Make = Callable[..., peers.Approximator]
SHAPLEY: dict[str, Make] = {
    "KernelSHAP": partial(peers.KernelSHAP, pairing_trick=True),
    "LeverageSHAP": peers.LeverageSHAP,
    "UnbiasedKernelSHAP": partial(peers.UnbiasedKernelSHAP, pairing_trick=True),
    "kADDSHAP": partial(peers.kADDSHAP, max_order=2, pairing_trick=True),
    "PolySHAP": partial(peers.PolySHAP, max_order=2, pairing_trick=True),
    "OddSHAP": peers.OddSHAP,
    "PermutationSamplingSV": peers.PermutationSamplingSV,
    "OwenSamplingSV": peers.OwenSamplingSV,
    "StratifiedSamplingSV": peers.StratifiedSamplingSV,
    "KernelSHAPIQ": partial(peers.KernelSHAPIQ, max_order=1, index="SV", pairing_trick=True),
    "InconsistentKernelSHAPIQ": partial(
        peers.InconsistentKernelSHAPIQ, max_order=1, index="SV", pairing_trick=True
    ),
    "RegressionFSII": partial(peers.RegressionFSII, max_order=1, pairing_trick=True),
    "ShaplEIG": partial(peers.ShaplEIG, show_progress=False),
}
BANZHAF: dict[str, Make] = {
    "RegressionFBII": partial(peers.RegressionFBII, max_order=1, pairing_trick=True),
}


def both(index: str) -> dict[str, Make]:
    """The estimators that know both indices, for one of them."""
    return {
        "RegressionMSR": partial(peers.RegressionMSR, index=index),
        "ProxySHAP": partial(peers.ProxySHAP, max_order=1, index=index),
        "ProxySHAP, adjusted": partial(peers.ProxySHAP, max_order=1, index=index, adjustment=True),
        "ProxySPEX": partial(peers.ProxySPEX, max_order=1, index=index, hpo=False),
        "ProxySPEX, searched": partial(peers.ProxySPEX, max_order=1, index=index),
        "SPEX": partial(peers.SPEX, max_order=1, index=index),
        "SHAPIQ": partial(peers.SHAPIQ, max_order=1, index=index, pairing_trick=True),
        "SVARM": partial(peers.SVARM, index=index, pairing_trick=True),
        "SVARMIQ": partial(peers.SVARMIQ, max_order=1, index=index, pairing_trick=True),
    }


ESTIMATORS = {"shapley": SHAPLEY | both("SV"), "banzhaf": BANZHAF | both("BV")}
ON_REQUEST = ("ShaplEIG", "ProxySPEX, searched")  # half a minute or more for each estimate


class Game:
    """A stored game as shapiq calls it, with a count of the calls."""

    def __init__(self, values: np.ndarray) -> None:
        self.values, self.calls = values.astype(float), 0

    def __call__(self, coalitions: np.ndarray) -> np.ndarray:
        """Values of coalitions, (n, p) -> (n,)."""
        coalitions = np.atleast_2d(coalitions)
        self.calls += len(coalitions)
        return self.values[(coalitions @ 2 ** np.arange(coalitions.shape[1])).astype(int)]


def estimate(make: Make, values: np.ndarray, calls: int, seed: int) -> dict:
    """One estimate, or the reason why there is none."""
    p, game = len(values).bit_length() - 1, Game(values)
    start = time.process_time()
    try:
        found = make(n=p, random_state=seed).approximate(budget=calls, game=game)
        estimates = [float(found[(j,)]) for j in range(p)]
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[:200]}
    return {"values": estimates, "seconds": time.process_time() - start, "asked": game.calls}


def tasks(options: argparse.Namespace, stored: dict) -> Iterator[dict]:
    """What is to be estimated."""
    for index in options.indices:
        for method in ESTIMATORS[index]:
            wanted = options.estimators
            if method not in wanted if wanted else method in ON_REQUEST:
                continue
            for name, values in stored.items():
                for times in options.calls:
                    for seed in range(options.seeds):
                        task = {"index": index, "method": method, "game": name, "calls": times}
                        yield task | {"seed": seed, "p": len(values).bit_length() - 1}


def main() -> None:
    """Append one line for each estimate that is not there yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--games", type=Path, required=True, help="file of games, .npz")
    parser.add_argument("--names", type=Path, help="JSON list of the games to play; all if missing")
    parser.add_argument("--out", type=Path, required=True, help="file of JSON lines")
    parser.add_argument("--indices", nargs="*", default=list(ESTIMATORS), choices=list(ESTIMATORS))
    parser.add_argument("--estimators", nargs="*", help="names; if missing, all but the slow")
    parser.add_argument("--calls", type=int, nargs="*", default=[5, 10, 20], help="per feature")
    parser.add_argument("--seeds", type=int, default=1)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    stored = np.load(options.games)
    names = json.loads(options.names.read_text()) if options.names else stored.files
    keys = ("index", "method", "game", "calls", "seed")
    lines = options.out.read_text().splitlines() if options.out.exists() else []
    done = {tuple(json.loads(line)[key] for key in keys) for line in lines}
    with options.out.open("a") as file:
        for task in tasks(options, {name: stored[name] for name in names}):
            if tuple(task[key] for key in keys) in done:
                continue
            make = ESTIMATORS[task["index"]][task["method"]]
            found = estimate(make, stored[task["game"]], task["calls"] * task["p"], task["seed"])
            file.write(json.dumps(task | found) + "\n")
            file.flush()


if __name__ == "__main__":
    main()
