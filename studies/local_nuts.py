"""NUTS as an independent judge of `EBLIME()`, which has a scale for each feature.

Our marginals integrate a feature's own precision and fit the others'. numpyro's No-U-Turn sampler
integrates all of them, lambda and sigma^2 in the same hierarchy. Two small problems; for each the
distance of the means in posterior standard deviations, the ratio of the widths of the 95 %
intervals (ours over the sampler's) and the difference of the order probabilities.

    pip install -e '.[nuts]' && python -m studies local-nuts    # a few minutes
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

import eblime
from studies import tables as md_table
from studies.local_gibbs import DIFFERENCES, differences

PROBLEMS = {  # masks, true importances
    "6 features, two large": (60, np.array([0.5, -0.3, 0.05, 0.02, 0.0, 0.0])),
    "20 features, one large": (100, np.r_[0.4, 0.1, -0.1, np.linspace(-0.03, 0.03, 17)]),
}
CHAINS, WARMUP, DRAWS = 2, 1_000, 3_000


def problem(n: int, beta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
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


def sample(masks, scores, weights) -> tuple[np.ndarray, int]:
    """Draws of beta, (CHAINS * DRAWS, p), and the number of divergent transitions."""
    import jax
    from numpyro.infer import MCMC, NUTS

    mean = np.average(scores, weights=weights)
    unit = float(np.sqrt(np.average((scores - mean) ** 2, weights=weights)))
    sampler = MCMC(
        NUTS(model, target_accept_prob=0.95),
        num_warmup=WARMUP,
        num_samples=DRAWS,
        num_chains=CHAINS,
        chain_method="sequential",
        progress_bar=False,
    )
    b = 1e-6 * float(np.mean(weights))
    sampler.run(jax.random.PRNGKey(0), masks, scores / unit, weights, b)
    divergent = int(sampler.get_extra_fields()["diverging"].sum())
    return unit * np.asarray(sampler.get_samples()["beta"]), divergent


def row(name: str) -> str:
    """Compare on one problem."""
    data = problem(*PROBLEMS[name])
    post, (draws, divergent) = eblime.fit(*data), sample(*data)
    return md_table.row([name, len(data[0]), *differences(post, draws), divergent])


def run(options: argparse.Namespace) -> None:
    """Print the table."""
    try:
        import numpyro
    except ImportError:
        sys.exit("This benchmark needs numpyro: pip install -e '.[nuts]'. Nothing was run.")
    numpyro.enable_x64()
    print(md_table.head(["problem", "N", *DIFFERENCES, "divergences"]))
    for name in PROBLEMS:
        print(row(name), flush=True)
