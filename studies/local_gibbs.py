"""A Gibbs sampler as an independent judge of `EBLIME()`, which has a scale for each feature.

Our marginals integrate a feature's own precision and fit the others'; the sampler integrates all of
them, lambda and sigma^2 in the same hierarchy. Five real problems; for each the distance of the
means in posterior standard deviations, the ratio of the widths of the 95 % intervals (ours over the
sampler's) and the difference of the order probabilities.

    EBLIME_DATA=... python -m studies local-gibbs    # a minute
"""

from __future__ import annotations

import argparse
from itertools import islice

import numpy as np

import eblime
from eblime.core.lam import log_half_cauchy, log_local_precision
from eblime.core.spectrum import decompose, respond
from studies import tables as md_table
from studies.coverage_by_rank import CASES

PROBLEMS = [  # case, which input, N
    ("photos, p = 28-45", 0, 100),
    ("photos, p = 28-45", 3, 200),
    ("photos, p = 11-13", 5, 200),
    ("German credit, p = 20", 1, 200),
    ("breast cancer, standardised, p = 30", 2, 200),
]
WARMUP, DRAWS = 500, 3_000
GRID = np.arange(-25, 25, 0.1)  # log precisions


def sample(rng: np.random.Generator, masks, scores, weights) -> np.ndarray:
    """Draws of beta, (DRAWS, p): beta and sigma^2 together, then each phi_j, then lambda."""
    spectrum = decompose(masks, weights, flat=True)
    response = respond(spectrum, scores, standardize=True)
    gram, pull = spectrum.masks.T @ spectrum.masks, spectrum.masks.T @ response.y
    p, df = len(pull), 2e-6 + len(spectrum.root) - 1
    total = 2e-6 * np.mean(spectrum.root**2) + response.y @ response.y
    phi, lam, draws = np.ones(p), 1.0, []
    for _ in range(WARMUP + DRAWS):
        root = np.linalg.cholesky(gram + np.diag(lam * phi))
        mean = np.linalg.solve(root.T, np.linalg.solve(root, pull))
        sigma2 = (total - pull @ mean) / rng.chisquare(df)
        beta = mean + np.sqrt(sigma2) * np.linalg.solve(root.T, rng.standard_normal(p))
        size = beta**2 / (2 * sigma2)
        logs = 0.5 * GRID[:, None] + log_local_precision(GRID)[:, None]
        phi = np.exp(inverse_cdf(rng, logs - lam * np.exp(GRID)[:, None] * size))
        logs = 0.5 * p * GRID + log_half_cauchy(np.exp(GRID)) + GRID
        lam = float(np.exp(inverse_cdf(rng, (logs - np.exp(GRID) * (phi @ size))[:, None]))[0])
        draws.append(beta)
    return response.unit * np.array(draws[WARMUP:])


def inverse_cdf(rng: np.random.Generator, log_density: np.ndarray) -> np.ndarray:
    """One draw from each column's density on the grid, spread over the grid's cells."""
    total = np.cumsum(np.exp(log_density - log_density.max(axis=0)), axis=0)
    cell = (total < rng.random(total.shape[1]) * total[-1]).sum(axis=0)
    return GRID[np.minimum(cell, len(GRID) - 1)] + 0.1 * (rng.random(len(cell)) - 0.5)


def row(case: str, number: int, n: int) -> str:
    """Compare on one problem."""
    population = next(islice(CASES[case](), number, None))
    rng = np.random.default_rng([1, n])
    rows = rng.integers(len(population[0]), size=n)
    data = [part[rows] for part in population]
    post, draws = eblime.fit(*data), sample(rng, *data)
    return md_table.row([case, n, *differences(post, draws)])


DIFFERENCES = (  # names of the columns of `differences`
    *("means apart, median", "largest", "top 1", "widths, median", "range", "top 1"),
    "P(i > j) apart, rms",
)


def differences(post: eblime.Posterior, draws: np.ndarray) -> list[str]:
    """The cells of a table: how far a posterior is from draws of beta, (n, p)."""
    top = int(np.argmax(np.abs(post.mean)))
    gap = np.abs(post.mean - draws.mean(axis=0)) / draws.std(axis=0)
    ends = np.quantile(draws, [0.025, 0.975], axis=0)
    ratio = np.diff(post.interval())[:, 0] / (ends[1] - ends[0])
    apart = ~np.eye(len(gap), dtype=bool)
    order = (draws[:, :, None] > draws[:, None]).mean(axis=0) - post.prob_greater()
    means = [f"{value:.2f}" for value in (np.median(gap), gap.max(), gap[top])]
    widths = [f"{np.median(ratio):.2f}", f"{ratio.min():.2f} to {ratio.max():.2f}"]
    return [*means, *widths, f"{ratio[top]:.2f}", f"{np.sqrt(np.mean(order[apart] ** 2)):.3f}"]


def run(options: argparse.Namespace) -> None:
    """Print the table."""
    print(md_table.head(["case", "N", *DIFFERENCES]))
    for case, number, n in PROBLEMS:
        print(row(case, number, n), flush=True)
