"""NUTS as an independent check of the exact posterior.

Fits the paper's hierarchical model (2a)-(2e), lambda on the whole half-line, to three problems by
numpyro's No-U-Turn sampler, and writes the problems and the posterior summaries with their Monte
Carlo errors to `tests/data/nuts.json`, which `tests/methods/test_nuts.py` compares with ours.

    pip install -e '.[nuts]' && python -m studies nuts
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

import numpy as np

QUANTILES = (0.025, 0.25, 0.5, 0.75, 0.975)
CHAINS, WARMUP, DRAWS = 4, 3_000, 20_000
TARGET = Path(__file__).parents[1] / "tests" / "data" / "nuts.json"


def problems() -> list[dict]:
    """Three problems: masks, scores, weights and the settings of the prior."""
    return [
        _problem("tall", 200, 13, on=np.full(13, 0.5), seed=1, standardize=True, a=1e-6, b=1e-6),
        _problem("wide", 30, 40, on=np.full(40, 0.5), seed=2, intercept="none"),
        _problem("compas", 400, 9, on=np.linspace(0.25, 0.9, 9), seed=3),
    ]


def _problem(name, n, p, *, on, seed, intercept="flat", standardize=False, a=1.0, b=1.0) -> dict:
    """Scores that are a smooth nonlinear function of the masks, with lime's kernel."""
    rng = np.random.default_rng(seed)
    masks = (rng.random((n, p)) < on).astype(float)
    masks[0] = 1
    drive = masks @ rng.normal(size=p) + 2 * masks[:, 0] * masks[:, 1] - 1
    scores = (1 / (1 + np.exp(-drive / 2))).round(6)
    weights = np.exp(-(p - masks.sum(axis=1)) / (2 * 0.75**2 * p)).round(6)
    return {
        "name": name,
        "masks": ["".join(str(int(bit)) for bit in row) for row in masks],
        "scores": scores.tolist(),
        "weights": weights.tolist(),
        "method": {"a": a, "b": b, "intercept": intercept, "standardize": standardize},
    }


def model(masks, scores, weights, a, b, flat) -> None:
    """Equations (2a)-(2e), with a flat intercept if `flat`."""
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist

    p = masks.shape[1]
    tau = numpyro.sample("tau", dist.HalfCauchy(1.0))  # lambda^-1/2
    # sigma^2 ~ inverse gamma(a, b), sampled on the log scale
    log_s2 = numpyro.sample("log_sigma2", dist.ImproperUniform(dist.constraints.real, (), ()))
    numpyro.factor("sigma2_prior", -a * log_s2 - b * jnp.exp(-log_s2))
    sigma = jnp.exp(log_s2 / 2)
    raw = numpyro.sample("raw", dist.Normal(jnp.zeros(p), 1.0))
    beta = numpyro.deterministic("beta", sigma * tau * raw)
    level = 0.0
    if flat:
        level = numpyro.sample("intercept", dist.ImproperUniform(dist.constraints.real, (), ()))
    numpyro.sample("y", dist.Normal(level + masks @ beta, sigma / jnp.sqrt(weights)), obs=scores)


def sample(problem: dict) -> dict:
    """Run the sampler and summarise each quantity with its Monte Carlo error."""
    import arviz as az
    import jax
    from numpyro.infer import MCMC, NUTS

    masks = np.array([[float(bit) for bit in row] for row in problem["masks"]])
    scores, weights = np.array(problem["scores"]), np.array(problem["weights"])
    setting = problem["method"]
    unit = 1.0
    if setting["standardize"]:
        mean = np.average(scores, weights=weights)
        unit = float(np.sqrt(np.average((scores - mean) ** 2, weights=weights)))
    sampler = MCMC(
        NUTS(model, target_accept_prob=0.99),
        num_warmup=WARMUP,
        num_samples=DRAWS,
        num_chains=CHAINS,
        progress_bar=False,
    )
    flat = setting["intercept"] == "flat"
    sampler.run(
        jax.random.PRNGKey(0), masks, scores / unit, weights, setting["a"], setting["b"], flat
    )
    draws = {name: np.asarray(v) for name, v in sampler.get_samples(group_by_chain=True).items()}
    divergent = int(sampler.get_extra_fields()["diverging"].sum())
    out = {f"beta[{j}]": summary(unit * draws["beta"][..., j]) for j in range(masks.shape[1])}
    out["log_lambda"] = summary(-2 * np.log(draws["tau"]))
    out["sigma2"] = summary(unit**2 * np.exp(draws["log_sigma2"]))
    if flat:
        out["intercept"] = summary(unit * draws["intercept"])
    worst = max(float(az.rhat(v)) for v in (draws["tau"], draws["log_sigma2"]))
    print(f"{problem['name']}: {divergent} divergences, worst R-hat {worst:.4f}")
    return {"divergences": divergent, "posterior": out}


def summary(draws: np.ndarray) -> dict:
    """Mean, sd and quantiles of (chains, draws), each with its Monte Carlo standard error."""
    import arviz as az

    return {
        "mean": [float(draws.mean()), float(az.mcse(draws, method="mean"))],
        "sd": [float(draws.std(ddof=1)), float(az.mcse(draws, method="sd"))],
        "quantiles": [
            [q, float(np.quantile(draws, q)), float(az.mcse(draws, method="quantile", prob=q))]
            for q in QUANTILES
        ],
    }


def run(options: argparse.Namespace) -> None:
    """Sample every problem and write the summaries."""
    os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=2")
    import jax
    import numpyro

    numpyro.enable_x64()
    stored = [{**problem, **sample(problem)} for problem in problems()]
    about = {
        "sampler": f"numpyro {numpyro.__version__} NUTS, jax {jax.__version__}",
        "chains": CHAINS,
        "warmup": WARMUP,
        "draws": DRAWS,
    }
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(json.dumps({"about": about, "problems": stored}, indent=1) + "\n")
    print(f"wrote {TARGET.name}")
