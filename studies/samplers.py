"""Samplers as independent judges of `EBLIME()`, which has a scale for each feature.

Our marginals integrate a feature's own precision and fit the others'. A sampler integrates all of
them, lambda and sigma^2 in the same hierarchy: a Gibbs sampler on five real problems, or numpyro's
No-U-Turn sampler on two small ones. For each problem: the distance of the means in posterior
standard deviations, the ratio of the widths of the 95 % intervals (ours over the sampler's) and the
difference of the order probabilities.

    EBLIME_DATA=... python -m studies samplers --sampler gibbs                # a minute
    pip install -e '.[nuts]' && python -m studies samplers --sampler nuts    # a few minutes
"""

from __future__ import annotations

import argparse

import numpy as np

import eblime
from eblime.core.lam import log_half_cauchy, log_local_precision
from eblime.core.spectrum import decompose, respond
from studies.populations import TITLES, population
from studies.tables import head, row

REAL = [  # case, which input, N
    ("p40", 0, 100),
    ("p40", 3, 200),
    ("p13", 5, 200),
    ("german", 1, 200),
    ("breast-cancer", 2, 200),
]
MADE_UP = {  # masks, true importances
    "6 features, two large": (60, np.array([0.5, -0.3, 0.05, 0.02, 0.0, 0.0])),
    "20 features, one large": (100, np.r_[0.4, 0.1, -0.1, np.linspace(-0.03, 0.03, 17)]),
}
GRID = np.arange(-25, 25, 0.1)  # log precisions


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the study."""
    parser.add_argument("--sampler", default="gibbs", choices=["gibbs", "nuts"])


def run(options: argparse.Namespace) -> None:
    """Print the table, problem by problem."""
    if options.sampler == "gibbs":
        print(head(["case", "N", *DIFFERENCES], right=None))
        for case, number, n in REAL:
            rng = np.random.default_rng([1, n])
            whole = population(case, number)
            data = whole.take(rng.integers(len(whole.scores), size=n))
            cells = differences(eblime.fit(*data), gibbs(rng, *data))
            print(row([TITLES[case], n, *cells]), flush=True)
        return
    print(head(["problem", "N", *DIFFERENCES, "divergences"], right=None))
    for name, settings in MADE_UP.items():
        masks, scores, weights = made_up(*settings)
        draws, divergent = nuts(masks, scores, weights)
        cells = differences(eblime.fit(masks, scores, weights), draws)
        print(row([name, len(masks), *cells, divergent]), flush=True)


def gibbs(rng: np.random.Generator, masks, scores, weights) -> np.ndarray:
    """Draws of beta, (3000, p): beta and sigma^2 together, then each phi_j, then lambda."""
    spectrum = decompose(masks, weights, flat=True)
    response = respond(spectrum, scores, standardize=True)
    gram, pull = spectrum.masks.T @ spectrum.masks, spectrum.masks.T @ response.y
    p, df = len(pull), 2e-6 + len(spectrum.root) - 1
    total = 2e-6 * np.mean(spectrum.root**2) + response.y @ response.y
    phi, lam, draws = np.ones(p), 1.0, []
    for _ in range(500 + 3_000):
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
    return response.unit * np.array(draws[500:])


def inverse_cdf(rng: np.random.Generator, log_density: np.ndarray) -> np.ndarray:
    """One draw from each column's density on the grid, spread over the grid's cells."""
    total = np.cumsum(np.exp(log_density - log_density.max(axis=0)), axis=0)
    cell = (total < rng.random(total.shape[1]) * total[-1]).sum(axis=0)
    return GRID[np.minimum(cell, len(GRID) - 1)] + 0.1 * (rng.random(len(cell)) - 0.5)


def made_up(n: int, beta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Bernoulli masks, linear scores with noise, and lime's kernel."""
    rng = np.random.default_rng(n)
    p = len(beta)
    masks = rng.integers(0, 2, size=(n, p)).astype(float)
    scores = 0.2 + masks @ beta + 0.15 * rng.normal(size=n)
    return masks, scores, np.exp(-(p - masks.sum(axis=1)) / (2 * 0.75**2 * p))


def model(masks, scores, weights, b) -> None:
    """The hierarchy of docs/explanation/model.md on standardised scores."""
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist

    p, free = masks.shape[1], dist.ImproperUniform(dist.constraints.real, (), ())
    common = numpyro.sample("tau", dist.HalfCauchy(1.0))  # lambda^-1/2
    share = numpyro.sample("share", dist.Uniform(jnp.zeros(p), 1.0))
    own = jnp.sqrt((1 - share) ** -2.0 - 1)  # P(own <= t) = 1 - (1 + t^2)^-1/2
    log_s2 = numpyro.sample("log_sigma2", free)
    numpyro.factor("sigma2_prior", -1e-6 * log_s2 - b * jnp.exp(-log_s2))
    sigma = jnp.exp(log_s2 / 2)
    raw = numpyro.sample("raw", dist.Normal(jnp.zeros(p), 1.0))
    beta = numpyro.deterministic("beta", sigma * common * own * raw)
    level = numpyro.sample("intercept", free)
    numpyro.sample("y", dist.Normal(level + masks @ beta, sigma / jnp.sqrt(weights)), obs=scores)


def nuts(masks, scores, weights) -> tuple[np.ndarray, int]:
    """Draws of beta, (6000, p), and the number of divergent transitions."""
    import jax
    import numpyro
    from numpyro.infer import MCMC, NUTS

    numpyro.enable_x64()
    mean = np.average(scores, weights=weights)
    unit = float(np.sqrt(np.average((scores - mean) ** 2, weights=weights)))
    sampler = MCMC(
        NUTS(model, target_accept_prob=0.95),
        num_warmup=1_000,
        num_samples=3_000,
        num_chains=2,
        chain_method="sequential",
        progress_bar=False,
    )
    b = 1e-6 * float(np.mean(weights))
    sampler.run(jax.random.PRNGKey(0), masks, scores / unit, weights, b)
    divergent = int(sampler.get_extra_fields()["diverging"].sum())
    return unit * np.asarray(sampler.get_samples()["beta"]), divergent


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
