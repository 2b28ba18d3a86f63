"""Time the exact posterior (`fit`, mean, sd and 95 % interval), compared with others.

The first column has one ridge parameter, `EBLIME(local=False)`, like the methods that it is
compared with; the last two are the default, which has a scale for each feature as well.

- scikit-learn's `BayesianRidge.fit` (a point estimate of lambda by evidence maximisation);
- the published BayesLIME algorithm: a dense N x N weight matrix, an explicit inverse, 10,000 draws
  of a multivariate normal in a Python loop, percentiles of their distances from the mean. 500
  draws are measured and the time of the loop is extrapolated;
- the formulas as printed in the paper: N x N determinants and inverses for each of 20,000 lambdas.
  A few are measured and the time is extrapolated, because all of them would take hours;
- `EBLIME.paper()`: the published grid and 2,500 draws, with our formulas.

The second table has fits beside two busy processes, relative to the same before they start. Fits
limit the threads of linear algebra, because several of them would wait for each other; with as
many threads as there are cores, small fits took 20 to 40 times as long.

    python -m studies speed-fit            # a few minutes on two cores
    python -m studies speed-fit --quick    # two sizes
    python -m studies speed-fit --load     # the second table only
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
from scipy import stats
from sklearn.linear_model import BayesianRidge

import eblime
from studies.speed.clock import add_store_option, median_seconds, store, versions
from studies.tables import head, row

N_LAMBDAS = 20_000


def problem(n: int, p: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Bernoulli masks, scores that are a sigmoid of them, and lime's kernel."""
    rng = np.random.default_rng(n + p)
    masks = rng.integers(0, 2, size=(n, p)).astype(float)
    masks[0] = 1
    scores = 1 / (1 + np.exp(-masks @ rng.normal(size=p) / 2))
    return masks, scores, np.exp(-(p - masks.sum(axis=1)) / (2 * 0.75**2 * p))


def ours(masks, scores, weights, method="eblime-ridge"):
    """Everything that a user needs: mean, sd and interval."""
    post = eblime.fit(masks, scores, weights, method)
    return post.mean, post.sd, post.interval()


def bayesian_ridge(masks, scores, weights):
    """scikit-learn's estimate with its defaults."""
    return BayesianRidge().fit(masks, scores, sample_weight=weights).coef_


def bayeslime_seconds(masks, scores, weights, measured=500, draws=10_000):
    """Time of the published algorithm; that of the loop is extrapolated from `measured` draws."""
    start = time.perf_counter()
    n = len(masks)
    X = np.column_stack([np.ones(n), masks])
    W = np.diag(weights)
    V = np.linalg.inv(X.T @ W @ X + np.eye(X.shape[1]))
    phi = V @ X.T @ W @ scores
    gap = scores - X @ phi
    s2 = (gap @ W @ gap + phi @ phi) / n
    fitted = time.perf_counter()
    sample = np.empty((measured, len(phi)))
    for i in range(measured):
        sigma2 = stats.invgamma.rvs(n / 2, scale=n * s2 / 2)
        sample[i] = stats.multivariate_normal.rvs(phi, sigma2 * V)
    np.percentile(np.abs(sample - phi), 95, axis=0)
    return fitted - start + (time.perf_counter() - fitted) * draws / measured


def printed_form(masks, scores, weights, lambdas):
    """Proposition 2 as printed, one N x N determinant and inverse for each lambda."""
    n = len(scores)
    logs = []
    for lam in lambdas:
        M = np.linalg.inv(np.diag(weights)) + masks @ masks.T / lam
        q = scores @ np.linalg.inv(M) @ scores + 2
        logs.append(-0.5 * np.linalg.slogdet(M)[1] - (1 + n / 2) * np.log(q))
    return np.array(logs)


def peak_megabytes(run: Callable[[], object]) -> float:
    """Peak memory of a call beyond its arguments."""
    tracemalloc.start()
    run()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def measure(n: int, p: int) -> tuple[list[str], dict[str, float]]:
    """The cells of one size, and the seconds."""
    data = problem(n, p)
    found = median_seconds(
        {
            "exact": lambda: ours(*data),
            "ridge": lambda: bayesian_ridge(*data),
            "paper": lambda: ours(*data, method="eblime-paper"),
            "local": lambda: ours(*data, method="eblime"),
        },
        25,
    )
    exact = found["exact"]
    recipe = bayeslime_seconds(*data)
    few = 3 if n > 1000 else 10
    start = time.perf_counter()
    printed_form(*data, np.linspace(0.1, 1, few))
    printed = (time.perf_counter() - start) / few * N_LAMBDAS
    memory = peak_megabytes(lambda: ours(*data)) / (data[0].nbytes / 1e6)
    cells = [str(n), str(p), f"{exact * 1e3:.1f} ms"]
    cells += [f"{found['ridge'] * 1e3:.1f} ms", f"{exact / found['ridge']:.2f}"]
    cells += [f"{recipe:.1f} s", f"{recipe / exact:,.0f}"]
    cells += [f"{printed:,.0f} s", f"{printed / exact:,.0f}"]
    cells += [f"{found['paper'] * 1e3:.1f} ms", f"{found['paper'] / exact:.1f}", f"{memory:.1f}"]
    cells += [f"{found['local'] * 1e3:.1f} ms", f"{found['local'] / exact:.1f}"]
    seconds = {"EBLIME()": found["local"], "EBLIME(local=False)": exact}
    seconds |= {"EBLIME.paper()": found["paper"], "BayesianRidge, scikit-learn": found["ridge"]}
    return cells, seconds | {"BayesLIME as published": recipe, "the paper's formulas": printed}


@contextmanager
def busy_processes(count: int = 2) -> Iterator[None]:
    """Processes that use all the time that they get."""
    command = [sys.executable, "-c", "while True: pass"]
    started = [subprocess.Popen(command) for _ in range(count)]
    try:
        time.sleep(0.5)
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


def under_load() -> None:
    """Print times of fits on a quiet machine, and beside two busy processes."""
    sizes = [("quadrature", 400, 13, 3), ("quadrature", 1_000, 50, 1), ("eblime", 1_000, 40, 25)]
    print(head(["method", "N", "p", "quiet", "two busy processes", "ratio"], right=1))
    for method, n, p, rounds in sizes:
        masks, scores, _ = problem(n, p)
        jobs = {"fit": lambda m=masks, s=scores, name=method: whole_fit(m, s, name)}
        quiet = median_seconds(jobs, rounds)["fit"]
        with busy_processes():
            busy = median_seconds(jobs, rounds)["fit"]
        cells = [f"{quiet * 1e3:.0f} ms", f"{busy * 1e3:.0f} ms", f"{busy / quiet:.1f}"]
        print(row([method, str(n), str(p), *cells]), flush=True)


def whole_fit(masks, scores, method):
    """All that an explanation computes: mean, interval and held-out R^2."""
    post = eblime.fit(masks, scores, method=method)
    return post.mean, post.interval(), post.r2_held_out


HEADS = (
    *("N", "p", "ridge", "BayesianRidge", "ridge / BayesianRidge", "BayesLIME"),
    *("BayesLIME / ridge", "printed form, extrapolated", "printed form / ridge"),
    *("EBLIME.paper()", "EBLIME.paper() / ridge", "peak memory / masks", "EBLIME()"),
    "EBLIME() / ridge",
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the benchmark."""
    parser.add_argument("--quick", action="store_true", help="two sizes only")
    parser.add_argument("--load", action="store_true", help="only beside busy processes")
    add_store_option(parser)


def run(options: argparse.Namespace) -> None:
    """Print the tables, size by size."""
    print(versions("numpy", "scipy", "scikit-learn", "eblime"), end="\n\n")
    if options.load:
        under_load()
        return
    print(head(HEADS, right=0))
    all_sizes = [(n, p) for n in (200, 1000, 5000) for p in (13, 40, 100)]
    times = {}
    for n, p in [(200, 13), (1000, 40)] if options.quick else all_sizes:
        cells, times[f"posterior, {n} masks of {p} features"] = measure(n, p)
        print(row(cells), flush=True)
    if options.store:
        store("speed-fit", times)
    print()
    under_load()
